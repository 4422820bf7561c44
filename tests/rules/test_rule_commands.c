/* What findings tell to do: in the words of the tool that recorded, as the case was run, and nothing that is
 * done. */
#include "rules/illnesses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Whatever tool recorded it: each finding has something to do, in the words of that tool where it has some.
 */
static void every_tool_has_commands(void **state) {
  (void)state;
  static const char *const tools[] = {"trtexec", "onnxruntime", "nsys",   "ncu",  "pytorch",
                                      "ascend",  "openvino",    "onednn", "other"};
  for (size_t t = 0; t < sizeof tools / sizeof *tools; t++) {
    size_t fired = 0;
    for (size_t i = 0; i < illness_count; i++) {
      fixture f = fixture_healthy();
      illnesses[i].ill(&f);
      f.meta.tool = tools[t];
      f.meta.model = "net.engine"; /* no ONNX file: commands name a placeholder instead */
      fixture_diagnose(&f);
      /* Rules about processors keep quiet on tools of accelerators. */
      const hone_finding *finding = fixture_finding(&f, illnesses[i].rule);
      fired += finding != NULL;
      assert_true(!finding || finding->command_count > 0);
      for (size_t c = 0; finding && c < finding->command_count; c++)
        assert_null(strstr(finding->commands[c], "--onnx=net.engine"));
      fixture_free(&f);
    }
    assert_true(fired >= 25);
  }
  fixture f = fixture_healthy();
  f.meta.tool = "trtexec";
  ill_full_precision(&f);
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "reduced_precision:fp16");
  assert_non_null(finding);
  assert_string_equal(finding->commands[0], "trtexec --onnx=m.onnx --fp16");
  assert_true(finding->basis == HONE_BASIS_TABLE && finding->s_low == 1.2 && finding->s_high == 2.0);
  assert_non_null(strstr(finding->s_basis, "course notes"));
  assert_non_null(strstr(finding->s_basis, "TensorRT"));
  fixture_free(&f);
}

/* A shell is asked to run it: a program that is known here stands first, behind settings of the environment.
 */
static bool is_command(const char *text) {
  static const char *const programs[] = {"APP",       "hone",          "trtexec", "atc",    "aoe",
                                         "amct_onnx", "nsys",          "ncu",     "msprof", "msprof-analyze",
                                         "perf",      "benchmark_app", "python",  "top",    "vmstat",
                                         "grep",      "nvidia-smi",    "npu-smi"};
  for (;;) {
    const size_t n = strcspn(text, " ");
    if (strcspn(text, "=") < n &&
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == strcspn(text, "=")) {
      text += n + strspn(text + n, " ");
      continue;
    }
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
      if (strlen(programs[i]) == n && strncmp(text, programs[i], n) == 0) return true;
    return false;
  }
}

/* What only shows more is never called a remedy, and stands behind what changes the time. Who can be helped
 * by the optimiser or a setting is told how. */
static void check_purposes(const hone_finding *f, const char *tool) {
  static const char *const shows[] = {"hone profile",
                                      "hone inspect",
                                      "hone verify",
                                      "hone demo",
                                      "nsys ",
                                      "ncu ",
                                      "perf ",
                                      "top ",
                                      "vmstat ",
                                      "--explain",
                                      "--noDataTransfers",
                                      "--exportProfile",
                                      "nvidia-smi",
                                      "npu-smi",
                                      "_VERBOSE"};
  for (size_t i = 0; i < f->command_count; i++) {
    const bool command = f->purposes[i] == HONE_PURPOSE_REMEDY || f->purposes[i] == HONE_PURPOSE_LOOK;
    if (command && !is_command(f->commands[i]))
      fail_msg("%s, %s: a shell cannot run it: %s", tool, f->id, f->commands[i]);
    if (i && f->purposes[i] < f->purposes[i - 1])
      fail_msg("%s, %s: out of order: %s", tool, f->id, f->commands[i]);
    for (size_t k = 0; k < sizeof shows / sizeof *shows && f->purposes[i] < HONE_PURPOSE_LOOK; k++)
      if (strstr(f->commands[i], shows[k]))
        fail_msg("%s, %s: changes nothing: %s", tool, f->id, f->commands[i]);
  }
  if (f->remedy != HONE_REMEDY_USER && f->category != HONE_CATEGORY_NOTE &&
      (!f->command_count || f->purposes[0] >= HONE_PURPOSE_LOOK))
    fail_msg("%s, %s: nothing to do: %s", tool, f->id, f->command_count ? f->commands[0] : "");
}

