/* insight_sample FOLDER: writes every report of the sample profiles, for the browser test and for eyes. */
#include "insight/sample.h"

#include <hone/compare.h>

#include <stdio.h>
#include <string.h>

static hone_status to_file(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  FILE *file = fopen(user, "wb");
  if (!file) return HONE_ERROR_IO;
  size_t written = fwrite(data, 1, length, file);
  return fclose(file) == 0 && written == length ? HONE_OK : HONE_ERROR_IO;
}

static hone_status to_stdout(void *user, const char *data, size_t length, hone_error *error) {
  (void)user, (void)error;
  return fwrite(data, 1, length, stdout) == length ? HONE_OK : HONE_ERROR_IO;
}

/* Four steps of one millisecond, of which three have hardware counters, and two of nothing before the third;
 * explained in Chinese. */
static hone_status gaps_page(char *path, hone_error *error) {
  static const char *const names[] = {"a", "b", "c", "d"};
  hone_facts *f = hone_facts_create();
  hone_profile *p = NULL;
  hone_findings *findings = NULL;
  hone_facts_set_meta(f, &(hone_facts_meta){.tool = "hone", .model = "gaps.onnx", .opt_level = 2});
  for (int i = 0; i < 4; i++)
    hone_facts_add_step(f, &(hone_step_fact){.name = names[i], .op_type = "Relu", .anchor_node = -1});
  for (int i = 0; i < 3; i++) {
    hone_facts_add_counter(f, &(hone_counter){"compute_pct_of_peak", "%", i, 5 + 35 * i});
    hone_facts_add_counter(f, &(hone_counter){"memory_pct_of_peak", "%", i, 12.5});
    hone_facts_add_counter(f, &(hone_counter){"l2_hit_pct", "%", i, 77});
  }
  for (int run = 0; run < 12; run++) {
    const int64_t start = run * 10000000;
    for (int i = 0; i < 4; i++) {
      const int64_t from = start + i * 1000000 + (i >= 2 ? 2000000 : 0);
      hone_facts_add_span(f, &(hone_span){.start_ns = from,
                                          .end_ns = from + 1000000,
                                          .kind = HONE_SPAN_KERNEL,
                                          .iteration = run,
                                          .step = i});
    }
    hone_facts_add_span(f, &(hone_span){.start_ns = start,
                                        .end_ns = start + 6000000,
                                        .kind = HONE_SPAN_RUN,
                                        .iteration = run,
                                        .step = -1});
    hone_facts_add_wall(f, run, 6000000);
  }
  hone_status status = hone_profile_create(f, NULL, &p, error);
  if (!status)
    status = hone_diagnose(p, &(hone_diagnose_options){.language = HONE_LANGUAGE_ZH}, &findings, error);
  const hone_report_input in = {.baseline = p, .findings = findings};
  if (!status) status = hone_report_write(&in, HONE_REPORT_HTML, to_file, path, error);
  hone_findings_destroy(findings);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  hone_error error = {0};
  hone_facts *before = sample_facts(0), *after = sample_facts(2);
  hone_profile *a = NULL, *b = NULL;
  hone_findings *findings = NULL;
  hone_comparison *comparison = NULL;
  char path[1024], line[1024];
  hone_status status = hone_profile_create(before, NULL, &a, &error);
  if (!status) status = hone_profile_create(after, NULL, &b, &error);
  if (!status) status = hone_diagnose(a, NULL, &findings, &error);
  if (!status) status = hone_findings_measure(findings, a, b, &error);
  if (!status) status = hone_compare(a, b, NULL, &comparison, &error);
  if (status) goto done;
  hone_report_verdict verdict = {
      .verdict = "same", .inputs = 100, .max_abs = 3.1e-6, .max_rel = 4.2e-7, .tolerance = 1e-4};
  hone_report_input pair = {.baseline = a, .optimized = b, .findings = findings, .verification = &verdict};
  pair.has_prediction = true;
  pair.predicted_gain_pct = hone_findings_predict(findings, HONE_REMEDY_OPTIMIZER);
  pair.comparison = comparison;
  pair.unicode = true;
  pair.max_layers = 12;
  pair.colors = argc > 2;
  hone_report_input single = {.baseline = b};
  const struct {
    const char *name;
    hone_report_format format;
    const hone_report_input *input;
  } files[] = {{"report.html", HONE_REPORT_HTML, &pair},
               {"report.json", HONE_REPORT_JSON, &pair},
               {"trace.json", HONE_REPORT_TRACE, &pair},
               {"layers.csv", HONE_REPORT_CSV, &pair},
               {"findings.json", HONE_REPORT_FINDINGS_JSON, &pair},
               {"comparison.json", HONE_REPORT_COMPARISON_JSON, &pair},
               {"profile.json", HONE_REPORT_PROFILE_JSON, &single},
               {"single.html", HONE_REPORT_HTML, &single}};
  for (size_t i = 0; i < sizeof files / sizeof *files && !status; i++) {
    snprintf(path, sizeof path, "%s/%s", argv[1], files[i].name);
    status = hone_report_write(files[i].input, files[i].format, to_file, path, &error);
  }
  snprintf(path, sizeof path, "%s/gaps.html", argv[1]);
  if (!status) status = gaps_page(path, &error);
  if (!status) status = hone_report_write(&pair, HONE_REPORT_TEXT, to_stdout, NULL, &error);
done:
  if (status) {
    hone_error_format(&error, line, sizeof line);
    fprintf(stderr, "%s (%s)\n", line, hone_status_name(status));
  }
  hone_comparison_destroy(comparison);
  hone_findings_destroy(findings);
  hone_profile_destroy(a);
  hone_profile_destroy(b);
  hone_facts_destroy(before);
  hone_facts_destroy(after);
  return status != HONE_OK;
}
