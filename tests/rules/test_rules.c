/* Every rule: one profile on which it must fire, one close to it on which it must keep quiet. */
#include "rules/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct rule_case {
  const char *rule;
  void (*ill)(fixture *f);
  void (*nearly)(fixture *f); /* just short of ill */
} rule_case;

#include "rules/illnesses.inc"

/* ---- the tests ---- */

static void every_rule_has_a_case(void **state) {
  (void)state;
  static const char *const rules[] = {
#define RULE(name) #name,
#include "insight/diagnose/rules.def"
#undef RULE
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    bool found = false;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
      found = found || strcmp(rules[i], cases[k].rule) == 0;
    if (!found) fail_msg("rule %s has no fixture", rules[i]);
  }
}

/* What every finding owes its reader. */
static void check_complete(const hone_finding *f) {
  assert_true(f->title && *f->title && f->subject && *f->subject);
  assert_true(f->cause && *f->cause);
  assert_false(strncmp(f->subject, "1 ", 2) == 0 && f->subject[1 + strcspn(f->subject + 2, " ,")] == 's');
  assert_true(f->evidence_count >= 2);
  for (size_t i = 0; i < f->evidence_count; i++) {
    assert_true(f->evidence[i].source && *f->evidence[i].source);
    assert_true(isfinite(f->evidence[i].value));
  }
  assert_true(f->command_count >= 1);
  for (size_t i = 0; i < f->command_count; i++) {
    const char *c = f->commands[i];
    assert_true(*c);
    for (const char *const *word = (const char *const[]){"{model}", "{onnx}", "{file}", "{device}", "{float}",
                                                         "{layer}", "{n}", NULL};
         *word; word++)
      if (strstr(c, *word)) fail_msg("a placeholder is left in: %s", c);
    if (strncmp(c, "hone ", 5) == 0 && strncmp(c, "hone de", 7) != 0)
      assert_true(strstr(c, "m.onnx") || strstr(c, " FLOAT.onnx"));
  }
  assert_true(f->p <= 1);
  if (f->category == HONE_CATEGORY_NOTE)
    assert_true(f->predicted_gain_pct == 0 && f->severity == HONE_SEVERITY_LOW);
  else
    assert_true(f->p > 0 && f->s > 1);
  assert_true(f->s_basis && *f->s_basis);
  assert_true(f->s_low >= 1 && f->s_low <= f->s && f->s <= f->s_high);
  assert_true(f->gain_low_pct <= f->predicted_gain_pct && f->predicted_gain_pct <= f->gain_high_pct);
  assert_true(f->confidence > 0 && f->confidence <= 1);
  assert_true(fabs(f->predicted_gain_pct - 100 * (hone_amdahl(f->p, f->s) - 1)) < 1e-6);
}

static bool foretold(fixture *f, hone_forecast *forecast) {
  fixture_diagnose(f);
  return hone_forecast_make(f->profile, forecast);
}

/* Known tactics by what they took, unknown ones by how fast the machine was: the model's half is made good in
 * both. */
