/* Optimises a model and shows what the passes did: passes_tool [-l LEVEL] [-p GLOBS] [-v] [-t | -T]
 * [-o OUT] FILE(.onnx|.txt)  -v verifies after every pass, -t prints the graph, -T with types, -o writes
 * ONNX. */
#include "base/error.h"
#include "base/os.h"
#include "model/ir/text.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_report(const hn_pass_report *r, hn_str *out) {
  for (int hit = 1; hit >= 0; hit--)
    for (size_t i = 0; i < r->records.len; i++) {
      const hn_pass_record *k = &r->records.ptr[i];
      if (k->hit == (hit == 1))
        hn_str_printf(out, "%s %s: %s [%s]\n", hit ? "hit " : "near", k->pass, k->reason, k->nodes);
    }
  hn_str_printf(out, "nodes %u -> %u in %u rounds\n", r->nodes_before, r->nodes_after, r->rounds);
}

int main(int argc, char **argv) {
  hn_optimize_options o = {.level = 2, .check_each = true};
  const char *file = NULL, *out = NULL;
  bool text = false, types = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-l") == 0 && i + 1 < argc)
      o.level = atoi(argv[++i]);
    else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc)
      o.passes = argv[++i];
    else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
      out = argv[++i];
    else if (strcmp(argv[i], "-v") == 0)
      o.verify_each = true;
    else if (strcmp(argv[i], "-t") == 0)
      text = true;
    else if (strcmp(argv[i], "-T") == 0)
      text = types = true;
    else
      file = argv[i];
  }
  if (!file) return 2;
  hn_model *m = NULL;
  hn_file map = {0};
  hone_error error = {0};
  hn_pass_report report = {0};
  hn_str s = {0};
  size_t len = strlen(file);
  hone_status status;
  if (len > 4 && strcmp(file + len - 4, ".txt") == 0) {
    status = hn_file_map(file, NULL, HN_FILE_MODEL, &map, &error);
    if (status == HONE_OK) status = hn_model_parse(file, (const char *)map.data, map.size, &m, &error);
  } else
    status = hn_onnx_load(file, &m, &error);
  if (status == HONE_OK) status = hn_model_ready(m, &error);
  if (status == HONE_OK) status = hn_optimize(m, &o, &report, &error);
  if (status == HONE_OK && out) status = hn_onnx_save(m, out, &error);
  if (m && text) hn_model_print(m, &(hn_print_options){.types = types}, &s);
  put_report(&report, &s);
  puts(s.ptr ? s.ptr : "");
  if (status != HONE_OK) {
    char line[1024];
    hone_error_format(&error, line, sizeof line);
    fprintf(stderr, "%s\n", line);
  } else
    for (size_t i = 0; i < report.totals.len; i++)
      if (report.totals.ptr[i].hits)
        printf("%-24s %4llu hits %8.1f ms\n", report.totals.ptr[i].pass,
               (unsigned long long)report.totals.ptr[i].hits, report.totals.ptr[i].seconds * 1e3);
  hn_str_free(&s);
  hn_pass_report_free(&report);
  hn_model_destroy(m);
  if (map.data) hn_file_unmap(&map);
  return hone_status_exit_code(status);
}
