/* Runs tests/passes/cases, a file for passes of one kind: a graph, what the passes make of it, and what they
 * say about it.
 *
 *   == name
 *   passes: fold_batch_norm      (globs as in hn_optimize_options; optional)
 *   level: 2                     (optional)
 *   lowered: 1                     (as for a model that is lowered at once, 2: for a processor, 3 and more:
 *                                  and codes are multiplied so much faster than floats; -1: for an
 *                                  accelerator that reads codes; optional)
 *   <graph>
 *   -- after
 *   <graph, without header>      (or "same")
 *   -- said
 *   hit fold_batch_norm: ...     (hits and near misses, in order)
 *
 * Every case is also verified numerically after each pass, checked for its invariants, and optimised a second
 * time, which must change nothing; its text must be read back to the same text. HONE_UPDATE_GOLDEN=1 writes
 * the files anew with what came out: look at the difference. A case whose level line is "patterns" runs the
 * pattern matcher of lowering instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/os.h"
#include "model/ir/text.h"
#include "optimize/match/patterns.h"
#include "optimize/passes/common/pass.h"
#include "optimize/passes/optimize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const folder = "tests/passes/cases";

typedef struct test_case {
  char name[96], passes[160], level[16], lowered[16];
  char *graph, *after, *said;
} test_case;

typedef HN_VEC(test_case) case_list;

static char *append(char *text, const char *line) {
  size_t n = text ? strlen(text) : 0;
  char *more = realloc(text, n + strlen(line) + 2);
  assert_non_null(more);
  strcpy(more + n, line);
  strcat(more, "\n");
  return more;
}

static void field(char *out, size_t size, const char *line, const char *key) {
  if (strncmp(line, key, strlen(key)) == 0) snprintf(out, size, "%s", line + strlen(key));
}

typedef struct case_file {
  char path[160];
  case_list list;
} case_file;

typedef HN_VEC(case_file) file_list;

static case_list read_cases(const char *path) {
  case_list list = {0};
  hone_error e = {0};
  hn_file f;
  if (hn_file_map(path, NULL, HN_FILE_MODEL, &f, &e) != HONE_OK) fail_msg("%s", e.what);
  char *all = strndup((const char *)f.data, f.size), *save = NULL;
  hn_file_unmap(&f);
  char **section = NULL;
  for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    test_case *c = list.len ? &list.ptr[list.len - 1] : NULL;
    if (strncmp(line, "== ", 3) == 0) {
      assert_true(hn_vec_push(&list, (test_case){.level = "2"}));
      c = &list.ptr[list.len - 1];
      snprintf(c->name, sizeof c->name, "%s", line + 3);
      section = &c->graph;
    } else if (!c)
      continue; /* the head of the file */
    else if (strcmp(line, "-- after") == 0)
      section = &c->after;
    else if (strcmp(line, "-- said") == 0)
      section = &c->said;
    else if (section == &c->graph && (strncmp(line, "passes: ", 8) == 0 || strncmp(line, "level: ", 7) == 0 ||
                                      strncmp(line, "lowered: ", 7) == 0)) {
      field(c->passes, sizeof c->passes, line, "passes: ");
      field(c->level, sizeof c->level, line, "level: ");
      field(c->lowered, sizeof c->lowered, line, "lowered: ");
    } else
      *section = append(*section, line);
  }
  free(all);
  return list;
}

static file_list read_files(void) {
  file_list files = {0};
  hone_error e = {0};
  char **names = NULL;
  size_t n = 0;
  if (hn_folder_list(folder, &names, &n, &e) != HONE_OK) fail_msg("%s", e.what);
  for (size_t i = 0; i < n; i++) {
    case_file f = {0};
    assert_true((size_t)snprintf(f.path, sizeof f.path, "%s/%s", folder, names[i]) < sizeof f.path);
    f.list = read_cases(f.path);
    assert_true(f.list.len > 0);
    assert_true(hn_vec_push(&files, f));
    hn_free(names[i]);
  }
  hn_free(names);
  return files;
}