static void forecast(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  faster_kernels(&f);
  hone_forecast forecast;
  assert_true(foretold(&f, &forecast));
  /* five convolutions of 2 ms become 1.2 each; 0.8 ms of others and 0.07 between steps stay */
  assert_true(fabs(forecast.before_ms - 10.87) < 0.02);
  assert_true(fabs(forecast.after_ms - 6.87) < 0.02);
  assert_true(fabs(forecast.saved_pct - 100 * 4 / 10.87) < 0.3);
  const hone_finding *finding = fixture_finding(&f, "faster_tactics");
  assert_non_null(finding);
  assert_true(fabs(finding->predicted_saved_pct - forecast.saved_pct) < 0.5);
  fixture_free(&f);
  /* some microseconds of a step's time are its cold start: a change of so little is none */
  for (int i = 0; i < 2; i++) {
    f = fixture_healthy();
    same_kernels(&f);
    f.layers[0].timed_ms = i ? 1.9 : 1.998;
    assert_true(foretold(&f, &forecast));
    assert_true((forecast.unsure_ms > 0) == !i && (forecast.gain_pct == 0) == !i);
    fixture_free(&f);
  }
  /* what was timed on its own takes that, whatever the models say; what was not goes as its kernel does */
  f = fixture_healthy();
  faster_kernels(&f);
  for (int i = 0; i < 4; i++) f.layers[i].timed_ms = 0.9;
  f.layers[4].scaled_ms = 0.9;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.before_ms - forecast.after_ms - 5 * 1.1) < 0.02);
  assert_true(fabs(forecast.seen_pct - 100 * (4 * 0.9 + 0.8) / (5 * 0.9 + 0.8)) < 0.5);
  finding = fixture_finding(&f, "faster_tactics");
  assert_int_equal(finding->basis, HONE_BASIS_MODEL); /* one of five is not timed */
  fixture_free(&f);
  f = fixture_healthy();
  faster_kernels(&f);
  for (int i = 0; i < 5; i++) f.layers[i].timed_ms = 0.9;
  assert_true(foretold(&f, &forecast));
  finding = fixture_finding(&f, "faster_tactics");
  assert_int_equal(finding->basis, HONE_BASIS_MEASURED);
  assert_true(fabs(finding->predicted_saved_pct - forecast.saved_pct) < 0.5);
  fixture_free(&f);
  /* a start of 3 ms that is in the model only: what the model adds is added, not the model's share of it */
  f = fixture_healthy();
  same_kernels(&f);
  for (int i = 0; i < 5; i++) f.layers[i].model_ms = 5, f.layers[i].preview_ms = 5.5;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.after_ms - forecast.before_ms - 2.5) < 0.05);
  fixture_free(&f);
  /* a tensor that is brought into a layout and back: the way there stays, and takes what that way took */
  f = fixture_healthy();
  fixture_layer *there = fixture_add(&f, "x", "Reformat", 1), *back = fixture_add(&f, "x", "Reformat", 3);
  there->reformat = back->reformat = true;
  there->does = "to pixels", back->does = "to rows";
  same_kernels(&f);
  back->preview_ms = 0;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.before_ms - forecast.after_ms - 3) < 0.05);
  fixture_free(&f);
  f = fixture_healthy();
  assert_false(foretold(&f, &forecast));
  fixture_free(&f);
}

static void rules_fire(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].ill(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, cases[i].rule);
    if (!finding) fail_msg("%s must fire and did not", cases[i].rule);
    check_complete(finding);
    fixture_free(&f);
  }
}

static void rules_stay_quiet(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].nearly(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, cases[i].rule);
    if (finding) fail_msg("%s must stay quiet and said: %s", cases[i].rule, finding->title);
    fixture_free(&f);
  }
}

static void healthy_is_no_finding(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  fixture_diagnose(&f);
  if (f.findings->count) fail_msg("healthy, but: %s", f.findings->items[0].title);
  fixture_free(&f);
}

/* Each illness alone must not be blamed on another rule first. */
static void first_finding_names_the_illness(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].ill(&f);
    fixture_diagnose(&f);
    assert_true(f.findings->count > 0);
    if (strncmp(f.findings->items[0].id, cases[i].rule, strlen(cases[i].rule)) != 0)
      fail_msg("%s was planted, but %s comes first", cases[i].rule, f.findings->items[0].id);
    fixture_free(&f);
  }
}

static void works_without_roofs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    f.no_roofs = true;
    cases[i].ill(&f);
    fixture_diagnose(&f);
    for (size_t k = 0; k < f.findings->count; k++) check_complete(&f.findings->items[k]);
    fixture_free(&f);
  }
}

static void near_misses_name_pass_and_reason(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  f.meta.opt_level = 0;
  f.near_miss_level = 2;
  fixture_add(&f, "act", "Relu", 1)->mb = 16;
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "unfused_pattern:fuse_it");
  assert_non_null(finding);
  assert_int_equal(finding->remedy, HONE_REMEDY_OPTIMIZER);
  assert_int_equal(finding->node_count, 2);
  check_complete(finding);
  fixture_free(&f);
  f = fixture_healthy();
  f.near_miss_level = -1;
  fixture_add(&f, "act", "Relu", 1)->mb = 16;
  fixture_diagnose(&f);
  finding = fixture_finding(&f, "unfused_pattern:fuse_it:refused");
  assert_non_null(finding);
  assert_non_null(strstr(finding->cause, "two consumers"));
  fixture_free(&f);
  /* Two products: whatever a pass wanted with them, neither disappears. */
  f = fixture_healthy();
  f.near_miss_level = -1;
  fixture_diagnose(&f);
  assert_null(fixture_finding(&f, "unfused_pattern"));
  fixture_free(&f);
}

