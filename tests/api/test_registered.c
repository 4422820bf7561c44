/* Units from outside of hone: an operator of the domain "test", a tactic for it and a pattern that spells it
 * out are registered, used and taken away again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "insight/diagnose/rule.h"
#include "insight/import/import.h"
#include "model/ir/text.h"
#include "model/operators.h"
#include "optimize/match/patterns.h"
#include "optimize/passes/optimize.h"
#include "runtime/devices.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Swell: x + scale sin(x) */

enum { N = 6 };

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  *io->output[0] = *io->input[0];
  return HONE_OK;
}

static void swell(const float *x, float scale, float *y) {
  for (int i = 0; i < N; i++) y[i] = x[i] + scale * sinf(x[i]);
}

static int by_reference, by_tactic, by_newer;

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  by_reference++;
  swell(call->input[0]->data, hone_node_float(call->node, "scale", 2), call->output[0]->data);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"scale", HONE_ATTR_FLOAT, false, 0, 0}, {NULL, 0, false, 0, 0}};

static const hone_op_desc op = {HONE_DESC_HEAD(hone_op_desc),
                                .domain = "test",
                                .op_type = "Swell",
                                .since = 1,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .types = HONE_TYPES(HONE_DTYPE_F32),
                                .attrs = attrs,
                                .infer = infer,
                                .reference = reference};

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  return !s->n_epilogue || hn_refuse(why, "no epilogues");
}

static double cost(const hone_step *s, const hone_machine *m) {
  (void)s, (void)m;
  return 1e-6;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  by_tactic++;
  swell(r->in[0], hone_node_float(r->step->node, "scale", 2), r->out[0]);
  return HONE_OK;
}

#define TACTIC(NAME, DEVICE, ANCHOR)                                                                         \
  {                                                                                                          \
    HONE_DESC_HEAD(hone_tactic_desc), .name = (NAME), .device = (DEVICE), .anchor = (ANCHOR), .version = 1,  \
                                      .accepts = accepts, .cost = cost, .run = run                           \
  }
static const hone_tactic_desc tactic = TACTIC("swell_plain", "cpu", "test.Swell");

static void once(const hone_match *m, const hone_attr_sink *sink) {
  (void)m;
  sink->set_float(sink->self, "scale", 1);
}

static const hone_pattern_desc pattern = {HONE_DESC_HEAD(hone_pattern_desc), .name = "test.Swell",
                                          .text = "%s = Sin(%x)\n%y = Add(%x, %s)", .inputs = "%x",
                                          .attrs = once};

static const void *const ops[] = {&op}, *const patterns[] = {&pattern};

static void add_all(void) {
  hone_error e = {0};
  if (hn_registry_add(&hn_operators, ops, 1, &e) || hn_tactic_add(&tactic, &e) ||
      hn_registry_add(&hn_patterns, patterns, 1, &e))
    fail_msg("%s", e.what);
}

static int remove_all(void **state) {
  (void)state;
  hone_error e = {0};
  hn_registry_reset(&hn_patterns);
  (void)hn_tactic_remove(&tactic, &e);
  hn_registry_reset(&hn_operators);
  by_reference = by_tactic = by_newer = 0;
  return 0;
}

/* ---- models */

#define OF_SWELL                                                                                             \
  "opset 17\nopset \"test\" 1\ngraph g(%x: f32[6]) -> (%y) {\n  %y = test::Swell(%x) {scale=3.0} "           \
  "\"wave\"\n}\n"
#define SPELLED_OUT "opset 17\ngraph g(%x: f32[6]) -> (%y) {\n  %s = Sin(%x)\n  %y = Add(%x, %s)\n}\n"

static hone_model *parsed(const char *text) {
  hone_model *m = NULL;
  hone_error e = {0};
  if (hn_model_parse("test", text, strlen(text), &m, &e) || hn_model_resolve(m, &e) || hn_model_infer(m, &e))
    fail_msg("%s: %s", e.where, e.what);
  return m;
}

typedef struct session {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
} session;

static session opened(hone_model *m, int level, bool by_references, const char *tactics) {
  session s = {0};
  hone_error e = {0};
  const hone_engine_options eo = {.threads = 1, .tactics = tactics, .tuning = "off"};
  const hone_plan_options po = {.level = level, .reference = by_references};
  if (hone_engine_create(&eo, &s.engine, &e) || hone_plan_create(s.engine, m, &po, &s.plan, &e) ||
      hone_context_create(s.plan, &s.context, &e))
    fail_msg("%s: %s", e.where, e.what);
  return s;
}

