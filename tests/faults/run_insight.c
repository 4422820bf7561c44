/* Scenarios of records: facts, profiles, findings, reports, other tools' files, history; and inputs as files.
 */
#include "cli/make_files.h"
#include "faults/scenarios.h"
#include "insight/sample.h"

#include <hone/hone.h>
#include <png.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <jpeglib.h> /* after stdio.h */

static void write_file(const char *folder, const char *name, const void *bytes, size_t size) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) abort();
}

/* Of functions that say it by NULL, false or NaN. */
static hone_status no_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
  return HONE_ERROR_MEMORY;
}

/* ---- facts to reports */

typedef struct page {
  size_t len;
  char text[32 << 20];
} page;

static hone_status keep(void *user, const char *data, size_t length, hone_error *error) {
  page *p = user;
  (void)error;
  if (length > sizeof p->text - p->len) abort();
  memcpy(p->text + p->len, data, length);
  p->len += length;
  return HONE_OK;
}

static hone_status facts_of(int level, hone_facts **out, hone_error *error) {
  *out = sample_facts_of(level, 4);
  return *out ? hone_facts_check(*out, error) : no_memory(error);
}

static hone_status facts(const char *folder, const char *out_folder, fault_answer *answer,
                         hone_error *error) {
  (void)folder, (void)out_folder;
  hone_facts *f = NULL, *again = NULL;
  char *text = NULL;
  size_t size = 0;
  hone_status status = facts_of(2, &f, error);
  if (status == HONE_OK) status = hone_facts_to_json(f, &text, &size, error);
  if (status == HONE_OK) answer_bytes(answer, "facts", text, size);
  if (status == HONE_OK) status = hone_facts_from_json(text, size, &again, error);
  free(text);
  text = NULL;
  if (status == HONE_OK) status = hone_facts_to_json(again, &text, &size, error);
  if (status == HONE_OK) answer_bytes(answer, "the same", text, size);
  free(text);
  hone_facts_destroy(again);
  hone_facts_destroy(f);
  return status;
}
const scenario scenario_facts = {"facts", NULL, facts, false};

static hone_status reports(const char *folder, const char *out_folder, fault_answer *answer,
                           hone_error *error) {
  (void)folder, (void)out_folder;
  static page p;
  hone_facts *f[2] = {0};
  hone_profile *profile[2] = {0};
  hone_findings *findings = NULL;
  hone_comparison *comparison = NULL;
  hone_forecast forecast;
  hone_status status = HONE_OK;
  for (int i = 0; i < 2 && status == HONE_OK; i++) {
    status = facts_of(2 * i, &f[i], error);
    if (status == HONE_OK) status = hone_profile_create(f[i], NULL, &profile[i], error);
  }
  hone_diagnose_options zh = {.language = HONE_LANGUAGE_ZH};
  if (status == HONE_OK) status = hone_diagnose(profile[0], &zh, &findings, error);
  if (status == HONE_OK) status = hone_findings_measure(findings, profile[0], profile[1], error);
  if (status == HONE_OK) status = hone_compare(profile[0], profile[1], NULL, &comparison, error);
  if (status == HONE_OK) {
    const double predicted = hone_findings_predict(findings, HONE_REMEDY_OPTIMIZER);
    const bool known = hone_forecast_make(profile[0], &forecast);
    answer_line(answer, "%zu findings, %zu rows", findings->count, comparison->row_count);
    answer_line(answer, "predicted %g, %d %g", predicted, known, forecast.gain_pct);
    if (isnan(predicted) || isnan(forecast.gain_pct)) status = no_memory(error);
  }
  const hone_report_input in = {
      .baseline = profile[0], .optimized = profile[1], .findings = findings, .comparison = comparison};
  for (int format = HONE_REPORT_TEXT; format <= HONE_REPORT_COMPARISON_JSON && status == HONE_OK; format++) {
    p.len = 0;
    status = hone_report_write(&in, (hone_report_format)format, keep, &p, error);
    if (status == HONE_OK) answer_bytes(answer, "report", p.text, p.len);
  }
  hone_comparison_destroy(comparison);
  hone_findings_destroy(findings);
  for (int i = 0; i < 2; i++) {
    hone_profile_destroy(profile[i]);
    hone_facts_destroy(f[i]);
  }
  return status;
}
const scenario scenario_reports = {"reports", NULL, reports, false};

/* ---- other tools' files */

