/* Models whose defaults cannot work, and models that choose a branch by an input, through every command. */
#include "cli/process.h"
#include "model/ir/text.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})

/* Power of a window of 512 samples every 160. */
static const char spectrum[] = "ir 8\nopset 17\ngraph g(%sound: f32[NxT]) -> (%y) {\n"
                               "  const %w: f32[8x1x512] = rand(1)\n  %u = Unsqueeze(%sound, i64[1]{1})\n"
                               "  %c = Conv(%u, %w) {strides=[160]}\n  %y = Mul(%c, %c)\n}\n";
/* A length for each rate; the other branch cannot work with it. */
static const char rates[] =
    "ir 8\nopset 17\ngraph g(%x: f32[NxT], %rate: i64[]) -> (%y: f32[]) {\n  %c = Equal(%rate, i64 16000)\n"
    "  %y = If(%c) {then_branch=graph yes() -> (%a: f32[]) {\n"
    "    const %v: f32[512x3] = rand(1)\n    %p = MatMul(%x, %v)\n    %a = ReduceSum(%p) {keepdims=0}\n"
    "  }, else_branch=graph no() -> (%b: f32[]) {\n"
    "    const %w: f32[256x3] = rand(2)\n    %q = MatMul(%x, %w)\n    %b = ReduceSum(%q) {keepdims=0}\n"
    "  }}\n}\n";

static void save(const char *text, const char *name) {
  char path[200];
  hn_model *m = NULL;
  hone_error e = {0};
  snprintf(path, sizeof path, "%s/%s", folder, name);
  hone_status s = hn_model_parse(name, text, strlen(text), &m, &e);
  if (!s) s = hn_model_ready(m, &e);
  if (!s) s = hn_onnx_save(m, path, &e);
  if (s) fail_msg("%s: %s", e.where, e.what);
  hn_model_destroy(m);
}

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-shapes"))) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  save(spectrum, "spectrum.onnx");
  save(rates, "rates.onnx");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

/* Exit code, and words on either stream. */
static void expect(process p, int code, const char *words) {
  if (p.code != code || (!strstr(p.err, words) && !strstr(p.out, words)))
    fail_msg("exit %d (wanted %d), '%s' '%s' (wanted '%s')", p.code, code, p.out, p.err, words);
  process_free(&p);
}

static void every_command_finds_a_length(void **state) {
  (void)state;
  static const char *const models[][2] = {{"spectrum.onnx", "1x16000"}, {"rates.onnx", "1x512"}};
  for (size_t i = 0; i < 2; i++) {
    const char *model = models[i][0], *shape = models[i][1];
    expect(RUN("inspect", model), 0, shape);
    expect(RUN("run", model), 0, shape);
    expect(RUN("profile", model, "-n", "3", "-w", "1"), 0, "Layers");
    expect(RUN("verify", model, "--inputs", "3"), 0, "same");
    expect(RUN("optimize", model, "-o", "better.onnx"), 0, "written");
    expect(RUN("run", "better.onnx"), 0, shape);
    expect(RUN("bench", model, "-n", "3", "-w", "1"), 0, shape);
    expect(RUN("optimize", model, "-o", "plan.hone"), 0, "written");
    expect(RUN("run", "plan.hone"), 0, "min");
  }
}

static void errors_say_what_to_give(void **state) {
  (void)state;
  expect(RUN("run", "spectrum.onnx", "--shape", "sound=1x200"), 3, "--shape sound=1x16000");
  expect(RUN("inspect", "spectrum.onnx", "--shape", "T=200"), 3, "dimension 1 ('T') of input 'sound'");
  /* The branch that is taken cannot work: one error, by the run. */
  expect(RUN("run", "rates.onnx", "--shape", "x=1x256"), 3, "MatMul");
  expect(RUN("run", "rates.onnx", "--shape", "x=1x256", "--input", "rate=8000"), 0, "min");
  expect(RUN("run", "rates.onnx", "--input", "rate=8000"), 3, "MatMul");
  expect(RUN("run", "rates.onnx", "--input", "rate=8000.5"), 3, "8000.5");
}