static void remedies_change_the_time(void **state) {
  (void)state;
  static const char *const tools[] = {NULL,      "trtexec", "onnxruntime", "nsys",   "ncu",
                                      "pytorch", "ascend",  "openvino",    "onednn", "other"};
  for (size_t t = 0; t < sizeof tools / sizeof *tools; t++)
    for (size_t i = 0; i < illness_count; i++) {
      fixture f = fixture_healthy();
      illnesses[i].ill(&f);
      if (tools[t]) f.meta.tool = tools[t];
      fixture_diagnose(&f);
      for (size_t k = 0; k < f.findings->count; k++)
        check_purposes(&f.findings->items[k], tools[t] ? tools[t] : "hone");
      fixture_free(&f);
    }
}

static bool commanded(const hone_finding *finding, const char *command) {
  for (size_t i = 0; finding && i < finding->command_count; i++)
    if (strcmp(finding->commands[i], command) == 0) return true;
  for (size_t i = 0; finding && i < finding->command_count; i++)
    print_message("  %s\n", finding->commands[i]);
  return false;
}

/* Commands speak of the case that was profiled: what the user gave is given again, unless the command is
 * about another value of it. */
static void commands_repeat_what_was_given(void **state) {
  (void)state;
  static const hone_note given[] = {{"threads", "1"},     {"shape", "in put=1x3x64x64"},
                                    {"level", "1"},       {"precision", "auto"},
                                    {"budget", "0.02"},   {"no-cache", NULL},
                                    {"passes", "fold_*"}, {"later", "unknown"}};
  fixture f = fixture_healthy();
  ill_one_thread(&f);
  ill_batch_1(&f);
  ill_memory(&f);
  f.meta.model = "my net.onnx";
  f.meta.precision = "auto";
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) f.options[f.option_count++] = given[i];
  fixture_diagnose(&f);
  assert_true(commanded(fixture_finding(&f, "single_thread"),
                        "hone bench 'my net.onnx' --shape 'in put=1x3x64x64' --level 1 --precision auto "
                        "--budget 0.02 --no-cache -t 2"));
  assert_true(
      commanded(fixture_finding(&f, "missing_batch"),
                "hone bench 'my net.onnx' --threads 1 --shape 'in put=8x3x64x64' --level 1 --precision "
                "auto --budget 0.02 --no-cache -b 8"));
  assert_true(
      commanded(fixture_finding(&f, "missing_batch"),
                "hone bench 'my net.onnx' --threads 1 --shape 'in put=1x3x64x64' --level 1 --no-cache "
                "--precision bf16"));
  /* A low level is what rewriting is to change. */
  assert_true(commanded(fixture_finding(&f, "memory_bound"),
                        "hone optimize 'my net.onnx' --passes 'fold_*' --explain"));
  fixture_free(&f);
  /* An input file has the batch that it has, and not every command reads one. */
  for (int slow = 0; slow < 2; slow++) {
    f = fixture_healthy();
    slow ? ill_slow_convolutions(&f) : ill_batch_1(&f);
    f.options[f.option_count++] = (hone_note){"input", "cat.png"};
    f.options[f.option_count++] = (hone_note){"input_shape", "x=1x3x224x224"};
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, slow ? "conv_dominated" : "missing_batch");
    assert_true(commanded(finding, slow ? "hone tune m.onnx --shape x=1x3x224x224"
                                        : "hone bench m.onnx --shape x=8x3x224x224 -b 8"));
    assert_true(commanded(finding, slow ? "hone profile m.onnx --input cat.png --filter Conv"
                                        : "hone bench m.onnx --input cat.png --precision bf16"));
    fixture_free(&f);
  }
  /* Another tool's record says less: its GPU and its batch. */
  f = fixture_healthy();
  ill_on_device(&f);
  ill_unfused(&f);
  f.meta.tool = "other";
  f.meta.batch = 4;
  f.one_gap_ms = 20;
  fixture_diagnose(&f);
  assert_true(commanded(fixture_finding(&f, "scheduling_gaps"),
                        "hone profile m.onnx --device cuda --batch 4 --trace trace.json"));
  fixture_free(&f);
}