static void free_files(file_list *files) {
  for (size_t i = 0; i < files->len; i++) {
    case_list *list = &files->ptr[i].list;
    for (size_t k = 0; k < list->len; k++) {
      free(list->ptr[k].graph);
      free(list->ptr[k].after);
      free(list->ptr[k].said);
    }
    hn_vec_free(list);
  }
  hn_vec_free(files);
}

static char *graph_text(const hn_model *m) {
  hn_str s = {0};
  assert_true(hn_graph_print(m->graph, &(hn_print_options){.max_elements = 16}, &s));
  return s.ptr;
}

static char *said(const hn_pass_report *r) {
  hn_str s = {0};
  for (size_t i = 0; i < r->records.len; i++)
    hn_str_printf(&s, "%s %s: %s\n", r->records.ptr[i].hit ? "hit" : "near", r->records.ptr[i].pass,
                  r->records.ptr[i].reason);
  hn_str_puts(&s, "");
  return s.ptr ? s.ptr : strdup("");
}

/* What is printed in full is read back, and then printed the same. */
static void round_trip(const char *name, const hn_model *m) {
  hn_str a = {0}, b = {0};
  hn_print_options all = {.max_elements = UINT32_MAX, .node_names = true};
  assert_true(hn_model_print(m, &all, &a));
  hn_model *again = net_parse(name, a.ptr);
  assert_true(hn_model_print(again, &all, &b));
  assert_string_equal(a.ptr, b.ptr);
  hn_model_destroy(again);
  hn_str_free(&a);
  hn_str_free(&b);
}

static hn_optimize_options options_of(const test_case *c) {
  const int lowered = atoi(c->lowered);
  return (hn_optimize_options){.level = atoi(c->level),
                               .passes = c->passes[0] ? c->passes : NULL,
                               .verify_each = true,
                               .lowered = lowered != 0,
                               .processor = lowered >= 2,
                               .codes = lowered<0, .codes_rate = lowered> 2 ? lowered : 0,
                               .check_each = true};
}

static void run_optimizer(const test_case *c, char **after, char **words) {
  hone_error e = {0};
  hn_pass_report r = {0}, again = {0};
  hn_model *m = net_parse(c->name, c->graph);
  char *before = graph_text(m);
  round_trip(c->name, m);
  const hn_optimize_options o = options_of(c);
  hone_status s = hn_optimize(m, &o, &r, &e);
  char line[900];
  hone_error_format(&e, line, sizeof line);
  if (s != HONE_OK) fail_msg("%s: %s", c->name, line);
  assert_true(r.fixed_point);
  round_trip(c->name, m);
  char *now = graph_text(m);
  *after = strcmp(now, before) == 0 ? strdup("same\n") : strdup(now);
  *words = said(&r);
  s = hn_optimize(m, &o, &again, &e);
  assert_int_equal(s, HONE_OK);
  for (size_t i = 0; i < again.records.len; i++)
    if (again.records.ptr[i].hit)
      fail_msg("%s: %s fires again: %s", c->name, again.records.ptr[i].pass, again.records.ptr[i].reason);
  free(now);
  free(before);
  hn_pass_report_free(&r);
  hn_pass_report_free(&again);
  hn_model_destroy(m);
}

/* Of a pattern, as `said` words it. */
static void hear(void *self, const hone_pattern_desc *pattern, const hone_match *match, bool hit,
                 const char *reason) {
  assert_non_null(hone_match_node(match, 0));
  hn_str_printf(self, "%s %s: %s\n", hit ? "hit" : "near", pattern->name, reason);
}

