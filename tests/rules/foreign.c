/* Files as other tools write them: few operators, made up here, in the words and columns of each tool. */
#include "rules/foreign.h"

#include "temporary.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RUNS = 12 };

/* A run is never exactly like the one before: up to two percent more, the same on every machine. */
static double vary(double us, int run, size_t i) {
  return us * (1 + 0.005 * (double)((run + (int)i * 3) % 5));
}

static FILE *begin_file(foreign *f, const char *name) {
  assert_true(f->count < FOREIGN_FILES);
  char *path = f->paths[f->count];
  strcpy(path, f->folder);
  strcat(path, "/");
  strcat(path, name);
  f->files[f->count++] = path;
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  return out;
}

static void end_file(FILE *out) { assert_int_equal(fclose(out), 0); }

/* ---- trtexec ---- */

void foreign_trt_profile(foreign *f, const foreign_row *rows, size_t n) {
  FILE *out = begin_file(f, "profile.json");
  fprintf(out, "[\n  { \"count\" : 100 }\n");
  for (size_t i = 0; i < n; i++)
    fprintf(out,
            ", { \"name\" : \"%s\", \"timeMs\" : %g, \"averageMs\" : %g, \"medianMs\" : %g, \"percentage\" : "
            "1 }\n",
            rows[i].name, rows[i].us / 10, rows[i].us / 1e3, rows[i].us / 1e3);
  fprintf(out, "]\n");
  end_file(out);
}

static void trt_tensor(FILE *out, const char *which, const char *dtype) {
  fprintf(out,
          "\"%s\": [{\"Name\": \"t\", \"Location\": \"Device\", \"Dimensions\": [1,64,56,56], "
          "\"Format/Datatype\": \"Row major linear %s format\"}], ",
          which, dtype);
}

void foreign_trt_layers(foreign *f, const foreign_row *rows, size_t n) {
  FILE *out = begin_file(f, "layers.json");
  fprintf(out, "{\"Layers\": [\n");
  for (size_t i = 0; i < n; i++) {
    const bool conv = strcmp(rows[i].type, "Convolution") == 0;
    fprintf(out, "%s{\"Name\": \"%s\", \"LayerType\": \"%s\", ", i ? ",\n" : "", rows[i].name,
            conv ? "CaskConvolution" : rows[i].type);
    trt_tensor(out, "Inputs", rows[i].dtype);
    trt_tensor(out, "Outputs", rows[i].dtype);
    if (conv)
      fprintf(out,
              "\"Kernel\": [3,3], \"Stride\": [1,1], \"OutMaps\": 64, \"Groups\": 1, \"Weights\": {\"Type\": "
              "\"%s\", \"Count\": 36864}, ",
              rows[i].dtype);
    fprintf(out, "\"ParameterType\": \"%s\"}", rows[i].type);
  }
  fprintf(out, "\n], \"Bindings\": [\"x\"]}\n");
  end_file(out);
}

void foreign_trt_times(foreign *f, double h2d_ms, double compute_ms, double d2h_ms) {
  FILE *out = begin_file(f, "times.json");
  fprintf(out, "[\n");
  for (int i = 0; i < 200; i++) {
    const double at = 300 + i * (h2d_ms + compute_ms + d2h_ms), c = at + h2d_ms, d = c + compute_ms;
    fprintf(out,
            "%s{ \"startEnqMs\" : %g, \"endEnqMs\" : %g, \"startH2dMs\" : %g, \"endH2dMs\" : %g, "
            "\"startComputeMs\" "
            ": %g, \"endComputeMs\" : %g, \"startD2hMs\" : %g, \"endD2hMs\" : %g, \"h2dMs\" : %g, "
            "\"computeMs\" : "
            "%g, \"d2hMs\" : %g, \"latencyMs\" : %g }\n",
            i ? ", " : "  ", at - 0.1, at - 0.05, at, c, c, d, d, d + d2h_ms, h2d_ms, vary(compute_ms, i, 0),
            d2h_ms, h2d_ms + compute_ms + d2h_ms);
  }
  fprintf(out, "]\n");
  end_file(out);
}

/* ---- ONNX Runtime ---- */