static void gap_is_located(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  f.one_gap_ms = 4;
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "scheduling_gaps");
  assert_non_null(finding);
  assert_non_null(strstr(finding->subject, "conv2"));
  assert_true(fabs(fixture_evidence(finding, "longest gap") - 4.01) < 1e-3);
  /* Reports mark what ran before and after it; neither is promised to become faster. */
  assert_int_equal(finding->beside_count, 2);
  assert_string_equal(finding->beside[0], "conv1");
  assert_string_equal(finding->beside[1], "conv2");
  assert_int_equal(finding->node_count, 0);
  fixture_free(&f);
  f = fixture_healthy();
  gaps(&f);
  fixture_diagnose(&f);
  finding = fixture_finding(&f, "scheduling_gaps");
  assert_non_null(finding);
  assert_true(finding->beside_count >= 4);
  fixture_free(&f);
}

static void ranked_structure_first_then_gain(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  slow_convolutions(&f);
  f.gap_ms = 0.6;
  outlier(&f);
  fixture_diagnose(&f);
  assert_true(f.findings->count >= 3);
  for (size_t i = 1; i < f.findings->count; i++) {
    const hone_finding *a = &f.findings->items[i - 1], *b = &f.findings->items[i];
    assert_true(a->category <= b->category);
    if (a->category == b->category) assert_true(a->severity <= b->severity);
    if (a->category == b->category && a->severity == b->severity)
      assert_true(a->predicted_gain_pct >= b->predicted_gain_pct);
  }
  fixture_free(&f);
}

static void thresholds_override(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  small_gaps(&f);
  fixture_diagnose(&f);
  assert_null(fixture_finding(&f, "scheduling_gaps"));
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_set(t, "idle_share", 3, &error), HONE_OK);
  assert_int_equal(hone_thresholds_set(t, "no_such", 3, &error), HONE_ERROR_USAGE);
  assert_int_equal(hone_thresholds_set(t, "idle_share", NAN, &error), HONE_ERROR_USAGE);
  hone_findings_destroy(f.findings);
  assert_int_equal(hone_diagnose(f.profile, &(hone_diagnose_options){.thresholds = t}, &f.findings, &error),
                   HONE_OK);
  assert_non_null(fixture_finding(&f, "scheduling_gaps"));
  hone_thresholds_destroy(t);
  fixture_free(&f);
}

/* -b changes nothing where the model fixes its batch: opening it comes first. */
static void fixed_batch_is_opened_first(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 2; fixed++) {
    fixture f = fixture_healthy();
    batch_1(&f);
    if (fixed) fixture_counter(&f, "batch_fixed", -1, 1);
    fixture_diagnose(&f);
    const hone_finding *missing = fixture_finding(&f, "missing_batch");
    assert_non_null(missing);
    size_t opening = 0;
    for (size_t i = 0; i < missing->command_count; i++)
      opening += strstr(missing->commands[i], "--open-batch") != NULL;
    assert_int_equal(opening, fixed);
    fixture_free(&f);
  }
}

/* The kernel classes were given when the profile was made; findings go by the limits that were asked for. */
static void class_limits_override(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  latency(&f);
  fixture_diagnose(&f);
  assert_non_null(fixture_finding(&f, "latency_bound"));
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_set(t, "roof_far", 0.001, &error), HONE_OK);
  hone_findings_destroy(f.findings);
  assert_int_equal(hone_diagnose(f.profile, &(hone_diagnose_options){.thresholds = t}, &f.findings, &error),
                   HONE_OK);
  assert_null(fixture_finding(&f, "latency_bound"));
  hone_thresholds_destroy(t);
  fixture_free(&f);
}

