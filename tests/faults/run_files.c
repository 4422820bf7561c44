/* Scenarios of files that are made for them: packed records, data beside a network, an old history. */
#include "faults/scenarios.h"
#include "insight/sample.h"
#include "onnx/pb.h"

#include <hone/hone.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static const char *join(char *buf, size_t size, const char *folder, const char *name) {
  snprintf(buf, size, "%s/%s", folder, name);
  return buf;
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t size) {
  char path[400];
  FILE *f = fopen(join(path, sizeof path, folder, name), "wb");
  if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) abort();
}

/* ---- records, packed and hone's own */

static void write_packed(const char *folder, const char *name, const char *from) {
  static char bytes[1 << 20];
  char path[400];
  FILE *f = fopen(from, "rb");
  gzFile to = gzopen(join(path, sizeof path, folder, name), "wb");
  size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
  if (!n || n == sizeof bytes || !to || gzwrite(to, bytes, (unsigned)n) != (int)n) abort();
  if (gzclose(to) != Z_OK || fclose(f) != 0) abort();
}

static void write_records(const char *folder) {
  write_packed(folder, "torch.json.gz", "tests/importers/data/pytorch/gpu.json");
  write_packed(folder, "ascend.csv.gz", "tests/importers/data/ascend/kernel_details.csv");
  hone_facts *f = sample_facts_of(2, 4);
  char *text = NULL;
  size_t size = 0;
  if (!f || hone_facts_to_json(f, &text, &size, NULL) != HONE_OK) abort();
  write_file(folder, "facts.json", text, size);
  free(text);
  hone_facts_destroy(f);
}

static hone_status import_packed(const char *folder, const char *out_folder, fault_answer *answer,
                                 hone_error *error) {
  (void)out_folder;
  static const char *const names[] = {"torch.json.gz", "ascend.csv.gz", "facts.json"};
  hone_status status = HONE_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names && status == HONE_OK; i++) {
    char path[400], *text = NULL;
    const char *file = join(path, sizeof path, folder, names[i]);
    hone_facts *f = NULL;
    size_t size = 0, steps = 0, spans = 0;
    status = hone_import_files(&file, 1, NULL, &f, error);
    if (status == HONE_OK) status = hone_facts_to_json(f, &text, &size, error);
    if (status == HONE_OK) {
      hone_facts_steps(f, &steps);
      hone_facts_spans(f, &spans);
      answer_line(answer, "%s: %zu steps, %zu spans", names[i], steps, spans);
      answer_bytes(answer, "facts", text, size);
    }
    free(text);
    hone_facts_destroy(f);
  }
  return status;
}
const scenario scenario_import_packed = {"import_packed", write_records, import_packed, false};

/* ---- a network whose data lies beside it */

static void write_external(const char *folder) {
  static const char *const entries[][2] = {{"location", "sub/w.bin"}, {"offset", "4"}, {"length", "12"}};
  char path[400];
  pb *t = pb_int(pb_tensor("w", 1, "3", NULL, 0), HN_ONNX_TENSOR_DATA_LOCATION, 1), *g = pb_graph();
  for (int i = 0; i < 3; i++)
    pb_put(t, HN_ONNX_TENSOR_EXTERNAL_DATA, pb_text(pb_text(pb_new(), 1, entries[i][0]), 2, entries[i][1]));
  pb_put(pb_put(g, HN_ONNX_GRAPH_NODE, pb_node("Add", "x w", "y")), HN_ONNX_GRAPH_INITIALIZER, t);
  const pb *file = pb_model(g);
  if (mkdir(join(path, sizeof path, folder, "sub"), 0777) != 0) abort();
  write_file(folder, "sub/w.bin", (const float[]){9, 10, 20, 30}, 16);
  write_file(folder, "external.onnx", file->ptr, file->len);
  pb_done();
}

static hone_status load_external(const char *folder, const char *out_folder, fault_answer *answer,
                                 hone_error *error) {
  char path[400];
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  const hone_tensor x = {.desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 3}),
                         .data = (float[]){1, 2, 3, 4, 5, 6}};
  const hone_tensor *list[] = {&x};
  hone_status status = hone_model_load(join(path, sizeof path, folder, "external.onnx"), &m, error);
  if (status == HONE_OK) status = hone_model_save(m, join(path, sizeof path, out_folder, "m.onnx"), error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  if (status == HONE_OK) status = hone_plan_create(engine, m, NULL, &plan, error);
  if (status == HONE_OK) status = hone_context_create(plan, &context, error);
  if (status == HONE_OK) status = hone_context_run(context, list, NULL, error);
  if (status == HONE_OK) answer_bytes(answer, "y", hone_context_output(context, 0)->data, 24);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}
const scenario scenario_load_external = {"load_external", write_external, load_external, false};

/* ---- a history of the first schema */

static const char first_schema[] =
    "PRAGMA application_id = 1213156933; CREATE TABLE runs(id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "\"commit\" TEXT, model TEXT, tag TEXT, machine TEXT, device TEXT, precision TEXT, flags TEXT, "
    "version TEXT, temperature_c_range TEXT, profiling_date TEXT, batch REAL, threads REAL, "
    "avg_latency_ms REAL NOT NULL, median_latency_ms REAL, p95_latency_ms REAL, cv REAL, throughput_fps "
    "REAL, "
    "h2d_ms_ratio REAL, post_ms_ratio REAL, memory_peak_mb REAL, report TEXT NOT NULL); "
    "PRAGMA user_version = 1; INSERT INTO runs(model, avg_latency_ms, median_latency_ms, report) "
    "VALUES('old.onnx', 7, 7, '{\"avg_latency_ms\": 7}')";

static void write_history(const char *folder) {
  char path[400];
  sqlite3 *db = NULL;
  if (sqlite3_open(join(path, sizeof path, folder, "old.db"), &db) != SQLITE_OK ||
      sqlite3_exec(db, first_schema, NULL, NULL, NULL) != SQLITE_OK || sqlite3_close(db) != SQLITE_OK)
    abort();
}

/* The old file climbs, is copied before, and takes a run. */
static hone_status migration(const char *folder, const char *out_folder, fault_answer *answer,
                             hone_error *error) {
  static const char report[] = "{\"model\": \"new.onnx\", \"avg_latency_ms\": 8}";
  char from[400], path[400];
  static char bytes[1 << 17];
  hone_history *h = NULL;
  hone_records r = {0};
  int64_t id = 0;
  FILE *f = fopen(join(from, sizeof from, folder, "old.db"), "rb");
  const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
  if (f) fclose(f);
  FILE *to = n ? fopen(join(path, sizeof path, out_folder, "history.db"), "wb") : NULL;
  const bool written = to && fwrite(bytes, 1, n, to) == n;
  if (!to || (fclose(to) != 0) | !written) { /* this program's own copying failed, not hone's */
    *error = (hone_error){.status = HONE_ERROR_IO, .what = "the test could not copy"};
    return HONE_ERROR_IO;
  }
  hone_status status = hone_history_open(path, true, &h, error);
  if (status == HONE_OK) status = hone_history_add(h, report, strlen(report), NULL, &id, error);
  if (status == HONE_OK) status = hone_history_find(h, &(hone_history_query){.reports = true}, &r, error);
  for (size_t i = 0; i < r.count && status == HONE_OK; i++)
    answer_line(answer, "%s %g", r.items[i].model, r.items[i].avg_latency_ms);
  hone_records_free(&r);
  hone_history_close(h);
  return status;
}
const scenario scenario_migration = {"migration", write_history, migration, true};