static hone_status import(const char *folder, const char *out_folder, fault_answer *answer,
                          hone_error *error) {
  (void)folder, (void)out_folder;
#define DATA "tests/importers/data/"
  static const char *const run[][3] = {
      {DATA "trtexec/profile.json", DATA "trtexec/times_old.json", DATA "trtexec/layers.json"},
      {DATA "onnxruntime/cpu_new.json"},
      {DATA "onnxruntime/cuda_kernels.json"},
      {DATA "ascend/op_summary_0_1.csv", DATA "ascend/fusion_op_0_1.csv", DATA "ascend/api_statistic_0.csv"},
      {DATA "ascend/kernel_details.csv"},
      {DATA "ascend/msprof_1.json"},
      {DATA "pytorch/gpu.json"},
      {DATA "nsys/trace.sqlite"},
      {DATA "openvino/v2026_average.csv", DATA "openvino/v2026_report.csv"},
      {DATA "openvino/v2026_detailed.json", DATA "openvino/v2026_report.json"},
      {DATA "onednn/openvino_v3.txt"},
      {DATA "ncu/details.csv"},
  };
  hone_status status = HONE_OK;
  for (size_t i = 0; i < sizeof run / sizeof *run && status == HONE_OK; i++) {
    hone_facts *f = NULL;
    char *text = NULL;
    size_t n = 0, size = 0;
    while (n < 3 && run[i][n]) n++;
    status = hone_import_files(run[i], n, NULL, &f, error);
    if (status == HONE_OK) status = hone_facts_to_json(f, &text, &size, error);
    if (status == HONE_OK) answer_bytes(answer, run[i][0], text, size);
    free(text);
    hone_facts_destroy(f);
  }
  return status;
}
const scenario scenario_import = {"import", NULL, import, false};

/* ---- history */

static const char *run_report(char *buf, size_t size, int i) {
  snprintf(buf, size,
           "{\"commit\": \"c%d\", \"model\": \"a.onnx\", \"tag\": \"t\", \"device\": \"cpu\", \"batch\": 1, "
           "\"avg_latency_ms\": %d, \"median_latency_ms\": %d, \"p95_latency_ms\": %d, \"cv\": 0.01, "
           "\"profiling_date\": \"2026-01-0%dT00:00:00Z\"}",
           i, 10 + i, 10 + i, 12 + i, i + 1);
  return buf;
}

static hone_status history(const char *folder, const char *out_folder, fault_answer *answer,
                           hone_error *error) {
  (void)folder;
  static page p;
  char path[400], text[600];
  hone_history *h = NULL;
  hone_records r = {0}, one = {0};
  int64_t id = 0;
  size_t removed = 0;
  snprintf(path, sizeof path, "%s/history.db", out_folder);
  hone_status status = hone_history_open(path, true, &h, error);
  for (int i = 0; i < 4 && status == HONE_OK; i++) {
    run_report(text, sizeof text, i);
    status = hone_history_add(h, text, strlen(text), i == 2 ? "mine" : NULL, &id, error);
  }
  if (status == HONE_OK) status = hone_history_remove(h, &id, 1, &removed, error);
  hone_history_close(h);
  h = NULL;
  if (status == HONE_OK) status = hone_history_open(path, false, &h, error);
  if (status == HONE_OK)
    status = hone_history_find(h, &(hone_history_query){.model = "*.onnx", .reports = true}, &r, error);
  for (size_t i = 0; i < r.count && status == HONE_OK; i++)
    answer_line(answer, "%s %s %g %s", r.items[i].commit, r.items[i].tag, r.items[i].avg_latency_ms,
                r.items[i].report);
  p.len = 0;
  if (status == HONE_OK) status = hone_history_html(&r, keep, &p, error);
  if (status == HONE_OK) answer_bytes(answer, "page", p.text, p.len);
  if (status == HONE_OK) status = hone_record_parse(text, strlen(text), &one, error);
  if (status == HONE_OK) answer_line(answer, "%zu removed, %s", removed, one.items[0].model);
  hone_records_free(&one);
  hone_records_free(&r);
  hone_history_close(h);
  return status;
}
const scenario scenario_history = {"history", NULL, history, true};

static hone_status statistics(const char *folder, const char *out_folder, fault_answer *answer,
                              hone_error *error) {
  (void)folder, (void)out_folder;
  double old_ms[24], new_ms[24], at[24];
  for (int i = 0; i < 24; i++)
    at[i] = i, old_ms[i] = 10 + 0.01 * (i * 7 % 11), new_ms[i] = 11 + 0.01 * (i * 5 % 13);
  hone_gate_result pairs, sets;
  hone_drift drift = {0};
  hone_sample_stats stats = {0};
  hone_status status = hone_gate_pairs(old_ms, new_ms, 24, NULL, &pairs, error);
  if (status == HONE_OK) status = hone_gate_sets(old_ms, 24, new_ms, 24, NULL, &sets, error);
  if (status == HONE_OK &&
      (!hone_drift_compute(at, old_ms, 24, &drift) || !hone_stats_compute(old_ms, 24, &stats))) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "false"};
    return HONE_ERROR_MEMORY;
  }
  if (status == HONE_OK)
    answer_line(answer, "%d %g %d %g %g %g", (int)pairs.verdict, pairs.change, (int)sets.verdict, sets.change,
                drift.slope, stats.p95);
  return status;
}
const scenario scenario_statistics = {"statistics", NULL, statistics, false};

