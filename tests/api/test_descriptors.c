/* What the codes of a tensor mean stands in its descriptor: in a plan's ports, in its steps as reports show
 * them, and in plans that were saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "temporary.h"
#include "net.h"
#include "api/api.h"

#include <hone/facts.h>
#include <hone/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define Q(to, of) " %" to " = QuantizeLinear(%" of ", f32 0.5, u8 114)\n"
#define DQ(to, of) " %" to " = DequantizeLinear(%" of ", f32 0.5, u8 114)\n"
#define SAID " scale 0.5 zero 114"
#define THREE "f32[3]{0.5, 0.25, 1}, u8[3]{1, 0, 3}"

typedef struct net_case {
  const char *ports, *nodes;
  int level;
  const char *type;     /* the step that is looked at, by its anchor */
  const char *in, *out; /* what its codes mean; NULL: nothing */
} net_case;

static const net_case cases[] = {
    /* who makes codes says it, and what moves them passes it on */
    {"%x: f32[2x3x4]) -> (%y: ?", Q("q", "x") " %t = Transpose(%q)\n" DQ("y", "t"), 0, "Transpose",
     "u8[2x3x4]" SAID, "u8[4x3x2]" SAID},
    {"%x: f32[2x3x4]) -> (%t: ?", Q("q", "x") " %t = Transpose(%q)\n", 0, "Transpose", "u8[2x3x4]" SAID,
     "u8[4x3x2]" SAID},
    {"%x: f32[2x3x4]) -> (%c: ?", Q("q", "x") Q("p", "x") " %c = Concat(%q, %p) {axis=0}\n", 0, "Concat",
     "u8[2x3x4]" SAID "; u8[2x3x4]" SAID, "u8[4x3x4]" SAID},
    {"%x: f32[2x3x4]) -> (%c: ?",
     Q("q", "x") " %p = QuantizeLinear(%x, f32 0.5, u8 3)\n"
                 " %c = Concat(%q, %p) {axis=0}\n",
     0, "Concat", "u8[2x3x4]" SAID "; u8[2x3x4] scale 0.5 zero 3", NULL},
    {"%x: f32[2x3]) -> (%c: ?", Q("q", "x") " %c = Pad(%q, i64[4]{0, 1, 1, 0}, u8 7)\n", 0, "Pad",
     "u8[2x3]" SAID, "u8[3x4]" SAID},
    /* who reads them, too: through what moves them before */
    {"%x: u8[6x2]) -> (%y: ?",
     " %s = Slice(%x, i64[1]{1}, i64[1]{3})\n %r = Reshape(%s, i64[1]{4})\n" DQ("y", "r"), 0, "Slice",
     "u8[6x2]" SAID, "u8[2x2]" SAID},
    /* readers that differ say nothing, a maker is believed */
    {"%x: u8[6x2]) -> (%y: ?, %z: ?", DQ("y", "x") " %z = DequantizeLinear(%x, f32 0.5, u8 3)\n", 0,
     "DequantizeLinear", NULL, NULL},
    {"%x: f32[6x2]) -> (%y: ?", Q("q", "x") " %y = DequantizeLinear(%q, f32 0.25)\n", 0, "DequantizeLinear",
     "u8[6x2]" SAID, NULL},
    /* one scale for each index of a dimension */
    {"%x: f32[2x3x4]) -> (%y: ?",
     " %q = QuantizeLinear(%x, " THREE ") {axis=1}\n"
     " %t = Transpose(%q) {perm=[2, 0, 1]}\n %y = DequantizeLinear(%t, " THREE ") {axis=-1}\n",
     0, "Transpose", "u8[2x3x4] 3 scales on axis 1", "u8[4x2x3] 3 scales on axis 2"},
    {"%x: u8[2x3x4]) -> (%y: ?",
     " %t = Transpose(%x) {perm=[2, 0, 1]}\n"
     " %y = DequantizeLinear(%t, " THREE ") {axis=-1}\n",
     0, "Transpose", "u8[2x3x4] 3 scales on axis 1", "u8[4x2x3] 3 scales on axis 2"},
    {"%x: f32[2x3x4]) -> (%y: ?",
     " %q = QuantizeLinear(%x, " THREE ") {axis=1}\n"
     " %y = Slice(%q, i64[1]{0}, i64[1]{1})\n",
     0, "Slice", "u8[2x3x4] 3 scales on axis 1", NULL},
    /* operators on codes */
    {"%x: u8[1x4x5x5]) -> (%y: ?",
     " %y = QLinearConv(%x, f32 0.5, u8 2, i8[3x4x1x1]rand(1), f32[3]{0.5, 0.25, 1}, i8[3]{0, 0, 0}, f32 2, "
     "u8 9)\n",
     0, "QLinearConv", "u8[1x4x5x5] scale 0.5 zero 2; i8[3x4x1x1] 3 scales on axis 0",
     "u8[1x3x5x5] scale 2 zero 9"},
    {"%x: u8[2x3], %w: i8[3x4]) -> (%y: ?",
     " %y = QLinearMatMul(%x, f32 0.5, u8 2, %w, f32 0.25, i8 0, f32 2, i8 -9)\n", 0, "QLinearMatMul",
     "u8[2x3] scale 0.5 zero 2; i8[3x4] scale 0.25 zero 0", "i8[2x4] scale 2 zero -9"},
    {"%x: u8[2x3], %w: u8[2x3]) -> (%y: ?",
     " %y = com.microsoft::QLinearAdd(%x, f32 0.5, u8 2, %w, f32 0.25, u8 1, f32 2)\n", 0,
     "com.microsoft.QLinearAdd", "u8[2x3] scale 0.5 zero 2; u8[2x3] scale 0.25 zero 1",
     "u8[2x3] scale 2 zero 0"},
    /* a step between (de)quantisations */
    {"%x: u8[2x8]) -> (%q: ?",
     DQ("f", "x") " %w = DequantizeLinear(i8[8x4]rand(1), f32 0.25)\n"
                  " %m = MatMul(%f, %w)\n %q = QuantizeLinear(%m, f32 2, u8 9)\n",
     2, "QLinearMatMul", "u8[2x8]" SAID "; i8[8x4] scale 0.25 zero 0", "u8[2x4] scale 2 zero 9"},
};