static void run_patterns(const test_case *c, char **after, char **words) {
  hone_error e = {0};
  hn_pattern_hits hits;
  hn_str heard = {0};
  hn_model *m = net_parse(c->name, c->graph);
  assert_int_equal(hn_patterns_match(m->graph, &hits, &(hn_pattern_listener){&heard, hear, NULL}, &e),
                   HONE_OK);
  hn_str s = {0};
  for (size_t i = 0; i < hits.len; i++) {
    const hn_pattern_hit *h = &hits.ptr[i];
    hn_str_printf(&s, "%s of %u nodes:", h->node->op_type, h->n_nodes);
    for (uint32_t k = 0; k < h->node->n_in; k++)
      hn_str_printf(&s, " %s", h->node->in[k] ? h->node->in[k]->name : "_");
    hn_str_printf(&s, " -> %s%s\n", h->node->out[0]->name, h->pointwise ? ", pointwise" : "");
  }
  hn_str_puts(&s, hits.len ? "" : "nothing\n");
  *after = s.ptr;
  hn_str_puts(&heard, "");
  *words = heard.ptr ? heard.ptr : strdup("");
  hn_vec_free(&hits);
  hn_model_destroy(m);
}

static bool updating(void) { return getenv("HONE_UPDATE_GOLDEN") != NULL; }

/* Did it come out as the file says? Its text with what came out is appended to `anew`. */
static bool run_case(const test_case *c, hn_str *anew) {
  char *after = NULL, *words = NULL;
  if (strcmp(c->level, "patterns") == 0)
    run_patterns(c, &after, &words);
  else
    run_optimizer(c, &after, &words);
  const char *want = c->after ? c->after : "", *want_said = c->said ? c->said : "";
  const bool same = strcmp(after, want) == 0 && strcmp(words, want_said) == 0;
  if (!same && !updating())
    print_error("%s:\n-- expected\n%s-- said\n%s\n-- got\n%s-- said\n%s\n", c->name, want, want_said, after,
                words);
  hn_str_printf(anew, "\n== %s\n", c->name);
  if (c->passes[0]) hn_str_printf(anew, "passes: %s\n", c->passes);
  if (strcmp(c->level, "2") != 0) hn_str_printf(anew, "level: %s\n", c->level);
  if (c->lowered[0]) hn_str_printf(anew, "lowered: %s\n", c->lowered);
  hn_str_printf(anew, "%s-- after\n%s-- said\n%s", c->graph, after, words);
  free(after);
  free(words);
  return same;
}

static void cases(void **state) {
  (void)state;
  file_list files = read_files();
  size_t n = 0, wrong = 0;
  for (size_t i = 0; i < files.len; i++) {
    const case_file *f = &files.ptr[i];
    hn_str anew = {0};
    hn_str_puts(&anew, "Cases of check_passes: see there for the form. HONE_UPDATE_GOLDEN=1 writes the parts "
                       "after the graphs.\n");
    for (size_t k = 0; k < f->list.len; k++, n++) wrong += !run_case(&f->list.ptr[k], &anew);
    hone_error e = {0};
    if (updating()) assert_int_equal(hn_file_write(f->path, anew.ptr, anew.len, &e), HONE_OK);
    hn_str_free(&anew);
  }
  free_files(&files);
  assert_true(n >= 100);
  if (!updating()) assert_int_equal(wrong, 0);
}

/* Is there a case in which the pass fires, and that is as `like` says? */
static bool any_case(const file_list *files, const char *pass,
                     bool (*like)(const test_case *, const char *pass)) {
  char want[96];
  snprintf(want, sizeof want, "hit %s:", pass);
  for (size_t i = 0; i < files->len; i++)
    for (size_t k = 0; k < files->ptr[i].list.len; k++) {
      const test_case *c = &files->ptr[i].list.ptr[k];
      if (c->said && strstr(c->said, want) && (!like || like(c, pass))) return true;
    }
  return false;
}

/* Every pass is in a case in which it fires. */
static void every_pass_fires(void **state) {
  (void)state;
  file_list files = read_files();
  const hn_listing *passes = hn_registry_take(&hn_passes);
  for (uint32_t i = 0; i < passes->n; i++) {
    const hn_pass *pass = passes->unit[i];
    if (!any_case(&files, pass->name, NULL)) fail_msg("no case in which %s fires", pass->name);
    assert_non_null(pass->about);
  }
  hn_listing_drop(passes);
  free_files(&files);
}