static void finish(session *s) {
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hone_engine_destroy(s->engine);
}

/* Runs it, and compares with x + scale sin(x). */
static void answers(const session *s, float scale) {
  static float x[N] = {-3, -1, 0, 0.5f, 1, 4};
  const hone_tensor in = {.desc = hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){N}), .data = x};
  float want[N];
  hone_error e = {0};
  if (hone_context_run(s->context, (const hone_tensor *const[]){&in}, NULL, &e)) fail_msg("%s", e.what);
  swell(x, scale, want);
  const float *y = hone_context_output(s->context, 0)->data;
  for (int i = 0; i < N; i++) assert_true(fabsf(y[i] - want[i]) <= 1e-6f * fabsf(want[i]));
}

static const char *doer(const session *s) {
  hone_step_info info;
  assert_int_equal(hone_plan_steps(s->plan), 1);
  assert_true(hone_plan_step(s->plan, 0, &info));
  assert_string_equal(info.op_type, "test.Swell");
  return info.tactic;
}

/* ---- tests */

static void file_of(const char *name, char *path, size_t size) {
  hone_error e = {0};
  snprintf(path, size, "%s/%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", name);
  hone_model *m = parsed(OF_SWELL);
  if (hone_model_save(m, path, &e)) fail_msg("%s", e.what);
  hone_model_release(m);
}