/* The prediction is scored against what really happened to the nodes it names. */
static void measured_gain_follows_the_nodes(void **state) {
  (void)state;
  fixture before = fixture_healthy(), after = fixture_healthy();
  unfused(&before);
  one_thread(&before); /* and nobody does anything about that */
  fixture_diagnose(&before);
  fixture_add(&after, "c", "Conv", 1)->mb = 4; /* bn and relu are gone */
  fixture_diagnose(&after);
  hone_error error = {0};
  assert_int_equal(hone_findings_measure(before.findings, before.profile, after.profile, &error), HONE_OK);
  const hone_finding *f = fixture_finding(&before, "unfused_pattern");
  assert_non_null(f);
  assert_true(f->measured);
  assert_non_null(fixture_finding(&before, "single_thread"));
  assert_false(fixture_finding(&before, "single_thread")->measured);
  double saved = 1.0 / before.profile->closure.wall_ms;
  assert_true(fabs(f->measured_saved_pct - 100 * saved) < 0.5);
  assert_true(fabs(f->measured_gain_pct - 100 * (1 / (1 - saved) - 1)) < 0.5);
  double all = hone_findings_predict(before.findings, HONE_REMEDY_OPTIMIZER);
  assert_true(fabs(all - f->predicted_gain_pct) < 0.5);
  for (size_t i = 0; i < before.findings->count; i++) /* nobody did what others ask for */
    assert_true(before.findings->items[i].measured ==
                (before.findings->items[i].remedy == HONE_REMEDY_OPTIMIZER));
  fixture_free(&before);
  fixture_free(&after);
}

static bool ascii(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text > 127) return false;
  return true;
}

/* Every text of every finding has a Chinese form, and the same finding comes out in both languages. */
static void chinese_everywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture en = fixture_healthy(), zh = fixture_healthy();
    cases[i].ill(&en);
    cases[i].ill(&zh);
    zh.language = HONE_LANGUAGE_ZH;
    fixture_diagnose(&en);
    fixture_diagnose(&zh);
    assert_int_equal(en.findings->count, zh.findings->count);
    for (size_t k = 0; k < zh.findings->count; k++) {
      const hone_finding *a = &en.findings->items[k], *b = &zh.findings->items[k];
      assert_string_equal(a->id, b->id);
      assert_true(a->predicted_gain_pct == b->predicted_gain_pct);
      if (!ascii(a->title) || !ascii(a->cause) || !ascii(a->s_basis))
        fail_msg("not English: %s, %s, %s", a->title, a->cause, a->s_basis);
      if (ascii(b->title) || ascii(b->cause) || ascii(b->s_basis))
        fail_msg("not Chinese: %s, %s, %s", b->title, b->cause, b->s_basis);
      assert_int_equal(a->evidence_count, b->evidence_count);
      for (size_t e = 0; e < b->evidence_count; e++) {
        assert_string_equal(a->evidence[e].name, b->evidence[e].name); /* programs read this one */
        assert_true(ascii(a->evidence[e].label));
      }
    }
    fixture_free(&en);
    fixture_free(&zh);
  }
}

/* Whatever tool recorded it: each finding has something to do, in the words of that tool where it has some.
 */
static void every_tool_has_commands(void **state) {
  (void)state;
  static const char *const tools[] = {"trtexec", "onnxruntime", "nsys",   "ncu",  "pytorch",
                                      "ascend",  "openvino",    "onednn", "other"};
  for (size_t t = 0; t < sizeof tools / sizeof *tools; t++) {
    size_t fired = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      fixture f = fixture_healthy();
      cases[i].ill(&f);
      f.meta.tool = tools[t];
      f.meta.model = "net.engine"; /* no ONNX file: commands name a placeholder instead */
      fixture_diagnose(&f);
      /* Rules about processors keep quiet on tools of accelerators. */
      const hone_finding *finding = fixture_finding(&f, cases[i].rule);
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
  full_precision(&f);
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      fixture f = fixture_healthy();
      cases[i].ill(&f);
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
  one_thread(&f);
  batch_1(&f);
  memory(&f);
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
    slow ? slow_convolutions(&f) : batch_1(&f);
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
  on_device(&f);
  unfused(&f);
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      fixture f = fixture_healthy();
      cases[i].ill(&f);
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
    slow_convolutions(&f);
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
    on_device(&f);
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
    one_stream(&f);
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, "single_stream"), "--streams 2 --pinned"));
    fixture_free(&f);
    f = fixture_healthy();
    pageable(&f);
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, "pageable_copies"), "--pinned"));
    fixture_free(&f);
  }
}