/* Shapes that are computed from an initializer, which old exporters list as an input. */
static void outputs_follow_from_defaults(void **state) {
  (void)state;
  static const char text[] =
      "ir 4\nopset 11\ngraph g(%x: f32[2x6], %shape: i64[2] = {3, 4}) -> (%y: f32[?x?]) {\n"
      "  %y = Reshape(%x, %shape)\n}\n";
  save(text, "defaults.onnx");
  expect(RUN("inspect", "defaults.onnx"), 0, "y  f32[3x4]");
}

/* What a hint says can be pasted into a shell, whatever the input is called. */
static void hints_are_quoted(void **state) {
  (void)state;
  static const char odd[] = "ir 8\nopset 17\ngraph g(%\"a b;$c'd\": f32[NxT]) -> (%y) {\n"
                            "  const %w: f32[8x1x512] = rand(1)\n"
                            "  %u = Unsqueeze(%\"a b;$c'd\", i64[1]{1})\n"
                            "  %c = Conv(%u, %w) {strides=[160]}\n  %y = Mul(%c, %c)\n}\n";
  save(odd, "odd.onnx");
  expect(RUN("run", "odd.onnx", "--shape", "a b;$c'd=1x200"), 3, "--shape 'a b;$c'\\''d'=1x16000");
  expect(RUN("run", "odd.onnx"), 0, "(--shape 'a b;$c'\\''d'=... changes it)");
}

/* Where the report cannot be written there is a hint, and nothing of hone stays. */
static void no_place_for_the_report(void **state) {
  (void)state;
  char command[600], path[128];
  snprintf(path, sizeof path, "%s/hone-report", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fclose(f);
  expect(RUN("spectrum.onnx"), 6, "--output-dir DIR");
  assert_int_equal(unlink(path), 0);
  /* as a full disk: no byte can be written */
  snprintf(command, sizeof command,
           "cd '%s' && ulimit -f 0 && HOME='%s' '%s' spectrum.onnx --output-dir "
           "deep/er/report 2>&1 | "
           "grep -q -e '--output-dir DIR'",
           folder, folder, HONE_BINARY);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/deep", folder);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* What no machine has the memory for can be planned; random inputs for it are refused before they are drawn.
 */
static void plans_need_no_inputs(void **state) {
  (void)state;
  save("ir 8\nopset 17\ngraph g(%x: f32[1x200000000000]) -> (%y) {\n  %y = Relu(%x)\n}\n", "wide.onnx");
  expect(RUN("plan", "wide.onnx"), 0, "from the file to the plan");
  expect(RUN("run", "wide.onnx"), 6, "expected at most");
}

/* Seven numbers of which two are no finite ones: 2, 3, 4, 0.5, NaN, 8, infinity. */
static void what_an_output_is_like_counts_finite_numbers(void **state) {
  (void)state;
  save("ir 8\nopset 17\ngraph g(%x: f32[1]) -> (%y, %z) {\n"
       "  %a = Mul(%x, f32[7]{4, 9, 16, 0.25, -1, 64, 1e38})\n  %b = Mul(%a, f32[7]{1, 1, 1, 1, 1, 1, 10})\n"
       "  %y = Sqrt(%b)\n  %n = Neg(%x)\n  %z = Sqrt(%n)\n}\n",
       "numbers.onnx");
  expect(RUN("run", "numbers.onnx", "--input", "1"), 0, "min 0.5  max 8  mean 3.5  2 not finite\n");
  expect(RUN("run", "numbers.onnx", "--input", "1"), 0, "f32[1]                    1 not finite\n");
  expect(RUN("run", "numbers.onnx", "--input", "0"), 0, "min 0  max 0  mean 0\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_an_output_is_like_counts_finite_numbers),
      cmocka_unit_test(every_command_finds_a_length),
      cmocka_unit_test(errors_say_what_to_give),
      cmocka_unit_test(outputs_follow_from_defaults),
      cmocka_unit_test(hints_are_quoted),
      cmocka_unit_test(plans_need_no_inputs),
      cmocka_unit_test(no_place_for_the_report),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