static void comes_and_goes(void **state) {
  (void)state;
  char path[500];
  hone_error e = {0};
  hone_model *m = NULL;
  add_all();
  file_of("swell.onnx", path, sizeof path);
  if (hone_model_load(path, &m, &e)) fail_msg("%s", e.what);
  for (int level = 0; level <= 2; level += 2) {
    session s = opened(m, level, false, NULL);
    assert_string_equal(doer(&s), "swell_plain");
    answers(&s, 3);
    finish(&s);
  }
  assert_int_equal(by_tactic, 2);
  assert_int_equal(by_reference, 0);
  session s = opened(m, 2, true, NULL);
  answers(&s, 3);
  finish(&s);
  s = opened(m, 2, false, "-swell_*");
  assert_string_equal(doer(&s), "ref");
  answers(&s, 3);
  assert_int_equal(by_reference, 2);

  /* Taken away: who has it keeps it, who comes later does not find it. */
  assert_int_equal(hn_registry_remove(&hn_operators, ops, 1, &e), HONE_OK);
  assert_int_equal(hn_registry_remove(&hn_patterns, patterns, 1, &e), HONE_OK);
  assert_int_equal(hn_tactic_remove(&tactic, &e), HONE_OK);
  hone_model *late = NULL;
  assert_int_equal(hone_model_load(path, &late, &e), HONE_ERROR_UNSUPPORTED);
  assert_null(late);
  assert_string_equal(e.what, "operator test.Swell is not implemented");
  assert_non_null(strstr(e.where, "swell.onnx"));
  assert_non_null(strstr(e.where, "node 'wave'"));
  answers(&s, 3);
  finish(&s);
  s = opened(m, 2, false, NULL);
  assert_string_equal(doer(&s), "ref");
  answers(&s, 3);
  finish(&s);
  assert_true(hn_registry_holds(&hn_operators, &op));
  hone_model_release(m);
  assert_false(hn_registry_holds(&hn_operators, &op));
  assert_int_equal(hn_registry_remove(&hn_operators, ops, 1, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "operator test.Swell of opset 1 is not registered");
  unlink(path);
}

/* A plan keeps its tactic; a saved one needs it to be there. */
static void plans_keep_tactics(void **state) {
  (void)state;
  char path[500];
  hone_error e = {0};
  add_all();
  hone_model *m = parsed(OF_SWELL);
  session s = opened(m, 2, false, NULL), again = s;
  snprintf(path, sizeof path, "%s/swell.plan", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (hone_plan_save(s.plan, path, &e)) fail_msg("%s", e.what);
  if (hone_plan_open(s.engine, path, &again.plan, &e) || hone_context_create(again.plan, &again.context, &e))
    fail_msg("%s", e.what);
  assert_string_equal(doer(&again), "swell_plain");
  answers(&again, 3);
  hone_context_destroy(again.context);
  hone_plan_destroy(again.plan);
  const hn_backend *cpu;
  uint32_t index;
  assert_int_equal(hn_backend_find("cpu", &cpu, &index, &e), HONE_OK);
  assert_int_equal(hn_tactic_remove(&tactic, &e), HONE_OK);
  assert_true(hn_registry_holds(cpu->tactics, &tactic));
  answers(&s, 3);
  assert_int_equal(by_tactic, 2);
  assert_int_equal(hone_plan_open(s.engine, path, &again.plan, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "swell_plain"));
  finish(&s);
  assert_false(hn_registry_holds(cpu->tactics, &tactic));
  hone_model_release(m);
  unlink(path);
}

/* Two nodes of ONNX become the operator of another domain, from level 1 on, in models that know of it. */
static void pattern_makes_it(void **state) {
  (void)state;
  hone_model *early = parsed(SPELLED_OUT);
  add_all();
  hone_model *m = parsed(SPELLED_OUT);
  session s = opened(m, 2, false, NULL);
  assert_string_equal(doer(&s), "swell_plain");
  answers(&s, 1);
  assert_int_equal(by_tactic, 1);
  finish(&s);
  /* No tactic takes it: its nodes are better than its reference. */
  s = opened(m, 2, false, "-swell_plain");
  assert_int_equal(hone_plan_steps(s.plan), 2);
  answers(&s, 1);
  finish(&s);
  assert_int_equal(by_reference, 0);
  s = opened(m, 1, false, NULL);
  assert_string_equal(doer(&s), "swell_plain");
  finish(&s);
  s = opened(m, 0, false, NULL);
  assert_int_equal(hone_plan_steps(s.plan), 2);
  answers(&s, 1);
  finish(&s);
  s = opened(early, 2, false, NULL);
  answers(&s, 1);
  finish(&s);
  assert_int_equal(by_tactic, 1);
  hone_model_release(m);
  hone_model_release(early);
}

static hone_status newer(hone_call *call, hone_error *error) {
  by_newer++;
  return reference(call, error);
}

/* Of two definitions the newest that the model's opset has counts; one of ONNX's own is never replaced. */
static void precedence(void **state) {
  (void)state;
  hone_error e = {0};
  add_all();
  assert_int_equal(hn_registry_add(&hn_operators, ops, 1, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "there is already operator test.Swell of opset 1");
  hone_op_desc third = op, relu = op;
  third.since = 3;
  third.reference = newer;
  const void *const more[] = {&third};
  assert_int_equal(hn_registry_add(&hn_operators, more, 1, &e), HONE_OK);
  hone_model *old = parsed(OF_SWELL),
             *new = parsed("opset 17\nopset \"test\" 4\ngraph g(%x: f32[6]) -> (%y) {\n"
                           "  %y = test::Swell(%x) {scale=3.0}\n}\n");
  session s = opened(old, 2, true, NULL), t = opened(new, 2, true, NULL);
  answers(&s, 3);
  assert_true(by_reference == 1 && by_newer == 0);
  answers(&t, 3);
  assert_true(by_reference == 2 && by_newer == 1);
  finish(&s);
  finish(&t);
  hone_model_release(old);
  hone_model_release(new);
  assert_int_equal(hn_registry_remove(&hn_operators, more, 1, &e), HONE_OK);
  const hn_listing *all = hn_registry_take(&hn_operators);
  const hone_op_desc *own = hn_op_find(all, "", "Relu", 17, NULL);
  hn_listing_drop(all);
  relu.domain = "";
  relu.op_type = "Relu";
  relu.since = own->since;
  assert_int_equal(hn_registry_add(&hn_operators, (const void *[]){&relu}, 1, &e), HONE_ERROR_USAGE);
  assert_non_null(strstr(e.what, "there is already operator Relu of opset"));
}

/* What is not whole, or is of another version, is refused with its name. */
static void refused(void **state) {
  (void)state;
  hone_error e = {0};
  hone_op_desc o = op;
  o.abi = HONE_PLUGIN_ABI + 1;
  assert_int_equal(hn_registry_add(&hn_operators, (const void *[]){&o}, 1, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "operator Swell was made for another version of hone");
  o = op;
  o.struct_size -= 8;
  assert_int_equal(hn_registry_add(&hn_operators, (const void *[]){&o}, 1, &e), HONE_ERROR_USAGE);
  o = op;
  o.infer = NULL;
  assert_int_equal(hn_registry_add(&hn_operators, (const void *[]){&o}, 1, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "operator Swell has no infer");
  const hone_tactic_desc taken = TACTIC("conv_gemm", "cpu", "test.Swell"),
                         elsewhere = TACTIC("swell_npu", "npu", "test.Swell"),
                         of_nothing = TACTIC("swell_plain", "cpu", NULL);
  assert_int_equal(hn_tactic_add(&taken, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "there is already tactic conv_gemm");
  assert_int_equal(hn_tactic_add(&elsewhere, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "tactic swell_npu is for device 'npu', which is not here");
  assert_int_equal(hn_tactic_add(&of_nothing, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "tactic swell_plain is not whole");
  hone_pattern_desc p = pattern;
  p.text = "%y = Sin(%x";
  assert_int_equal(hn_registry_add(&hn_patterns, (const void *[]){&p}, 1, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.where, "test.Swell"));
  p = pattern;
  assert_int_equal(hn_registry_add(&hn_patterns, (const void *[]){&pattern, &p}, 2, &e), HONE_ERROR_USAGE);
  assert_non_null(strstr(e.what, "there is already pattern test.Swell of this text"));
}

/* The .def lists keep what is asked of units that are added: each is whole, and no two are the same. */
static void lists_are_sound(void **state) {
  (void)state;
  const hn_backend *cpu, *cuda;
  uint32_t index;
  hone_error e = {0};
  assert_int_equal(hn_backend_find("cpu", &cpu, &index, &e), HONE_OK);
  assert_int_equal(hn_backend_find("cuda", &cuda, &index, &e), HONE_OK);
  hn_registry *const all[] = {&hn_operators, &hn_passes,   &hn_patterns, &hn_rules,
                              &hn_importers, cpu->tactics, cuda->tactics};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    if (!all[k]) continue; /* built without this device */
    const hn_kind *kind = all[k]->kind;
    const hn_listing *l = hn_registry_take(all[k]);
    assert_true(l->n > 0);
    for (uint32_t i = 0; i < l->n; i++) {
      char one[200], other[200];
      if (kind->check(l->unit[i], &e)) fail_msg("%s", e.what);
      kind->label(l->unit[i], one, sizeof one);
      for (uint32_t j = 0; j < i; j++) {
        kind->label(l->unit[j], other, sizeof other);
        if (strcmp(one, other) == 0) fail_msg("two %ss %s", kind->noun, one);
      }
    }
    hn_listing_drop(l);
  }
}

/* A type of ONNX means nothing in another domain: no pass, pattern, layout or tactic takes it for ONNX's own.
 */
static void only_a_namesake(void **state) {
  (void)state;
  hone_error e = {0};
  const hn_listing *own = hn_registry_take(&hn_operators);
  for (uint32_t i = 0; i < own->n; i++) {
    const hone_op_desc *d = own->unit[i];
    hone_op_desc namesake = op;
    namesake.op_type = d->op_type;
    const void *const one[] = {&namesake};
    if (hn_registry_add(&hn_operators, one, 1, &e)) fail_msg("%s", e.what);
    char text[600];
    snprintf(text, sizeof text,
             "opset 17\nopset \"test\" 1\ngraph g(%%x: f32[6]) -> (%%y) {\n  %%a = Add(%%x, 0)\n"
             "  %%b = test::%s(%%a) {scale=0.0}\n  %%c = test::%s(%%b) {scale=3.0}\n  %%y = Mul(%%c, 1)\n}\n",
             d->op_type, d->op_type);
    hone_model *m = parsed(text);
    for (int level = 0; level <= 3; level++) {
      session s = opened(m, level, false, NULL);
      by_reference = 0;
      answers(&s, 3);
      if (by_reference != 2) fail_msg("test.%s at level %d: %d of 2 ran", d->op_type, level, by_reference);
      finish(&s);
    }
    hone_model_release(m);
    assert_int_equal(hn_registry_remove(&hn_operators, one, 1, &e), HONE_OK);
    assert_false(hn_registry_holds(&hn_operators, &namesake));
  }
  hn_listing_drop(own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(comes_and_goes, remove_all),
      cmocka_unit_test_teardown(plans_keep_tactics, remove_all),
      cmocka_unit_test_teardown(pattern_makes_it, remove_all),
      cmocka_unit_test_teardown(precedence, remove_all),
      cmocka_unit_test_teardown(refused, remove_all),
      cmocka_unit_test_teardown(only_a_namesake, remove_all),
      cmocka_unit_test(lists_are_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