/* One root cause is named once: the copies that a fallback needs are not a second finding. */
static void consequences_join_their_cause(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  pageable(&f);
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "pageable_copies");
  assert_non_null(finding);
  assert_null(fixture_finding(&f, "h2d_bound"));
  bool merged = false;
  for (size_t i = 0; i < finding->merged_count; i++)
    merged = merged || strcmp(finding->merged[i], "h2d_bound") == 0;
  assert_true(merged);
  assert_false(isnan(fixture_evidence(finding, "ceiling when stages overlap"))); /* came along */
  fixture_free(&f);
  /* A root that explains little of it takes nothing in. */
  f = fixture_healthy();
  on_device(&f);
  f.h2d_ms = 6;
  fixture_layer *l = fixture_add(&f, "odd_op", "Einsum", 0.8);
  l->on_host = true;
  fixture_diagnose(&f);
  assert_non_null(fixture_finding(&f, "host_fallback"));
  assert_non_null(fixture_finding(&f, "h2d_bound"));
  fixture_free(&f);
}

/* An operator that stands out for a reason that has a name is found by that name; for another reason, or at
 * another place, it keeps its own. */
static void outliers_join_what_explains_them(void **state) {
  (void)state;
  static const struct {
    double slower;     /* than the convolutions beside it */
    double over_model; /* of the same one, or of `other` */
    int other;
    bool joins;
  } table[] = {{5, 10, 0, true}, {1.3, 12, 0, false}, {5, 12, 2, false}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    fixture f = fixture_healthy();
    odd_channels(&f);
    f.layers[0].ms *= table[i].slower / 2.5;
    for (int k = 0; k < f.count; k++) f.layers[k].model_ms = f.layers[k].ms / 2;
    fixture_layer *l = &f.layers[table[i].other];
    l->model_ms = l->ms / table[i].over_model;
    fixture_diagnose(&f);
    const hone_finding *channels = fixture_finding(&f, "misaligned_channels");
    const hone_finding *outlier = fixture_finding(&f, "outlier_operator");
    assert_non_null(channels);
    assert_int_equal(outlier == NULL, table[i].joins);
    if (table[i].joins) {
      assert_ptr_equal(channels, &f.findings->items[0]);
      bool merged = false;
      for (size_t k = 0; k < channels->merged_count; k++)
        merged = merged || strcmp(channels->merged[k], "outlier_operator:conv0") == 0;
      assert_true(merged);
      assert_false(isnan(fixture_evidence(channels, "over its cost model")));
    }
    fixture_free(&f);
  }
}

/* Few operators have no usual one: an outlier stands out from each of the others. What it makes of the
 * convolutions as a whole is its doing, unless they are slow without it. */
static void outlier_among_few(void **state) {
  (void)state;
  for (int others = 0; others < 3;
       others++) { /* near their models; one of them as far off; slow all together */
    fixture f = fixture_healthy();
    f.count = others == 2 ? 5 : 3;
    f.layers[1].ms *= others == 2 ? 5 : 12;
    for (int i = 0; i < f.count; i++) {
      f.layers[i].model_ms = 1;
      if (others == 2) f.layers[i].gflop *= 0.1;
    }
    if (others == 1) f.layers[2].model_ms = 0.1;
    fixture_diagnose(&f);
    const hone_finding *outlier = fixture_finding(&f, "outlier_operator");
    assert_int_equal(outlier != NULL, others != 1);
    if (others == 0) assert_ptr_equal(outlier, &f.findings->items[0]);
    assert_int_equal(fixture_finding(&f, "conv_dominated") != NULL, others != 0);
    fixture_free(&f);
  }
}

