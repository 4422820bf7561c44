/* Exports of Nsight Systems, made here row by row so that every figure is known, and the sample in shared/.
 */
#include "temporary.h"
#include "importers/timeline_help.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[128];

static int begin(void **unused) {
  (void)unused;
  int file = mkstemp(temporary(path, sizeof path, "hone-nsys"));
  if (file < 0) return -1;
  close(file);
  return 0;
}

static int end(void **unused) {
  (void)unused;
  return unlink(path);
}

static void run_sql(const char *sql) {
  sqlite3 *db;
  char *message = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &message)) fail_msg("%s", message);
  sqlite3_close(db);
}

static hone_status try_import(hone_facts **facts, hone_error *error) {
  const char *paths[1] = {path};
  *error = (hone_error){0};
  return hone_import_files(paths, 1, NULL, facts, error);
}

static hone_facts *import(void) {
  hone_facts *f = NULL;
  hone_error error;
  if (try_import(&f, &error)) fail_msg("%s (%s)", error.what, error.where);
  return f;
}

#define STRINGS                                                                                              \
  "CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"                            \
  "INSERT INTO StringIds VALUES(1,'ampere_sgemm_nn'),(2,'relu_kernel'),(3,'cudaLaunchKernel_v7000'),"        \
  "(4,'cudaStreamSynchronize_v3020'),(5,'Conv_0 + Relu_1'),(6,'softmax_k'),(7,'cudaGraphLaunch_v10000');"
#define KERNELS                                                                                              \
  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,"    \
  "streamId INTEGER,correlationId INTEGER,globalPid INTEGER,demangledName INTEGER,shortName INTEGER,"        \
  "gridX INTEGER,gridY INTEGER,gridZ INTEGER,blockX INTEGER,blockY INTEGER,blockZ INTEGER,"                  \
  "registersPerThread INTEGER,staticSharedMemory INTEGER,dynamicSharedMemory INTEGER,graphNodeId INTEGER);"
#define CALLS                                                                                                \
  "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER,end INTEGER,eventClass INTEGER,globalTid INTEGER," \
  "correlationId INTEGER,nameId INTEGER,returnValue INTEGER);"
#define RANGES                                                                                               \
  "CREATE TABLE NVTX_EVENTS(start INTEGER,end INTEGER,eventType INTEGER,text TEXT,globalTid INTEGER,textId " \
  "INTEGER);"
#define PROCESS_A "167772160" /* 10 << 24 */
#define PROCESS_B "335544320" /* 20 << 24 */
#define THREAD_A "167772170"
#define THREAD_B "335544340"

/* Two processes use the same correlation numbers; NVTX names layers and iterations; two streams and a copy
 * overlap. */
static void two_processes(void **unused) {
  (void)unused;
  run_sql(
      STRINGS KERNELS CALLS RANGES
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,"
      "streamId INTEGER,correlationId INTEGER,globalPid INTEGER,bytes INTEGER,copyKind INTEGER,srcKind "
      "INTEGER,dstKind INTEGER);"
      "WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1000 FROM i WHERE k<9000)"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT k+200,k+500,0,1,7,k+1," PROCESS_A
      ",1,1,4,4,1,128,1,1,90,0,1024,NULL FROM i "
      "UNION ALL SELECT k+400,k+600,0,1,8,k+2," PROCESS_A ",2,2,4,4,1,128,1,1,20,0,0,NULL FROM i "
      "UNION ALL SELECT k+300,k+800,1,1,7,k+1," PROCESS_B ",6,6,4,4,1,128,1,1,90,0,1024,NULL FROM i;"
      "WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1000 FROM i WHERE k<9000)"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT k+100,k+250,0,1,9,k+3," PROCESS_A
      ",1000000,1,0,2 FROM i "
      "UNION ALL SELECT k+850,k+900,0,1,9,k+3," PROCESS_A ",4,2,2,1 FROM i;"
      "WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1000 FROM i WHERE k<9000)"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT k+50,k+60,0," THREAD_A ",k+1,3,0 FROM i "
      "UNION ALL SELECT k+70,k+80,0," THREAD_A ",k+2,3,0 FROM i "
      "UNION ALL SELECT k+20,k+30,0," THREAD_B ",k+1,3,0 FROM i;"
      "WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1000 FROM i WHERE k<9000)"
      "INSERT INTO NVTX_EVENTS SELECT k,k+950,59,'iteration '||(k/1000)," THREAD_A ",NULL FROM i "
      "UNION ALL SELECT k+40,k+65,59,NULL," THREAD_A ",5 FROM i UNION ALL SELECT k,NULL,34,'mark'," THREAD_A
      ",NULL FROM i;"
      "CREATE TABLE TARGET_INFO_GPU(id INTEGER,name TEXT); INSERT INTO TARGET_INFO_GPU VALUES(0,'GPU X');");
  hone_facts *f = import();
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->iterations, 10);
  assert_float_equal(p->closure.wall_ms, 950e-6, 1e-12);
  assert_float_equal(p->closure.layers_ms, 600e-6, 1e-12); /* 200-800 */
  assert_float_equal(p->stages.h2d_ms, 100e-6, 1e-12);
  assert_float_equal(p->stages.d2h_ms, 50e-6, 1e-12);
  assert_float_equal(p->closure.gaps_ms, 200e-6, 1e-12);
  const hone_span *gemm = find_span(f, "ampere_sgemm_nn");
  const hone_step_fact *step = step_of_span(f, gemm);
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(f, &n);
  assert_int_equal(step->node_count, 1);
  assert_string_equal(nodes[step->nodes[0]].name, "Conv_0 + Relu_1");
  assert_string_equal(step->op_type, "Conv");
  assert_int_equal(step_of_span(f, find_span(f, "softmax_k"))->node_count, 0); /* the other process's call */
  assert_int_equal(step_of_span(f, find_span(f, "relu_kernel"))->node_count,
                   0); /* an iteration is no origin */
  assert_int_equal(find_span(f, "Memcpy HtoD")->source_memory, HONE_MEMORY_PAGEABLE);
  assert_int_equal(find_span(f, "Memcpy DtoH")->target_memory, HONE_MEMORY_PINNED);
  assert_string_equal(hone_facts_get_meta(f)->device, "GPU X");
  assert_string_equal(find_span(f, "cudaLaunchKernel")->name, "cudaLaunchKernel");
  assert_int_equal(p->layer_count, 5);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* A graph traced as a whole is one block and said to be so; one traced by node shows its kernels. */
