/* hone verify --layers on one network with three faults: a broken scale, a saturated layer and one scale for
 * channels that differ widely. What the command names, as text, JSON and page. */
#include "../cli/process.h"
#include "broken.h"
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCALE = 1, SATURATED = 3, IMBALANCED = 5, CONVOLUTIONS = 7 };

static char folder[512], exact[600], broken[600];
static const char *named[CONVOLUTIONS]; /* of each convolution */
static hn_model *model;

static void save(const hone_model *m, const char *path) {
  hone_error e = {0};
  if (hone_model_save(m, path, &e) != HONE_OK) fail_msg("%s: %s", path, e.what);
}

static int make(void **state) {
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/layers-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  assert_non_null(mkdtemp(folder));
  snprintf(exact, sizeof exact, "%s/float.onnx", folder);
  snprintf(broken, sizeof broken, "%s/broken.onnx", folder);
  model = chain_network(CONVOLUTIONS, IMBALANCED, 200);
  quantised q = quantise(model, &(hone_quantize_options){.calib = "random", .threads = 1});
  for (int k = 0; k < CONVOLUTIONS; k++) named[k] = nth(model, "Conv", k)->name;
  scale_by(q.model, SCALE, 6);
  scale_by(q.model, SATURATED, 0.25f);
  share_scale(q.model, IMBALANCED);
  save(model, exact);
  save(q.model, broken);
  quantised_free(&q);
  return 0;
}

static void drop(const char *name) {
  char path[700];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

static int clean(void **state) {
  (void)state;
  unlink(exact);
  unlink(broken);
  drop("page.html");
  assert_int_equal(rmdir(folder), 0);
  hone_model_release(model);
  return 0;
}

static const char *reason_of(int k) {
  return k == SCALE ? "coarse" : k == SATURATED ? "saturated" : k == IMBALANCED ? "imbalanced" : "healthy";
}

static void test_text(void **state) {
  (void)state;
  process p =
      process_run(folder, 0, (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", NULL});
  char first[200];
  assert_int_equal(p.code, 1);
  snprintf(first, sizeof first, "first bad: %s (Conv, layer ", named[SCALE]);
  if (!strstr(p.out, first)) fail_msg("no '%s' in\n%s", first, p.out);
  if (!strstr(p.out, "coarse: ") || !strstr(p.out, "is too large")) fail_msg("%s", p.out);
  if (!strstr(p.out, "\nworst: ")) fail_msg("%s", p.out);
  process_free(&p);
}

/* Each fault is named with its reason, and no other layer is. */
static void test_json(void **state) {
  (void)state;
  process p = process_run(
      folder, 0, (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", "--json", NULL});
  json_t *doc = process_json(&p), *layer;
  size_t i, seen = 0;
  assert_int_equal(p.code, 1);
  assert_string_equal(json_string_value(json_object_get(doc, "first_bad")), named[SCALE]);
  double least = 1e9;
  const char *worst = "";
  json_array_foreach(json_object_get(doc, "layers"), i, layer) {
    const char *name = json_string_value(json_object_get(layer, "name"));
    const char *reason = json_string_value(json_object_get(layer, "reason")), *wanted = "healthy";
    const bool bad = json_is_true(json_object_get(layer, "bad"));
    for (int k = 0; k < CONVOLUTIONS; k++)
      if (strcmp(name, named[k]) == 0) {
        wanted = reason_of(k);
        seen++;
      }
    if (bad != (strcmp(wanted, "healthy") != 0) || (bad && strcmp(reason, wanted) != 0) ||
        (!bad && strcmp(reason, "healthy") != 0 && strcmp(reason, "accumulated") != 0))
      fail_msg("'%s' is %s (%s) instead of %s", name, reason,
               json_string_value(json_object_get(layer, "why")), wanted);
    const double own = json_number_value(json_object_get(layer, "own_snr_db"));
    if (bad && own < least) {
      least = own;
      worst = name;
    }
  }
  assert_int_equal(seen, CONVOLUTIONS);
  assert_string_equal(json_string_value(json_object_get(doc, "worst")), worst);
  json_decref(doc);
  process_free(&p);
}

static char *content(const char *name) {
  char path[700];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
  fclose(f);
  return text;
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, what)); at++) n++;
  return n;
}

static void test_page(void **state) {
  (void)state;
  process p = process_run(
      folder, 0,
      (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", "--html", "page.html", NULL});
  assert_int_equal(p.code, 1);
  char *page = content("page.html"), first[200];
  const int bars = count(page, "<rect class=\"own\"");
  assert_true(bars >= CONVOLUTIONS);
  assert_int_equal(count(page, "<rect class=\"sum\""), bars);
  assert_true(count(page, "<g class=\"bad\">") >= 3);
  snprintf(first, sizeof first, "First bad: %s<", named[SCALE]);
  assert_non_null(strstr(page, first));
  for (int k = 0; k < CONVOLUTIONS; k++) assert_non_null(strstr(page, named[k]));
  assert_null(strstr(page, "http"));
  free(page);
  process_free(&p);
}

static void test_usage(void **state) {
  (void)state;
  process p =
      process_run(folder, 0, (const char *const[]){"verify", "float.onnx", "--html", "page2.html", NULL});
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "--layers"));
  process_free(&p);
  p = process_run(
      folder, 0,
      (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", "--html", "float.onnx", NULL});
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "written over"));
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_page), cmocka_unit_test(test_usage)};
  return cmocka_run_group_tests(tests, make, clean);
}