/* A drift within seconds is a note: a neighbour does that, too. One of a longer record comes first. */
static void brief_drift_is_a_note(void **state) {
  (void)state;
  for (int minutes = 0; minutes < 2; minutes++) {
    fixture f = fixture_healthy();
    drift(&f);
    odd_channels(&f);
    for (int i = 0; i < f.count; i++) f.layers[i].ms *= minutes ? 50 : 1;
    fixture_diagnose(&f);
    const hone_finding *found = fixture_finding(&f, "latency_drift");
    assert_non_null(found);
    assert_int_equal(found->category, minutes ? HONE_CATEGORY_STRUCTURAL : HONE_CATEGORY_NOTE);
    assert_int_equal(found->predicted_gain_pct > 0, minutes);
    assert_non_null(strstr(found->commands[0], minutes ? "hone bench" : "--duration 10m"));
    assert_int_equal(found == &f.findings->items[0], minutes);
    fixture_free(&f);
  }
}

/* Neighbours come first while they slow the typical run, with a way to measure without them; once few runs
 * are interrupted they are a note. */
static void neighbours_of_a_steady_run_are_a_note(void **state) {
  (void)state;
  static const struct {
    double switches, jitter, drift;
    bool note;
  } c[] = {{300, 0, 0, false},   /* every run was interrupted */
           {3, 0, 0, true},      /* some were, and are hardly longer */
           {3, 3, 0, true},      /* some were, and are much longer */
           {3, 0, 0.03, false}}; /* the typical run takes far longer than the best */
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int language = 0; language < 2; language++) {
      fixture f = fixture_healthy();
      f.language = language ? HONE_LANGUAGE_ZH : HONE_LANGUAGE_EN;
      f.drift = c[i].drift;
      for (int k = 0; k < f.count; k++) f.layers[k].jitter = c[i].jitter;
      fixture_counter(&f, "others_cpu", -1, 45);
      fixture_counter(&f, "run_delay", -1, 35);
      fixture_counter(&f, "involuntary_switches", -1, c[i].switches);
      fixture_diagnose(&f);
      const hone_finding *found = fixture_finding(&f, "busy_neighbour");
      assert_non_null(found);
      assert_int_equal(found->category, c[i].note ? HONE_CATEGORY_NOTE : HONE_CATEGORY_STRUCTURAL);
      assert_int_equal(found->predicted_gain_pct > 0, !c[i].note);
      bool waits = false;
      for (size_t k = 0; k < found->command_count; k++)
        waits |= strstr(found->commands[k], "--quiet-wait") != NULL;
      assert_true(waits);
      fixture_free(&f);
    }
}

/* A run in which everything scatters is a note about the measurement: what is wrong with the network comes
 * first. */
static void noise_is_a_note(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  odd_channels(&f);
  for (int i = 0; i < f.count; i++) f.layers[i].jitter = 3;
  fixture_diagnose(&f);
  const hone_finding *noise = fixture_finding(&f, "outlier_operator");
  assert_non_null(noise);
  assert_int_equal(noise->category, HONE_CATEGORY_NOTE);
  assert_true(noise->predicted_gain_pct == 0);
  assert_ptr_equal(fixture_finding(&f, "misaligned_channels"), &f.findings->items[0]);
  fixture_free(&f);
  /* All scatter, but one loses most of what is lost. */
  f = fixture_healthy();
  for (int i = 0; i < f.count; i++) f.layers[i].jitter = i == 1 ? 7 : 1.6;
  fixture_diagnose(&f);
  assert_string_equal(f.findings->items[0].id, "outlier_operator:conv1");
  fixture_free(&f);
}

/* A profile without what a rule needs is no reason to speak. */
static void nothing_is_claimed_without_facts(void **state) {
  (void)state;
  static const char *const by_roof[] = {"memory_bound",   "latency_bound",  "missing_batch",
                                        "conv_dominated", "small_channels", "misaligned_channels"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].ill(&f);
    f.no_roofs = true;
    fixture_diagnose(&f);
    for (size_t k = 0; k < f.findings->count; k++)
      if (f.findings->items[k].basis == HONE_BASIS_ROOFLINE)
        fail_msg("a roofline without roofs: %s", f.findings->items[k].title);
    for (size_t k = 0; k < sizeof by_roof / sizeof *by_roof && !f.counter_count; k++) {
      const hone_finding *found = fixture_finding(&f, by_roof[k]);
      /* Other people's figures, and bytes, are offered as such. */
      if (found && (found->category != HONE_CATEGORY_TRADE || found->basis == HONE_BASIS_MEASURED))
        fail_msg("%s without roofs: %s", by_roof[k], found->title);
    }
    fixture_free(&f);
  }
}