static void cuda_graphs(void **unused) {
  (void)unused;
  run_sql(STRINGS CALLS "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER,end INTEGER,deviceId "
                        "INTEGER,graphId INTEGER,"
                        "streamId INTEGER,correlationId INTEGER,globalPid INTEGER);"
                        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(100,900,0,3,7,1," PROCESS_A
                        "),(1100,1900,0,3,7,2," PROCESS_A ");"
                        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(10,20,0," THREAD_A ",1,7,0);");
  hone_facts *f = import();
  assert_float_equal(span_ms(f, HONE_SPAN_KERNEL, true), 1600e-6, 1e-12);
  find_span(f, "CUDA graph 3");
  assert_non_null(strstr(unmeasured(f, "kernels inside of CUDA graphs"), "2 launches"));
  hone_profile_destroy(sound_profile(f));
  hone_facts_destroy(f);
  run_sql("DROP TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE;" KERNELS
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100,300,0,1,7,1," PROCESS_A
          ",1,1,1,1,1,32,1,1,8,0,0,55),"
          "(250,400,0,1,7,1," PROCESS_A ",2,2,1,1,1,32,1,1,8,0,0,56);");
  f = import();
  hone_profile *p = sound_profile(f);
  assert_float_equal(p->closure.layers_ms, 300e-6, 1e-12); /* nodes of a stream may overlap */
  assert_null(unmeasured(f, "kernels inside of CUDA graphs"));
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* Names as text, no process, no launch columns; nvprof's tables; waiting on the device and in the call. */
static void old_schemas(void **unused) {
  (void)unused;
  run_sql("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringTable "
          "VALUES(9,'volta_scudnn_128');"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(start INTEGER,end INTEGER,deviceId "
          "INTEGER,streamId INTEGER,correlationId INTEGER,name INTEGER);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES(100,200,0,7,1,9);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER,end INTEGER,correlationId INTEGER);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(50,60,1);");
  hone_facts *f = import();
  assert_string_equal(step_of_span(f, find_span(f, "volta_scudnn_128"))->op_type, "Conv");
  hone_facts_destroy(f);
  run_sql(
      "DROP TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;" STRINGS
          CALLS
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER,end INTEGER,streamId INTEGER,shortName TEXT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
      "VALUES(100,200,7,'k'),(900,1000,7,'k'),(1,NULL,7,'broken'),(9,2,7,'broken');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER,end INTEGER,streamId "
      "INTEGER,correlationId INTEGER,syncType INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(300,400,7,5,3);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(290,410,0,7,5,4,0),(500,600,0,7,6,4,0);");
  f = import();
  hone_profile *p = sound_profile(f);
  assert_float_equal(p->closure.sync_ms, 200e-6, 1e-12); /* told twice, counted once */
  find_span(f, "Stream sync");
  assert_non_null(strstr(unmeasured(f, "damaged rows"), "2 rows"));
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void without_kernels(void **unused) {
  (void)unused;
  run_sql(STRINGS CALLS RANGES "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,150,0," THREAD_A
                               ",1,3,0),(200,290,0," THREAD_A ",2,4,0);");
  hone_facts *f = import();
  hone_profile *p = sound_profile(f);
  assert_float_equal(p->closure.wall_ms, 190e-6, 1e-12);
  assert_float_equal(p->closure.host_ms, 50e-6, 1e-12);
  assert_float_equal(p->closure.sync_ms, 90e-6, 1e-12);
  assert_non_null(unmeasured(f, "kernels"));
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void hostile(void **unused) {
  (void)unused;
  hone_facts *f = NULL;
  hone_error error;
  assert_int_equal(try_import(&f, &error), HONE_ERROR_INPUT); /* empty file */
  /* A view in place of a table is not run; a database of something else is said to be one. */
  run_sql("CREATE TABLE t(x); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE i(k) AS (SELECT 0 "
          "UNION ALL SELECT k+1 FROM i) "
          "SELECT k AS start, k AS end FROM i;");
  assert_int_equal(try_import(&f, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.what, "no trace"));
  assert_non_null(strstr(error.where, path));
  run_sql("DROP VIEW CUPTI_ACTIVITY_KIND_KERNEL;" STRINGS KERNELS
          "WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM i WHERE k<3000) INSERT INTO "
          "CUPTI_ACTIVITY_KIND_KERNEL "
          "SELECT k*10,k*10+5,'GPU',x'00ff',-7,1e300,NULL,1,1,-1,'a',NULL,1,1,1,1,1,1,1 FROM i;");
  f = import(); /* wrong types are no numbers */
  assert_float_equal(span_ms(f, HONE_SPAN_KERNEL, true), 3001 * 5e-6, 1e-12);
  hone_facts_destroy(f);
  /* Cut off, and overwritten in the middle. */
  FILE *file = fopen(path, "r+b");
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  assert_int_equal(ftruncate(fileno(file), size / 2), 0);
  assert_int_equal(try_import(&f, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.where, path));
  assert_non_null(strstr(error.where, "offset"));
  assert_non_null(strstr(error.what, "ends too early"));
  assert_int_equal(ftruncate(fileno(file), size), 0); /* the second half is zeros now */
  fclose(file);
  assert_int_equal(try_import(&f, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.where, "table"));
  assert_non_null(strstr(error.what, "cannot be read"));
}

static void sample_adds_up(void **unused) {
  (void)unused;
  char sample[512];
  const char *shared = getenv("HONE_SHARED"), *paths[1] = {sample};
  snprintf(sample, sizeof sample, "%s/cases/profiles/nsys/gemm_profile.sqlite",
           shared ? shared : "../shared");
  if (access(sample, R_OK)) skip();
  hone_facts *f = NULL;
  hone_error error = {0};
  if (hone_import_files(paths, 1, NULL, &f, &error)) fail_msg("%s (%s)", error.what, error.where);
  sqlite3 *db;
  sqlite3_stmt *sum;
  char uri[600];
  snprintf(uri, sizeof uri, "file:%s?immutable=1", sample);
  assert_int_equal(sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db,
                                      "SELECT sum(end-start)/1e6, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME",
                                      -1, &sum, NULL),
                   SQLITE_OK);
  assert_int_equal(sqlite3_step(sum), SQLITE_ROW);
  assert_float_equal(span_ms(f, HONE_SPAN_HOST, true), sqlite3_column_double(sum, 0), 1e-9);
  assert_int_equal(span_count(f, HONE_SPAN_HOST, true), sqlite3_column_int(sum, 1));
  sqlite3_finalize(sum);
  sqlite3_close(db);
  assert_string_equal(hone_facts_get_meta(f)->tool_version, "2025.1.3.140");
  assert_string_equal(hone_facts_get_meta(f)->device, "NVIDIA GeForce RTX 5060 Ti");
  assert_non_null(unmeasured(f, "kernels"));
  hone_profile_destroy(sound_profile(f));
  hone_facts_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(two_processes, begin, end),
      cmocka_unit_test_setup_teardown(cuda_graphs, begin, end),
      cmocka_unit_test_setup_teardown(old_schemas, begin, end),
      cmocka_unit_test_setup_teardown(without_kernels, begin, end),
      cmocka_unit_test_setup_teardown(hostile, begin, end),
      cmocka_unit_test(sample_adds_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