/* ---- inputs as files */

static void write_inputs(const char *folder) {
  uint8_t npy[128 + 768] = {0}, file[4096], rgb[6 * 5 * 3];
  npy_header((char *)npy, 128, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 8, 8), }");
  for (size_t i = 0; i < 192; i++) memcpy(npy + 128 + 4 * i, &(float){(float)i}, 4);
  write_file(folder, "x.npy", npy, sizeof npy);
  write_file(folder, "x.npz", file, make_zip(file, npy, sizeof npy, true, sizeof npy));
  for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37);
  png_image image = {.version = PNG_IMAGE_VERSION, .width = 6, .height = 5, .format = PNG_FORMAT_RGB};
  png_alloc_size_t n = sizeof file;
  if (!png_image_write_to_memory(&image, file, &n, 0, rgb, 0, NULL)) abort();
  write_file(folder, "x.png", file, n);
  struct jpeg_compress_struct c = {0};
  struct jpeg_error_mgr e;
  unsigned char *jpeg = NULL;
  unsigned long size = 0;
  c.err = jpeg_std_error(&e);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, &jpeg, &size);
  c.image_width = 6, c.image_height = 5, c.input_components = 3, c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  for (int y = 0; y < 5; y++) jpeg_write_scanlines(&c, (JSAMPROW[]){rgb + 18 * y}, 1);
  jpeg_finish_compress(&c);
  write_file(folder, "x.jpg", jpeg, size);
  jpeg_destroy_compress(&c);
  free(jpeg);
}

static hone_status data(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error) {
  static const char *const names[] = {"x.npy", "x.npz", "x.png", "x.jpg"};
  const hone_tensor_desc want = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 8, 8});
  const hone_tensor_desc texts = hone_desc(HONE_DTYPE_STRING, 1, (const int64_t[]){4});
  char path[400];
  hone_data d = {0};
  hone_status status = HONE_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names && status == HONE_OK; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    status = hone_data_load(path, "x", &want, NULL, &d, error);
    if (status == HONE_OK) {
      answer_bytes(answer, names[i], d.tensor.data, 4 * 192);
      snprintf(path, sizeof path, "%s/%zu.npy", out_folder, i);
      status = hone_data_save_npy(&d.tensor, path, error);
      hone_data_free(&d);
    }
  }
  if (status == HONE_OK) status = hone_data_random("s", &texts, 0, 3, &d, error);
  if (status == HONE_OK) {
    answer_bytes(answer, "text", ((hone_string *)d.tensor.data)[3].ptr,
                 ((hone_string *)d.tensor.data)[3].len);
    hone_data_free(&d);
  }
  return status;
}
const scenario scenario_data = {"data", write_inputs, data, false};

/* ---- labelled data: class folders, and boxes as one document */

static void write_set(const char *folder) {
  static const char coco[] =
      "{\"images\": [{\"id\": 1, \"file_name\": \"x.png\"}], \"categories\": [{\"id\": 2, \"name\": "
      "\"cat\"}],"
      "\"annotations\": [{\"image_id\": 1, \"category_id\": 2, \"bbox\": [1, 1, 2, 2]}]}";
  static const char *const classes[] = {"cat", "dog"};
  char path[400];
  for (size_t i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, classes[i]);
    if (mkdir(path, 0777) != 0) abort();
    write_inputs(path);
  }
  write_file(folder, "boxes.json", coco, sizeof coco - 1);
}

static hone_status dataset(const char *folder, const char *out_folder, fault_answer *answer,
                           hone_error *error) {
  const hone_tensor_desc want = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 8, 8});
  char labels[400], pictures[400];
  (void)out_folder;
  snprintf(labels, sizeof labels, "%s/boxes.json", folder);
  snprintf(pictures, sizeof pictures, "%s/cat", folder);
  for (int boxes = 0; boxes < 2; boxes++) {
    const char *path = boxes ? pictures : folder;
    hone_dataset *set = NULL;
    hone_status status = hone_dataset_open(
        &(hone_dataset_options){.paths = &path, .n_paths = 1, .labels = boxes ? labels : NULL}, &set, error);
    for (uint64_t i = 0; status == HONE_OK && i < hone_dataset_samples(set); i++) {
      hone_data d = {0};
      hone_sample s;
      status = hone_dataset_load(set, i, &want, NULL, &d, NULL, error);
      if (status == HONE_OK && hone_dataset_sample(set, i, &s))
        answer_line(answer, "%u %u %g", s.cls, s.n_boxes, (double)((float *)d.tensor.data)[5]);
      hone_data_free(&d);
    }
    hone_dataset_close(set);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
const scenario scenario_dataset = {"dataset", write_set, dataset, false};