/* The facts of a run. */
static hone_facts *facts_of(const net_case *c) {
  char text[2000];
  hone_error e = {0};
  snprintf(text, sizeof text, "opset 21\nopset \"com.microsoft\" 1\ngraph g(%s) {\n%s}\n", c->ports,
           c->nodes);
  net_session s = net_open(net_parse("test", text), c->level, c->level == 0, 1);
  hone_tensor in[2];
  const hone_tensor *const ins[] = {&in[0], &in[1]};
  hone_facts *f = hone_facts_create();
  for (uint32_t i = 0; i < hone_plan_inputs(s.plan); i++) {
    in[i].desc = *hone_plan_input_desc(s.plan, i);
    assert_non_null(in[i].data = calloc(1, (size_t)hone_desc_bytes(&in[i].desc)));
  }
  assert_int_equal(hone_context_record(s.context, f, 1, &e), HONE_OK);
  if (hone_context_run(s.context, ins, NULL, &e) != HONE_OK) fail_msg("%s: %s", c->nodes, e.what);
  assert_int_equal(hone_context_record_end(s.context, &e), HONE_OK);
  for (uint32_t i = 0; i < hone_plan_inputs(s.plan); i++) free(in[i].data);
  net_close(&s);
  return f;
}

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static void steps_show_what_codes_mean(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const net_case *c = &cases[i];
    hone_facts *f = facts_of(c);
    size_t n;
    const hone_step_fact *steps = hone_facts_steps(f, &n), *found = NULL;
    for (size_t k = 0; k < n; k++)
      if (!strcmp(steps[k].op_type, c->type)) found = &steps[k];
    if (!found) fail_msg("no %s: %s", c->type, c->nodes);
    if (!same(found->codes_in, c->in) || !same(found->codes_out, c->out))
      fail_msg("'%s' -> '%s', not '%s' -> '%s': %s", found->codes_in ? found->codes_in : "",
               found->codes_out ? found->codes_out : "", c->in ? c->in : "", c->out ? c->out : "", c->nodes);
    hone_facts_destroy(f);
  }
}

/* A float network says nothing. */
static void floats_have_no_codes(void **state) {
  (void)state;
  hone_facts *f =
      facts_of(&(net_case){"%x: f32[2x3]) -> (%y: ?", " %y = Softmax(%x)\n", 2, NULL, NULL, NULL});
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(f, &n);
  for (size_t k = 0; k < n; k++) assert_true(!steps[k].codes_in && !steps[k].codes_out);
  hone_facts_destroy(f);
}