#ifdef HN_FAULTS
/* Does the case notice that the pass has done something wrong: by its numbers, or as nothing can run any
 * more? */
static bool notices(const test_case *c, const char *pass) {
  hone_error e = {0};
  hn_pass_report r = {0};
  hn_model *m = net_parse(c->name, c->graph);
  const hn_optimize_options o = options_of(c);
  hn_fault_set(pass);
  const hone_status s = hn_optimize(m, &o, &r, &e);
  hn_fault_set(NULL);
  hn_pass_report_free(&r);
  hn_model_destroy(m);
  char where[96];
  const int len = snprintf(where, sizeof where, "after pass %s", pass);
  return s != HONE_OK && strncmp(e.where, where, (size_t)len) == 0 && strchr(":", e.where[len]);
}

/* Every pass is in a case that tells when it goes wrong: its fault, which has its name. */
static void every_pass_is_watched(void **state) {
  (void)state;
  file_list files = read_files();
  const hn_listing *passes = hn_registry_take(&hn_passes);
  int missing = 0;
  for (uint32_t i = 0; i < passes->n; i++) {
    const hn_pass *pass = passes->unit[i];
    if (any_case(&files, pass->name, notices)) continue;
    print_error("no case notices when %s goes wrong\n", pass->name);
    missing++;
  }
  hn_listing_drop(passes);
  free_files(&files);
  assert_int_equal(missing, 0);
}
#endif

/* ------------------------------------------------------------------ the text form */

static void bad_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *where, *what;
  } bad[] = {
      {"", "t:1:1", "expected 'graph', found the end of the text"},
      {"graph g(%x: f32[2]) -> (%y) {\n  %y = Relu(%z)\n}", "t:2:13", "'%z' is read before it is made"},
      {"graph g(%x: f32[2]) -> (%y) {\n}", "t:1:25", "nothing makes the output '%y'"},
      {"graph g(%x: f32[2]) -> (%x) {\n  %x = Relu(%x)\n}", "t:2:3", "'%x' is made twice"},
      {"graph g(%x: f32[2xx]) -> (%x) {}", "t:1:13", "a dimension is a number, ? or a name"},
      {"graph g(%x: f33[2]) -> (%x) {}", "t:1:13", "expected a type such as f32[1x3], found 'f33'"},
      {"graph g() -> (%x) {\n  const %x: f32[2] = {1, }\n}", "t:2:26", "expected a number, found '}'"},
      {"graph g() -> (%x) {\n  const %x: f32[2] = #00\n}", "t:2:22",
       "the values of this constant were left out when the text was printed"},
      {"graph g() -> (%x) {\n  const %x: f32[9999999999] = full(1)\n}", "t:2:31",
       "the constants are too large"},
      {"graph g(%x: f32[1]) -> (%y) {\n  %y = Relu(%x) {a=1, a=2}\n}", "t:2:26",
       "attribute 'a' is given twice"},
      {"graph g(%x: f32[1]) -> (%y) {\n  %y = Relu|Abs(%x)\n}", "t:2:3",
       "alternatives have a meaning in patterns only"},
      {"graph g(%x: f32[1x2x3x4x5x6x7x8x9]) -> (%x) {}", "t:1:13", "more than 8 dimensions"},
      {"graph g(%\"a) -> (%x) {}", "t:1:9", "a quoted text does not end on its line"},
      {"graph g() -> () {} graph", "t:1:20", "unexpected 'graph' after the graph"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    hn_model *m = NULL;
    hone_error e = {0};
    assert_int_equal(hn_model_parse("t", bad[i].text, strlen(bad[i].text), &m, &e), HONE_ERROR_INPUT);
    assert_null(m);
    assert_string_equal(e.what, bad[i].what);
    assert_string_equal(e.where, bad[i].where);
  }
}