/* Nobody is told to do what the profile itself shows to be done. */
static void done_is_not_suggested(void **state) {
  (void)state;
  static const struct {
    const char *tool, *done;
  } table[] = {{"onnxruntime", "enable_profiling"},   {"onnxruntime", "ORT_ENABLE_ALL"},
               {"openvino", "detailed_counters"},     {"ncu", "--clock-control base"},
               {"onnxruntime", "'EXHAUSTIVE'"},       {"pytorch", "profiler.profile(with_stack=True"},
               {"onednn", "ONEDNN_VERBOSE=profile "}, {"trtexec", "--exportLayerInfo"}};
  for (size_t t = 0; t < sizeof table / sizeof *table; t++)
    for (size_t i = 0; i < illness_count; i++) {
      fixture f = fixture_healthy();
      illnesses[i].ill(&f);
      f.meta.tool = table[t].tool;
      f.meta.flags = "with_stack";
      f.layers[0].shape = "f32[1,64,56,56]";
      fixture_diagnose(&f);
      for (size_t k = 0; k < f.findings->count; k++)
        for (size_t c = 0; c < f.findings->items[k].command_count; c++)
          if (strstr(f.findings->items[k].commands[c], table[t].done))
            fail_msg("%s: %s", table[t].tool, f.findings->items[k].commands[c]);
      fixture_free(&f);
    }
  /* On a processor nobody tunes cuDNN; a kernel is asked for by its function. */
  for (int gpu = 0; gpu < 2; gpu++) {
    fixture f = fixture_healthy();
    ill_slow_convolutions(&f);
    f.layers[1].name = "void cudnn::ops::scale<float, (Kind)2>(float*, dims<5>)";
    f.layers[1].jitter = 3;
    f.meta.tool = "pytorch";
    f.meta.backend = gpu ? "cuda" : "cpu";
    fixture_diagnose(&f);
    const hone_finding *tune = fixture_finding(&f, "conv_dominated");
    assert_non_null(tune);
    assert_int_equal(strstr(tune->commands[0], "cudnn.benchmark") != NULL, gpu);
    if (gpu)
      assert_true(commanded(fixture_finding(&f, "outlier_operator"),
                            "ncu --set full --kernel-name scale --launch-count 5 python APP.py"));
    fixture_free(&f);
  }
}

static bool says(const hone_finding *finding, const char *words) {
  for (size_t i = 0; finding && i < finding->command_count; i++)
    if (strstr(finding->commands[i], words)) return true;
  return false;
}

/* What keeps data from the device names what brings it there in hone, and not what was done already. */
static void data_to_the_device(void **state) {
  (void)state;
  for (int narrow = 0; narrow < 2; narrow++) {
    fixture f = fixture_healthy();
    ill_on_device(&f);
    f.h2d_ms = 6;
    f.meta.model = "m.onnx";
    if (narrow) f.options[f.option_count++] = (hone_note){"input-type", "f16"};
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, "h2d_bound");
    assert_true(says(finding, "hone bench m.onnx"));
    assert_true(says(finding, "--streams 2 --pinned"));
    assert_int_equal(says(finding, "--input-type u8"), !narrow);
    assert_int_equal(says(finding, narrow ? "--input-type f16 --streams" : "--input-type f16"), true);
    fixture_free(&f);
    f = fixture_healthy();
    ill_one_stream(&f);
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, "single_stream"), "--streams 2 --pinned"));
    fixture_free(&f);
    f = fixture_healthy();
    ill_pageable(&f);
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, "pageable_copies"), "--pinned"));
    fixture_free(&f);
  }
}

/* Gaps are filled by another run, unless there are several already. On a processor nothing is pinned. */
static void gaps_are_filled_by_streams(void **state) {
  (void)state;
  for (int several = 0; several < 2; several++) {
    fixture f = fixture_healthy();
    f.gap_ms = 0.3;
    f.meta.model = "m.onnx";
    f.meta.streams = several ? 2 : 1;
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, "scheduling_gaps");
    assert_non_null(finding);
    assert_int_equal(says(finding, "hone bench m.onnx --streams 2"), !several);
    assert_false(says(finding, "--pinned"));
    fixture_free(&f);
  }
}

static void stages_around_go_into_a_pipeline(void **state) {
  (void)state;
  for (int behind = 0; behind < 2; behind++) {
    fixture f = fixture_healthy();
    *(behind ? &f.post_ms : &f.pre_ms) = 8;
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, behind ? "slow_post" : "slow_pre"), "hone pipeline m.onnx"));
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_tool_has_commands),
      cmocka_unit_test(remedies_change_the_time),
      cmocka_unit_test(commands_repeat_what_was_given),
      cmocka_unit_test(done_is_not_suggested),
      cmocka_unit_test(data_to_the_device),
      cmocka_unit_test(gaps_are_filled_by_streams),
      cmocka_unit_test(stages_around_go_into_a_pipeline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