/* More scales than constants that stay for their size. */
enum { CHANNELS = 1500 };
static const char wide[] =
    "graph g(%x: u8[1500x3]) -> (%q: u8[1500x1500]) {\n"
    " const %xs: f32[1500] = rand(1, 0.5, 1)\n const %ws: f32[1500] = rand(2, 0.5, 1)\n"
    " const %wz: i8[1500] = full(0)\n const %w: i8[3x1500] = rand(3)\n"
    " %f = DequantizeLinear(%x, %xs) {axis=0}\n %n = Neg(%f)\n"
    " %p = QuantizeLinear(%n, f32 0.5, u8 114)\n %d = DequantizeLinear(%p, f32 0.5, u8 114)\n"
    " %v = DequantizeLinear(%w, %ws, %wz) {axis=1}\n %m = MatMul(%d, %v)\n"
    " %q = QuantizeLinear(%m, f32 2, u8 9)\n}\n";

/* What the step on codes knows of its weights. */
static const hone_quant *of_weights(const hone_plan *plan) {
  const hn_plan *p = hn_api_plan(plan);
  for (size_t i = 0; i < p->steps.len; i++)
    if (!strcmp(p->steps.ptr[i].desc.anchor, "QLinearMatMul"))
      return &p->steps.ptr[i].desc.input[3].desc.quant;
  fail_msg("no step on codes");
  return NULL;
}

static void saved_plans_keep_it(void **state) {
  (void)state;
  char path[128];
  hone_error e = {0};
  net_session s = net_open(net_parse("wide", wide), 2, false, 1);
  hone_plan *again = NULL;
  const int fd = mkstemp(temporary(path, sizeof path, "hone-descriptors"));
  assert_true(fd >= 0);
  close(fd);
  if (hone_plan_save(s.plan, path, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  if (hone_plan_open(s.engine, path, &again, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  const hone_quant *in = &hone_plan_input_desc(s.plan, 0)->quant, *w = of_weights(s.plan),
                   *out = &hone_plan_output_desc(s.plan, 0)->quant;
  assert_true(in->count == CHANNELS && in->axis == 0 && w->count == CHANNELS && w->axis == 1);
  for (int i = 0; i < CHANNELS; i++)
    assert_true(in->scale[i] >= 0.5f && in->scale[i] <= 1 && w->scale[i] >= 0.5f && w->scale[i] <= 1);
  assert_true(out->count == 1 && out->scale[0] == 2 && out->zero_point && out->zero_point[0] == 9);
  assert_true(hone_quant_same(in, &hone_plan_input_desc(again, 0)->quant));
  assert_true(hone_quant_same(w, of_weights(again)));
  assert_true(hone_quant_same(out, &hone_plan_output_desc(again, 0)->quant));
  hone_plan_destroy(again);
  unlink(path);
  net_close(&s);
}

static void quantisations_are_compared_and_written(void **state) {
  (void)state;
  const float a[] = {0.5f, 1}, b[] = {0.5f, 2};
  const int32_t zeros[] = {0, 0}, three[] = {3, 3};
  const hone_quant one = {1, -1, a, NULL}, same_one = {1, 0, b, zeros}, shifted = {1, -1, a, three},
                   two = {2, 1, a, NULL}, moved = {2, 0, a, NULL}, other = {2, 1, b, NULL}, none = {0};
  char text[64], little[6];
  assert_true(hone_quant_same(&one, &same_one) && hone_quant_same(&none, &none));
  assert_false(hone_quant_same(&one, &shifted) || hone_quant_same(&one, &two) ||
               hone_quant_same(&two, &moved) || hone_quant_same(&two, &other) ||
               hone_quant_same(&none, &one));
  assert_string_equal(hone_quant_format(&shifted, text, sizeof text), "scale 0.5 zero 3");
  assert_string_equal(hone_quant_format(&two, text, sizeof text), "2 scales on axis 1");
  assert_string_equal(hone_quant_format(&none, text, sizeof text), "");
  assert_string_equal(hone_quant_format(&one, little, sizeof little), "scale");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_show_what_codes_mean), cmocka_unit_test(floats_have_no_codes),
      cmocka_unit_test(saved_plans_keep_it), cmocka_unit_test(quantisations_are_compared_and_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
