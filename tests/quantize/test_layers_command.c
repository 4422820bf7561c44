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

#include <math.h>
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
  char path[1400];
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
  char path[1400];
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

/* ---- tensors */

static void read_array(const char *name, hone_data *out) {
  char path[1400];
  hone_error e = {0};
  hone_tensor_desc want = hone_desc(HONE_DTYPE_NONE, 0, NULL);
  want.rank = -1;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (hone_data_load(path, NULL, &want, NULL, out, &e) != HONE_OK) fail_msg("%s: %s", path, e.what);
}

static double most_apart(const hone_data *a, const hone_data *b) {
  const int64_t n = hone_desc_count(&a->tensor.desc);
  double most = 0;
  assert_int_equal(n, hone_desc_count(&b->tensor.desc));
  assert_int_equal(a->tensor.desc.dtype, HONE_DTYPE_F32);
  assert_int_equal(b->tensor.desc.dtype, HONE_DTYPE_F32);
  for (int64_t i = 0; i < n; i++)
    most = fmax(
        most, fabs((double)((const float *)a->tensor.data)[i] - (double)((const float *)b->tensor.data)[i]));
  return most;
}

/* The given input is what runs, on both sides; what is written is what the model answers. */
static void test_input(void **state) {
  (void)state;
  const char *input = write_samples("layers_input.npy", 4, (const int64_t[]){1, 3, 12, 12}, 5, 0, 1);
  const char *gemm = nth(model, "Gemm", 0)->name;
  char name[600];
  process p = process_run(
      folder, 0, (const char *const[]){"run", "float.onnx", "--input", input, "--output-dir", ".", NULL});
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = process_run(
      folder, 0,
      (const char *const[]){"verify", "float.onnx", "--input", input, "--dump", gemm, "--json", NULL});
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_int_equal(json_integer_value(json_object_get(doc, "inputs")), 1);
  assert_int_equal(json_array_size(json_object_get(doc, "dumped")), 2);
  json_decref(doc);
  process_free(&p);
  hone_data answer, reference, optimized, other;
  const hn_value *y = nth(model, "Gemm", 0)->out[0];
  snprintf(name, sizeof name, "%s.npy", y->name);
  read_array(name, &answer);
  drop(name);
  snprintf(name, sizeof name, "%s.reference.npy", gemm);
  read_array(name, &reference);
  snprintf(name, sizeof name, "%s.optimized.npy", gemm);
  read_array(name, &optimized);
  assert_true(most_apart(&answer, &reference) < 1e-3);
  assert_true(most_apart(&answer, &optimized) < 1e-3);
  p = process_run(folder, 0, (const char *const[]){"verify", "float.onnx", "-n", "1", "--dump", gemm, NULL});
  process_free(&p);
  read_array(name, &other); /* of random values */
  assert_true(most_apart(&answer, &other) > 1e-2);
  drop(name);
  snprintf(name, sizeof name, "%s.reference.npy", gemm);
  drop(name);
  drop("outputs.json");
  unlink(input);
  hone_data_free(&answer);
  hone_data_free(&reference);
  hone_data_free(&optimized);
  hone_data_free(&other);
}

/* The float values, what the codes say, and the codes themselves, of the layer with the broken scale. */
static void test_dump(void **state) {
  (void)state;
  const char *input = write_samples("layers_input.npy", 4, (const int64_t[]){1, 3, 12, 12}, 5, 0, 1);
  char name[600];
  process p =
      process_run(folder, 0,
                  (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", "--input", input,
                                        "--dump", named[SCALE], "--output-dir", "out", "--json", NULL});
  assert_int_equal(p.code, 1);
  json_t *doc = process_json(&p), *layer;
  assert_int_equal(json_integer_value(json_object_get(doc, "samples")), 1);
  assert_int_equal(json_array_size(json_object_get(doc, "dumped")), 3);
  double error = -1, scale = -1, zero = -1;
  size_t i;
  json_array_foreach(json_object_get(doc, "layers"), i, layer) {
    if (strcmp(json_string_value(json_object_get(layer, "name")), named[SCALE]) != 0) continue;
    const json_t *codes = json_object_get(layer, "codes");
    error = json_number_value(json_object_get(layer, "max_error"));
    scale = json_number_value(json_object_get(codes, "scale"));
    zero = json_number_value(json_object_get(codes, "zero_point"));
  }
  json_decref(doc);
  process_free(&p);
  hone_data exactly, quantized, codes;
  snprintf(name, sizeof name, "out/%s.float.npy", named[SCALE]);
  read_array(name, &exactly);
  drop(name);
  snprintf(name, sizeof name, "out/%s.quantized.npy", named[SCALE]);
  read_array(name, &quantized);
  drop(name);
  snprintf(name, sizeof name, "out/%s.codes.npy", named[SCALE]);
  read_array(name, &codes);
  drop(name);
  assert_int_equal(codes.tensor.desc.dtype, HONE_DTYPE_U8);
  assert_true(fabs(most_apart(&exactly, &quantized) - error) < 1e-5 * error);
  for (int64_t k = 0; k < hone_desc_count(&codes.tensor.desc); k++) {
    const double said = (((const uint8_t *)codes.tensor.data)[k] - zero) * scale;
    assert_true(fabs(said - (double)((const float *)quantized.tensor.data)[k]) < 1e-5);
  }
  hone_data_free(&exactly);
  hone_data_free(&quantized);
  hone_data_free(&codes);
  unlink(input);
  snprintf(name, sizeof name, "%s/out", folder);
  assert_int_equal(rmdir(name), 0);
}

/* One error, and nothing is left behind. */
static void test_no_such_node(void **state) {
  (void)state;
  static const char *const lines[][10] = {
      {"verify", "float.onnx", "broken.onnx", "--layers", "--dump", "nowhere", "--output-dir", "out", NULL},
      {"verify", "float.onnx", "-n", "1", "--dump", "nowhere", "--output-dir", "out", NULL}};
  char path[600];
  snprintf(path, sizeof path, "%s/out", folder);
  for (int i = 0; i < 2; i++) {
    process p = process_run(folder, 0, lines[i]);
    if (p.code != 2 || !strstr(p.err, "nowhere")) fail_msg("exit %d: %s", p.code, p.err);
    assert_int_not_equal(access(path, F_OK), 0);
    process_free(&p);
  }
  process p = process_run(folder, 0,
                          (const char *const[]){"verify", "float.onnx", "broken.onnx", "--layers", "--input",
                                                "x=1", "--data", ".", NULL});
  assert_int_equal(p.code, 2);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),        cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_page),        cmocka_unit_test(test_usage),
                                     cmocka_unit_test(test_input),       cmocka_unit_test(test_dump),
                                     cmocka_unit_test(test_no_such_node)};
  return cmocka_run_group_tests(tests, make, clean);
}
