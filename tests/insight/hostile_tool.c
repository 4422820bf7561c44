/* insight_hostile STRINGS FOLDER: a report whose every text field holds, somewhere, every line of STRINGS:
 * names of layers, nodes, lanes, counters, passes and so on have a row for each, fields that exist once hold
 * all. */
#include "insight/facts_table.h"

#include <hone/compare.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200, RUNS = 6 };

static char *lines[MOST];
static size_t line_count;
static char everything[MOST * 160];

static int read_lines(const char *path) {
  FILE *f = fopen(path, "rb");
  char line[512];
  if (!f) return 1;
  while (line_count < MOST && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    size_t used = strlen(everything);
    lines[line_count++] = strdup(line);
    snprintf(everything + used, sizeof everything - used, "%s ", line);
  }
  return fclose(f);
}

/* One network of a layer for each string; the second is twice as slow and has lost its last layer. */
static hone_facts *make(int slow) {
  hone_facts *f = hone_facts_create();
  hone_facts_meta meta = {.batch = 1, .threads = 1, .cores = 4, .runs = RUNS};
  for (const hn_fact_member *m = hn_fact_tables[HN_FACTS_meta].members(); m->key; m++)
    if (m->word == HN_FACT_TEXT) hn_fact_set_text(m, &meta, everything);
  hone_facts_set_meta(f, &meta);
  size_t n = line_count - (size_t)slow;
  for (size_t i = 0; i < n; i++) {
    const char *s = lines[i];
    int32_t at = (int32_t)i;
    hone_facts_add_node(f, &(hone_node_fact){.name = s, .op_type = s, .step = at, .reason = s});
    hone_facts_add_step(f, &(hone_step_fact){.name = s,
                                             .op_type = s,
                                             .tactic = s,
                                             .epilogue = s,
                                             .dtype = s,
                                             .shape_in = s,
                                             .shape_out = s,
                                             .layout = s,
                                             .flops = 1000000,
                                             .bytes = 100000,
                                             .anchor_node = at,
                                             .nodes = &at,
                                             .node_count = 1,
                                             .is_reference = i % 2,
                                             .is_reformat = i % 3 == 0,
                                             .alternatives = &(hone_alternative){s, s, 1},
                                             .alternative_count = 1});
    hone_facts_add_pass(f, &(hone_pass_fact){.name = s, .hits = 1});
    hone_facts_add_near_miss(f, &(hone_near_miss){.pass = s,
                                                  .reason = s,
                                                  .nodes = &at,
                                                  .node_count = 1,
                                                  .bytes_saved = 1 << 20,
                                                  .enable_level = 2});
    hone_facts_add_roof(
        f, &(hone_roof){.name = s, .threads = 1, .gflops = i % 2 ? 100 : 0, .gbs = i % 2 ? 0 : 10});
    hone_facts_add_counter(f, &(hone_counter){.name = s, .unit = s, .step = at, .value = 1});
    hone_facts_add_counter(f, &(hone_counter){.name = s, .unit = s, .step = -1, .value = 1});
    hone_facts_name_lane(f, at, s);
    hone_facts_add_version(f, s, s);
    hone_facts_add_unmeasured(f, s, s);
  }
  int64_t now = 0;
  for (int r = 0; r < RUNS; r++) {
    int64_t start = now;
    for (size_t i = 0; i < n; i++) {
      int64_t took = (1 + slow) * 100000 + (int64_t)(i * 100) + r;
      hone_facts_add_span(f, &(hone_span){.start_ns = now,
                                          .end_ns = now + took,
                                          .kind = HONE_SPAN_KERNEL,
                                          .iteration = r,
                                          .step = (int32_t)i,
                                          .name = lines[i],
                                          .op_type = lines[i],
                                          .tactic = lines[i]});
      now += took;
    }
    hone_facts_add_span(
        f, &(hone_span){.start_ns = start, .end_ns = now, .kind = HONE_SPAN_RUN, .iteration = r, .step = -1});
    hone_facts_add_wall(f, r, now - start);
  }
  return f;
}

static hone_status to_file(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  return fwrite(data, 1, length, user) == length ? HONE_OK : HONE_ERROR_IO;
}

int main(int argc, char **argv) {
  if (argc < 3 || read_lines(argv[1]) || line_count < 50) return 2;
  hone_error error = {0};
  hone_facts *before = make(0), *after = make(1);
  hone_profile *a = NULL, *b = NULL;
  hone_findings *findings = NULL;
  hone_comparison *comparison = NULL;
  hone_status status = hone_profile_create(before, NULL, &a, &error);
  if (!status) status = hone_profile_create(after, NULL, &b, &error);
  if (!status) status = hone_diagnose(a, NULL, &findings, &error);
  if (!status) status = hone_compare(a, b, NULL, &comparison, &error);
  hone_report_verdict verdict = {
      .verdict = everything, .inputs = 1, .first_different_node = everything, .note = everything};
  hone_report_input in = {.title = everything,
                          .baseline = a,
                          .optimized = b,
                          .findings = findings,
                          .comparison = comparison,
                          .verification = &verdict};
  const struct {
    const char *name;
    hone_report_format format;
  } files[] = {{"hostile.html", HONE_REPORT_HTML},
               {"hostile.txt", HONE_REPORT_TEXT},
               {"hostile.json", HONE_REPORT_JSON}};
  for (size_t i = 0; i < sizeof files / sizeof *files && !status; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", argv[2], files[i].name);
    FILE *f = fopen(path, "wb");
    status = f ? hone_report_write(&in, files[i].format, to_file, f, &error) : HONE_ERROR_IO;
    if (f && fclose(f)) status = HONE_ERROR_IO;
  }
  if (status) fprintf(stderr, "%s\n", error.what);
  printf("%zu strings, %zu findings\n", line_count, findings ? findings->count : 0);
  hone_comparison_destroy(comparison);
  hone_findings_destroy(findings);
  hone_profile_destroy(a);
  hone_profile_destroy(b);
  hone_facts_destroy(before);
  hone_facts_destroy(after);
  for (size_t i = 0; i < line_count; i++) free(lines[i]);
  return status != HONE_OK;
}