void foreign_ort(foreign *f, const foreign_row *rows, size_t n, double gap_us) {
  FILE *out = begin_file(f, "onnxruntime.json");
  double t = 5000;
  fprintf(out,
          "[\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :900,\"ts\" :1,\"ph\" : \"X\",\"name\" "
          ":\"session_initialization\",\"args\" : {}}");
  for (int run = 0; run < RUNS; run++) {
    const double start = t;
    for (size_t i = 0; i < n; i++) {
      const foreign_row *r = &rows[i];
      const double us = vary(r->us, run, i);
      const char *provider = r->where ? r->where : "CPUExecutionProvider";
      const bool kernel =
          strcmp(provider, "CUDAExecutionProvider") == 0 && strncmp(r->type, "Memcpy", 6) != 0;
      t += gap_us;
      fprintf(
          out,
          ",\n{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :7,\"dur\" :%.0f,\"ts\" :%.0f,\"ph\" : \"X\",\"name\" "
          ":\"%s_kernel_time\",\"args\" : {\"op_name\" : \"%s\",\"provider\" : \"%s\",\"node_index\" : "
          "\"%zu\",\"activation_size\" : \"802816\",\"parameter_size\" : \"0\",\"output_size\" : "
          "\"802816\",\"input_type_shape\" : [{\"%s\":[1,64,56,56]}],\"output_type_shape\" : "
          "[{\"%s\":[1,64,56,56]}]}}",
          kernel ? us / 4 : us, t, r->name, r->type, provider, i, r->dtype, r->dtype);
      if (kernel)
        fprintf(
            out,
            ",\n{\"cat\" : \"Kernel\",\"pid\" :-1,\"tid\" :-1,\"dur\" :%.0f,\"ts\" :%.0f,\"ph\" : "
            "\"X\",\"name\" "
            ":\"k_%s\",\"args\" : {\"op_name\" : \"%s\",\"parent_name\" : \"%s_kernel_time\",\"stream\" : "
            "\"7\",\"grid_x\" : \"64\",\"grid_y\" : \"2\",\"grid_z\" : \"1\",\"block_x\" : "
            "\"128\",\"block_y\" : "
            "\"1\",\"block_z\" : \"1\"}}",
            us, t + 2, r->type, r->type, r->name);
      t += us + (kernel ? 3 : 0);
    }
    fprintf(
        out,
        ",\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :%.0f,\"ts\" :%.0f,\"ph\" : \"X\",\"name\" "
        ":\"model_run\",\"args\" : {}}",
        t - start + 4, start - 2);
    t += 100;
  }
  fprintf(out, "\n]\n");
  end_file(out);
}

/* ---- PyTorch ---- */

static void kineto_event(FILE *out, const char *category, const char *name, bool device, double ts,
                         double dur, size_t id, const char *more) {
  fprintf(out,
          ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, "
          "\"dur\": "
          "%.3f, \"args\": {\"External id\": %zu, \"correlation\": %zu%s}}",
          category, name, device ? 0 : 5, device ? 7 : 5, ts, dur, id, id, more);
}

void foreign_kineto(foreign *f, const foreign_row *rows, size_t n, bool marked, double idle_us) {
  FILE *out = begin_file(f, "trace.json");
  double t = 1000;
  size_t id = 1;
  fprintf(
      out,
      "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU X\"}], \"traceEvents\": [\n"
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 5, \"args\": {\"name\": \"python\"}}");
  for (int run = 0; run < RUNS; run++) {
    const double start = t;
    double device = t + 40;
    for (size_t i = 0; i < n; i++, id++) {
      const foreign_row *r = &rows[i];
      const double us = vary(r->us, run, i);
      const bool copy = r->where && strcmp(r->where, "copy") == 0,
                 host = r->where && strcmp(r->where, "host") == 0;
      if (host) { /* the device waits for it */
        t = t > device ? t : device;
        kineto_event(out, "user_annotation", r->name, false, t, us, 0, "");
        t += us;
        device = t;
        continue;
      }
      kineto_event(out, "cpu_op", r->type, false, t, 12, id, "");
      kineto_event(out, "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", false, t + 4, 4, id,
                   "");
      t += 14;
      if (device < t) device = t;
      kineto_event(out, copy ? "gpu_memcpy" : "kernel", r->name, true, device, us, id,
                   copy ? ", \"device\": 0, \"stream\": 7, \"bytes\": 6000000"
                        : ", \"device\": 0, \"stream\": 7, \"grid\": [64, 2, 1], \"block\": [128, 1, 1]");
      device += us + 0.5;
    }
    if (t < device) t = device;
    if (marked) {
      char name[32];
      snprintf(name, sizeof name, "ProfilerStep#%d", run);
      kineto_event(out, "user_annotation", name, false, start - 1, t - start + 2, 0, "");
    }
    t += 4 + idle_us;
  }
  fprintf(out, "\n]}\n");
  end_file(out);
}