static void deep_text(void **state) {
  (void)state;
  hn_str s = {0};
  hn_str_puts(&s, "graph g(%c: bool[]) -> () {\n");
  for (int i = 0; i < 1000; i++) hn_str_printf(&s, "%%v%d = If(%%c) {then_branch=graph a() -> () {\n", i);
  hn_model *m = NULL;
  hone_error e = {0};
  assert_int_equal(hn_model_parse("t", s.ptr, s.len, &m, &e), HONE_ERROR_INPUT);
  assert_string_equal(e.what, "graphs are nested deeper than 16");
  hn_str_free(&s);
}

static void all_types(void **state) {
  (void)state;
  const char *text = "ir 9\nopset 18\nopset \"com.microsoft\" 1\n"
                     "graph \"a b\"(%x: f32[Nx3x\"x y\"x?], %\"p q\": i64[*], %z, %s: seq f32, %d: f16[2] "
                     "= {1.5, -inf}) -> (%y: f32[N], %o) {\n"
                     "  const %a: f64[2x2] = {1, -2.5, 3.0000000000000004, nan}\n"
                     "  const %b: bool[2] = {1, 0}\n"
                     "  const %c: u64[2] = {18446744073709551615, 0}\n"
                     "  const %e: bf16[1] = {1.5}\n"
                     "  const %t: string[2] = {\"a\\\"b\", \"\\n\"}\n"
                     "  const %f: i8[3x2] = full(-7)\n"
                     "  const %n: f32[0] = {}\n"
                     "  %y, _ = com.microsoft::Thing(%x, _, %a, %b, %c, %e, %t, %f, %n) {alpha=1.0, axes=[1, "
                     "-2], e=[], k=floats[0.5, 2], "
                     "mode=\"x\", names=strings[\"a\"], value=i64[2] {1, 2}}\n"
                     "  %o = If(%b) {then_branch=graph yes() -> (%u) {\n    %u = Neg(%y)\n  }}\n"
                     "}\n";
  hn_model *m = NULL;
  hone_error e = {0};
  if (hn_model_parse("t", text, strlen(text), &m, &e) != HONE_OK) fail_msg("%s %s", e.where, e.what);
  hn_str s = {0};
  assert_true(hn_model_print(m, NULL, &s));
  assert_string_equal(s.ptr, text);
  assert_int_equal(hn_model_check(m, &e), HONE_OK);
  hn_str_free(&s);
  hn_model_destroy(m);
}

/* A constant of 307 MB that a node makes: in a plan it is made beforehand, a file does not grow by it. */
static void large_constants(void **state) {
  (void)state;
  static const char *const text = "graph g(%x: f32[1x64]) -> (%y) {\n"
                                  "  const %s: i64[2] = {64, 1200000}\n"
                                  "  %w = ConstantOfShape(%s)\n"
                                  "  %y = MatMul(%x, %w)\n"
                                  "}\n";
  for (int lowered = 0; lowered < 2; lowered++) {
    hone_error e = {0};
    hn_pass_report r = {0};
    hn_model *m = net_parse("large_constants", text);
    hn_optimize_options o = {.level = 2, .passes = "fold_constants", .lowered = lowered};
    if (hn_optimize(m, &o, &r, &e) != HONE_OK) fail_msg("%s", e.what);
    assert_int_equal(r.nodes_after, 2 - lowered);
    char *words = said(&r);
    assert_non_null(strstr(words, lowered ? "hit fold_constants" : "more than the limit of 268435456"));
    free(words);
    hn_pass_report_free(&r);
    hn_model_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases),
                                     cmocka_unit_test(every_pass_fires),
#ifdef HN_FAULTS
                                     cmocka_unit_test(every_pass_is_watched),
#endif
                                     cmocka_unit_test(bad_text),
                                     cmocka_unit_test(deep_text),
                                     cmocka_unit_test(all_types),
                                     cmocka_unit_test(large_constants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
