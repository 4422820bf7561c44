/* hone op why: the structure of its answers, whatever the machine's speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/process.h"
#include "net.h"
#include "temporary.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HONE(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})

static char folder[300];

static int begin(void **state) {
  (void)state;
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "why")));
  net_save(folder, "compound.onnx",
           "opset 17\ngraph g(%x: f32[64x1000], %z: f32[64x1000]) -> (%a, %b) {\n"
           "  %p = Softmax(%x) {axis=-1}\n  %a = ReduceMax(%p) {axes=[-1]}\n"
           "  %q = Softmax(%z) {axis=-1}\n  %b = ReduceMax(%q) {axes=[-1]}\n}\n");
  net_save(folder, "fused.onnx",
           "graph g(%x: f32[1x8x10x10]) -> (%y) {\n"
           "  %c = Conv(%x, f32[8x8x1x1]rand(1))\n  %y = Relu(%c)\n}\n");
  net_save(folder, "reference.onnx",
           "opset 17\ngraph g(%x: f64[Nx100]) -> (%y) {\n  %y = Softmax(%x) {axis=-1}\n}\n");
  net_save(folder, "a sin's.onnx", "opset 17\ngraph g(%x: f32[1000]) -> (%y) {\n  %y = Sin(%x)\n}\n");
  net_save(folder, "swell.onnx",
           "opset 17\ngraph g(%x: f32[1000]) -> (%y) {\n  %s = Sin(%x)\n  %y = Add(%x, %s)\n}\n");
  net_save(folder, "det.onnx",
           "opset 17\ngraph g(%x: f32[8x16x16]) -> (%y) {\n"
           "  %r = Relu(%x)\n  %d = Det(%r)\n  %y = Sigmoid(%d)\n}\n");
  return 0;
}

static int end(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static json_t *asked(const process *p) {
  if (p->code) fail_msg("exit %d: %s", p->code, p->err);
  return process_json(p);
}

static const json_t *only(const json_t *doc) {
  const json_t *list = json_object_get(doc, "candidates");
  assert_int_equal(json_array_size(list), 1);
  return json_array_get(list, 0);
}

static const char *text_of(const json_t *o, const char *member) {
  const char *text = json_string_value(json_object_get(o, member));
  if (!text) fail_msg("no text '%s'", member);
  return text;
}

/* In a shell the line makes the folder. */
static void pasted(const char *command, const char *made) {
  char line[2000], file[600];
  assert_int_equal(strncmp(command, "hone ", 5), 0);
  snprintf(line, sizeof line, "cd '%s' && '%s' %s >new.log 2>&1", folder, HONE_BINARY, command + 5);
  if (system(line) != 0) fail_msg("%s", line);
  snprintf(file, sizeof file, "%s/%s/%s.json", folder, made, made);
  assert_int_equal(access(file, R_OK), 0);
}

/* Whatever it gains is worth it: the line can be pasted, and names the nodes of one place. */
static void test_compound(void **state) {
  (void)state;
  process p = HONE("op", "why", "compound.onnx", "-n", "5", "-t", "1", "--threshold", "min_gain=0", "--json");
  json_t *doc = asked(&p);
  const json_t *c = only(doc), *places = json_object_get(c, "places");
  assert_int_equal(json_integer_value(json_object_get(doc, "worth_it")), 1);
  assert_int_equal(json_integer_value(json_object_get(doc, "runs")), 5);
  assert_string_equal(text_of(c, "kind"), "compound");
  assert_string_equal(text_of(c, "verdict"), "worth_it");
  assert_true(json_is_true(json_object_get(c, "worth_it")));
  assert_string_equal(text_of(c, "operators"), "Softmax + ReduceMax");
  assert_int_equal(json_integer_value(json_object_get(c, "times")), 2);
  assert_int_equal(json_array_size(places), 2);
  assert_int_equal(json_array_size(json_object_get(json_array_get(places, 0), "nodes")), 2);
  assert_false(json_is_true(json_object_get(c, "elementwise")));
  const json_t *nodes = json_object_get(json_array_get(places, 0), "nodes");
  char command[600];
  snprintf(command, sizeof command, "hone op new SoftmaxReduceMax --from compound.onnx --nodes %s,%s",
           json_string_value(json_array_get(nodes, 0)), json_string_value(json_array_get(nodes, 1)));
  assert_string_equal(text_of(c, "command"), command);
  pasted(command, "softmaxreducemax");
  static const char *const numbers[] = {"ms",        "share_pct", "bytes_saved",       "traffic_ms",
                                        "starts_ms", "saved_ms",  "predicted_gain_pct"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    assert_true(json_is_number(json_object_get(c, numbers[i])));
  json_decref(doc);
  process_free(&p);
  p = HONE("op", "why", "compound.onnx", "-n", "5", "-t", "1", "--threshold", "min_gain=0");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "worth a custom operator\n 1. Softmax + ReduceMax, 2 places"));
  assert_non_null(strstr(p.out, "$ hone op new SoftmaxReduceMax --from compound.onnx --nodes "));
  assert_null(strstr(p.out, "not worth it"));
  process_free(&p);
  /* and nothing is when so much is asked for */
  p = HONE("op", "why", "compound.onnx", "-n", "5", "-t", "1", "--threshold", "min_gain=100000");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "not worth it\n 1. Softmax + ReduceMax, 2 places"));
  assert_non_null(strstr(p.out, "A custom operator is not worth it here."));
  assert_null(strstr(p.out, "hone op new"));
  process_free(&p);
}