/* ---- Nsight Systems ---- */

static void sql(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void sql(sqlite3 *db, const char *format, ...) {
  char text[1024], *message = NULL;
  va_list ap;
  va_start(ap, format);
  assert_in_range(vsnprintf(text, sizeof text, format, ap), 1, sizeof text - 1);
  va_end(ap);
  if (sqlite3_exec(db, text, NULL, NULL, &message)) fail_msg("%s: %s", message, text);
}

void foreign_nsys(foreign *f, const foreign_row *rows, size_t n, bool marked, double idle_us) {
  end_file(begin_file(f, "report.sqlite"));
  sqlite3 *db;
  double t = 1000;
  int id = 1;
  assert_int_equal(sqlite3_open(f->paths[f->count - 1], &db), SQLITE_OK);
  sql(db,
      "BEGIN;CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,"
      "streamId INTEGER,correlationId INTEGER,globalPid INTEGER,demangledName INTEGER,shortName INTEGER,"
      "gridX INTEGER,gridY INTEGER,gridZ INTEGER,blockX INTEGER,blockY INTEGER,blockZ INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,"
      "streamId INTEGER,correlationId INTEGER,globalPid INTEGER,bytes INTEGER,copyKind INTEGER,srcKind "
      "INTEGER,dstKind INTEGER);");
  sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER,end INTEGER,eventClass INTEGER,globalTid "
          "INTEGER,"
          "correlationId INTEGER,nameId INTEGER,returnValue INTEGER);"
          "CREATE TABLE NVTX_EVENTS(start INTEGER,end INTEGER,eventType INTEGER,text TEXT,globalTid "
          "INTEGER,textId "
          "INTEGER);CREATE TABLE TARGET_INFO_GPU(id INTEGER,name TEXT);INSERT INTO TARGET_INFO_GPU "
          "VALUES(0,'GPU X');"
          "INSERT INTO StringIds VALUES(900,'cudaLaunchKernel_v7000'),(901,'cudaStreamSynchronize_v3020');");
  for (size_t i = 0; i < n; i++) sql(db, "INSERT INTO StringIds VALUES(%zu,'%s')", i + 1, rows[i].name);
  for (int run = 0; run < RUNS; run++) {
    const double start = t;
    for (size_t i = 0; i < n; i++, id++) {
      const foreign_row *r = &rows[i];
      const double us = vary(r->us, run, i), at = t + 6;
      const bool copy = r->where && strcmp(r->where, "copy") == 0,
                 wait = r->where && strcmp(r->where, "wait") == 0;
      sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(%.0f,%.0f,0,167772170,%d,%d,0)", t * 1e3,
          (wait ? t + us : t + 4) * 1e3, id, wait ? 901 : 900);
      if (wait) {
        t += us;
        continue;
      }
      if (copy) /* of pageable memory */
        sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(%.0f,%.0f,0,1,7,%d,167772160,6000000,1,0,2)",
            at * 1e3, (at + us) * 1e3, id);
      else
        sql(db,
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
            "VALUES(%.0f,%.0f,0,1,7,%d,167772160,%zu,%zu,64,2,1,128,1,1)",
            at * 1e3, (at + us) * 1e3, id, i + 1, i + 1);
      t += us + 1;
    }
    if (marked)
      sql(db, "INSERT INTO NVTX_EVENTS VALUES(%.0f,%.0f,59,'iteration %d',167772170,NULL)", (start - 1) * 1e3,
          (t + 8) * 1e3, run);
    t += 12 + idle_us;
  }
  sql(db, "COMMIT");
  sqlite3_close(db);
}

/* ---- Nsight Compute ---- */