/* The same network in float decides whether int8 brought anything. */
static void gain_of_int8_against_float(void **state) {
  (void)state;
  fixture before = fixture_healthy(), quick = fixture_healthy(), slow = fixture_healthy();
  fixture_diagnose(&before);
  int8(&quick);
  quick.float_profile = before.profile;
  fixture_diagnose(&quick);
  /* Whoever gives both wants to know: a note. */
  const hone_finding *pays = fixture_finding(&quick, "quantisation_without_gain");
  assert_non_null(pays);
  check_complete(pays);
  assert_int_equal(pays->category, HONE_CATEGORY_NOTE);
  assert_true(fixture_evidence(pays, "gain over float") > 100);
  fixture alone = fixture_healthy();
  int8(&alone);
  fixture_diagnose(&alone);
  assert_null(fixture_finding(&alone, "quantisation_without_gain"));
  fixture_free(&alone);
  int8(&slow);
  for (int i = 0; i < 5; i++) slow.layers[i].ms = 1.95;
  slow.float_profile = before.profile;
  slow.no_roofs = true;
  fixture_diagnose(&slow);
  const hone_finding *f = fixture_finding(&slow, "quantisation_without_gain");
  assert_non_null(f);
  assert_true(fabs(fixture_evidence(f, "gain over float") - 2.3) < 0.5);
  assert_non_null(strstr(f->title, "brings only +2 %"));
  /* Slower than float: said so, and what is to be had is float's own time. */
  fixture slower = fixture_healthy();
  int8(&slower);
  for (int i = 0; i < 5; i++) slower.layers[i].ms = 3.9;
  slower.float_profile = before.profile;
  slower.no_roofs = true;
  fixture_diagnose(&slower);
  f = fixture_finding(&slower, "quantisation_without_gain");
  assert_non_null(f ? strstr(f->title, "slower than float") : NULL);
  const double loss = fixture_evidence(f, "gain over float");
  assert_true(loss < -40 && f->basis == HONE_BASIS_MEASURED);
  assert_true(fabs(f->predicted_gain_pct - 100 * (100 / (100 + loss) - 1)) < 1);
  fixture_free(&slower);
  fixture_free(&before);
  fixture_free(&quick);
  fixture_free(&slow);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule_has_a_case),
      cmocka_unit_test(forecast),
      cmocka_unit_test(rules_fire),
      cmocka_unit_test(rules_stay_quiet),
      cmocka_unit_test(healthy_is_no_finding),
      cmocka_unit_test(first_finding_names_the_illness),
      cmocka_unit_test(works_without_roofs),
      cmocka_unit_test(near_misses_name_pass_and_reason),
      cmocka_unit_test(gap_is_located),
      cmocka_unit_test(ranked_structure_first_then_gain),
      cmocka_unit_test(thresholds_override),
      cmocka_unit_test(class_limits_override),
      cmocka_unit_test(fixed_batch_is_opened_first),
      cmocka_unit_test(measured_gain_follows_the_nodes),
      cmocka_unit_test(chinese_everywhere),
      cmocka_unit_test(every_tool_has_commands),
      cmocka_unit_test(remedies_change_the_time),
      cmocka_unit_test(commands_repeat_what_was_given),
      cmocka_unit_test(done_is_not_suggested),
      cmocka_unit_test(data_to_the_device),
      cmocka_unit_test(consequences_join_their_cause),
      cmocka_unit_test(outliers_join_what_explains_them),
      cmocka_unit_test(brief_drift_is_a_note),
      cmocka_unit_test(neighbours_of_a_steady_run_are_a_note),
      cmocka_unit_test(noise_is_a_note),
      cmocka_unit_test(outlier_among_few),
      cmocka_unit_test(nothing_is_claimed_without_facts),
      cmocka_unit_test(gain_of_int8_against_float),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