static void test_nothing(void **state) {
  (void)state;
  process p = HONE("op", "why", "fused.onnx", "-n", "5", "-t", "1", "--json");
  json_t *doc = asked(&p);
  assert_int_equal(json_integer_value(json_object_get(doc, "worth_it")), 0);
  assert_int_equal(json_array_size(json_object_get(doc, "candidates")), 0);
  json_decref(doc);
  process_free(&p);
  p = HONE("op", "why", "fused.onnx", "-n", "5", "-t", "1");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "A custom operator is not worth it here: "));
  process_free(&p);
}

static void test_reference(void **state) {
  (void)state;
  process p = HONE("op", "why", "reference.onnx", "-n", "5", "-t", "1", "--shape", "N=64", "--json",
                   "--threshold", "min_gain=0");
  json_t *doc = asked(&p);
  const json_t *c = only(doc);
  assert_string_equal(text_of(c, "kind"), "fallback");
  assert_string_equal(text_of(c, "operators"), "Softmax");
  assert_true(json_is_null(json_object_get(c, "pattern")));
  assert_non_null(strstr(text_of(c, "why"), "scalar reference"));
  assert_non_null(strstr(text_of(c, "command"), "hone op new OwnSoftmax --general"));
  json_decref(doc);
  process_free(&p);
}

/* What is elementwise can be written down from its nodes: a line to paste, whatever the file's name. */
static void test_elementwise(void **state) {
  (void)state;
  process p = HONE("op", "why", "a sin's.onnx", "-n", "5", "-t", "1", "--threshold", "min_gain=0", "--json");
  json_t *doc = asked(&p);
  const json_t *c = only(doc), *place = json_array_get(json_object_get(c, "places"), 0);
  char command[400];
  snprintf(command, sizeof command, "hone op new OwnSin --from 'a sin'\\''s.onnx' --nodes %s",
           json_string_value(json_array_get(json_object_get(place, "nodes"), 0)));
  assert_string_equal(text_of(c, "command"), command);
  pasted(command, "ownsin");
  assert_true(json_is_true(json_object_get(c, "elementwise")));
  json_decref(doc);
  process_free(&p);
}

/* An installed operator is for these nodes, but its only tactic is switched off. */
static void test_installed(void **state) {
  (void)state;
  char command[1200];
  snprintf(command, sizeof command,
           "mkdir -m 755 '%s/plugin' && cp '%s/sound.so' '%s/plugin/' && chmod 755 '%s/plugin/sound.so'",
           folder, PLUGINS, folder, folder);
  assert_int_equal(system(command), 0);
  assert_int_equal(setenv("HONE_TACTICS", "-swell*", 1), 0);
  process p = HONE("op", "why", "swell.onnx", "--level", "1", "-n", "5", "-t", "1", "--op-path", "plugin",
                   "--threshold", "min_gain=0", "--json");
  assert_int_equal(unsetenv("HONE_TACTICS"), 0);
  json_t *doc = asked(&p);
  assert_int_equal(json_integer_value(json_object_get(doc, "worth_it")), 0);
  assert_string_equal(text_of(only(doc), "verdict"), "existing");
  assert_non_null(strstr(text_of(only(doc), "why"), "an installed operator"));
  json_decref(doc);
  process_free(&p);
}

#ifdef FAKES
/* On a GPU whose kernel for it is switched off, Det runs on the host, between two copies. */
static void test_host(void **state) {
  (void)state;
  static const char *const set[][2] = {{"HONE_LIBCUDA", FAKES "/libfakecuda.so"},
                                       {"HONE_LIBNVRTC", FAKES "/libfakenvrtc.so"},
                                       {"HONE_LIBCUDNN", "none"},
                                       {"HONE_LIBCUBLASLT", "none"},
                                       {"HONE_LIBCUPTI", "none"},
                                       {"HONE_LIBNVML", "none"},
                                       {"HONE_KERNEL_CACHE", "off"},
                                       {"HONE_TACTICS", "-det"}};
  enum { SET = sizeof set / sizeof *set };
  for (size_t i = 0; i < SET; i++) assert_int_equal(setenv(set[i][0], set[i][1], 1), 0);
  process p =
      HONE("op", "why", "det.onnx", "--device", "cuda", "-n", "5", "--threshold", "min_gain=0", "--json");
  for (size_t i = 0; i < SET; i++) assert_int_equal(unsetenv(set[i][0]), 0);
  json_t *doc = asked(&p);
  const json_t *c = only(doc);
  assert_string_equal(text_of(c, "kind"), "fallback");
  assert_string_equal(text_of(c, "operators"), "Det");
  assert_string_equal(text_of(c, "verdict"), "existing");
  assert_non_null(strstr(text_of(c, "why"), "'det' takes it, and is switched off"));
  const double copies = json_real_value(json_object_get(c, "copies_ms"));
  assert_true(copies > 0 && copies < json_real_value(json_object_get(c, "ms")));
  json_decref(doc);
  process_free(&p);
}
#else
static void test_host(void **state) {
  (void)state;
  skip();
}
#endif

static void test_refused(void **state) {
  (void)state;
  process p = HONE("op", "why");
  assert_int_equal(p.code, 2);
  process_free(&p);
  p = HONE("op", "why", "fused.onnx", "--threshold", "min_gein=1");
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "min_gein"));
  process_free(&p);
  p = HONE("op", "why", "nowhere.onnx");
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "nowhere.onnx"));
  process_free(&p);
  p = HONE("optimize", "fused.onnx", "-o", "fused.hone", "-t", "1");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = HONE("op", "why", "fused.hone");
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "saved plan"));
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_compound),  cmocka_unit_test(test_nothing),
                                     cmocka_unit_test(test_reference), cmocka_unit_test(test_elementwise),
                                     cmocka_unit_test(test_installed), cmocka_unit_test(test_host),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, begin, end);
}