void foreign_ncu(foreign *f, const foreign_row *rows, size_t n) {
  FILE *out = begin_file(f, "raw.csv");
  fprintf(
      out,
      "==PROF== Connected to process 1234 (/usr/bin/app)\n\"ID\",\"Process ID\",\"Process Name\",\"Host "
      "Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\","
      "\"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__time_duration.sum\",\"sm__"
      "throughput.avg.pct_of_peak_sustained_elapsed\"\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
      "\"\",\"%%\",\"usecond\",\"%%\"\n");
  for (size_t i = 0; i < n; i++)
    fprintf(out,
            "\"%zu\",\"1234\",\"app\",\"127.0.0.1\",\"%s\",\"1\",\"7\",\"(128, 1, 1)\",\"(64, 8, "
            "1)\",\"0\",\"9.0\","
            "\"%g\",\"%g\",\"%g\"\n",
            i, rows[i].name, rows[i].memory, rows[i].us, rows[i].compute);
  end_file(out);
}

/* ---- Ascend ---- */

void foreign_ascend(foreign *f, const foreign_row *rows, size_t n, int runs, double gap_us) {
  FILE *out = begin_file(f, "op_summary_0_1.csv");
  double t = 1e6;
  fprintf(out, "Device_id,Model Name,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,OP State,Task "
               "Type,Task Start "
               "Time(us),Task Duration(us),Task Wait Time(us),Block Dim,Input Shapes,Input Data Types,Input "
               "Formats,Output Shapes,Output Data Types,Output Formats\n");
  for (int run = 0; run < runs; run++)
    for (size_t i = 0; i < n; i++) {
      const double us = vary(rows[i].us, run, i);
      fprintf(out,
              "0,net,1,%zu,5,%d,%s,%s,static,%s,%.3f,%.3f,0,8,\"\"\"1,64,56,56\"\"\",%s,NCHW,\"\"\"1,64,56,"
              "56\"\"\",%s,"
              "NCHW\n",
              i, run + 1, rows[i].name, rows[i].type, rows[i].where ? rows[i].where : "AI_CORE", t, us,
              rows[i].dtype, rows[i].dtype);
      t += us + gap_us;
    }
  end_file(out);
}

/* ---- OpenVINO ---- */

void foreign_openvino(foreign *f, const foreign_row *rows, size_t n) {
  FILE *out = begin_file(f, "benchmark_average_counters_report.csv");
  double sum = 0;
  fprintf(out, "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n");
  for (size_t i = 0; i < n; i++) {
    fprintf(out, "%s;EXECUTED;%s;%s;%.3f;%.3f\n", rows[i].name, rows[i].type, rows[i].where, rows[i].us / 1e3,
            rows[i].us / 1e3);
    sum += rows[i].us / 1e3;
  }
  fprintf(out, "Total;;;;%.3f;%.3f\n", sum, sum);
  end_file(out);
}

/* ---- oneDNN ---- */

void foreign_onednn(foreign *f, const foreign_row *rows, size_t n) {
  FILE *out = begin_file(f, "verbose.txt");
  fprintf(
      out,
      "onednn_verbose,v1,info,oneDNN v3.7.0 (commit "
      "abc)\nonednn_verbose,v1,info,template:timestamp,operation,"
      "engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_"
      "time\n");
  double t = 1795272158542;
  for (int run = 0; run < RUNS; run++)
    for (size_t i = 0; i < n; i++) {
      const double us = vary(rows[i].us, run, i);
      fprintf(out,
              "onednn_verbose,v1,%.6f,primitive,exec,cpu,%s,%s,forward_inference,src:%s::blocked:acdb::f0,,,%"
              "s,%g\n",
              t, rows[i].type, rows[i].where, rows[i].dtype, rows[i].name, us / 1e3);
      t += us / 1e3; /* stamps are starts */
    }
  end_file(out);
}

/* ---- from files to findings ---- */

void foreign_begin(foreign *f) {
  memset(f, 0, sizeof *f);
  assert_non_null(mkdtemp(temporary(f->folder, sizeof f->folder, "hone-foreign")));
}

void foreign_diagnose(foreign *f, hone_language language) {
  hone_error error = {0};
  if (hone_import_files(f->files, f->count, NULL, &f->facts, &error))
    fail_msg("%s (%s)", error.what, error.where);
  if (hone_profile_create(f->facts, NULL, &f->profile, &error)) fail_msg("%s (%s)", error.what, error.where);
  assert_int_equal(
      hone_diagnose(f->profile, &(hone_diagnose_options){.language = language}, &f->findings, &error),
      HONE_OK);
}

void foreign_end(foreign *f) {
  hone_findings_destroy(f->findings);
  hone_profile_destroy(f->profile);
  hone_facts_destroy(f->facts);
  for (size_t i = 0; i < f->count; i++) unlink(f->files[i]);
  rmdir(f->folder);
}
