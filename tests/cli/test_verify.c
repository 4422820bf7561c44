/* verify must find what is wrong, name where, and say when it cannot tell. */
#include "backends/cpu/kernels/features.h"
#include "net.h"
#include "verify_nets.h"
#include "temporary.h"
#include "base/fault.h"
#include "model/ir/graph.h"
#include "model/operators.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>

static hone_model *zoo(const char *name, double width, int64_t size, uint64_t seed) {
  hone_model *m = NULL;
  hone_error e = {0};
  if (hone_zoo_build(name, &(hone_zoo_options){.batch = 1, .width = width, .size = size, .seed = seed}, &m,
                     &e) != HONE_OK)
    fail_msg("%s", e.what);
  return m;
}

static hone_verify_result verify(hone_model *a, hone_model *b, uint32_t inputs) {
  hone_verify_result r;
  hone_error e = {0};
  if (hone_verify(a, b, &(hone_verify_options){.inputs = inputs, .max_seconds = 600, .threads = 2}, &r, &e) !=
      HONE_OK) {
    char line[1200];
    hone_error_format(&e, line, sizeof line);
    fail_msg("%s", line);
  }
  return r;
}

static void test_same(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double width;
    int64_t size;
  } nets[] = {{"resnet50", 0.1, 32}, {"mobilenetv2", 0.1, 32}, {"yolov3", 0.05, 32}, {"bert_base", 0.09, 16}};
  for (size_t i = 0; i < 4; i++) {
    hone_model *m = zoo(nets[i].name, nets[i].width, nets[i].size, 1), *o = NULL;
    hone_error e = {0};
    hone_verify_result r = verify(m, NULL, 10);
    if (r.verdict != HONE_VERDICT_SAME)
      fail_msg("%s: %s at '%s'", nets[i].name, r.reason, r.first_different_node);
    assert_int_equal(r.inputs, 10);
    assert_non_null(strstr(r.reference, "scalar"));
    assert_int_equal(hone_model_optimize(m, &(hone_optimize_options){.level = 2}, &o, NULL, &e), HONE_OK);
    r = verify(m, o, 3);
    if (r.verdict != HONE_VERDICT_SAME)
      fail_msg("%s optimised: %s at '%s'", nets[i].name, r.reason, r.first_different_node);
    hone_model_release(o);
    hone_model_release(m);
  }
}

/* The weights of one convolution are changed: the difference must be found there, behind all the layers that
 * agree. */
static void test_localised(void **state) {
  (void)state;
  hone_model *a = zoo("resnet50", 0.1, 64, 1), *b = zoo("resnet50", 0.1, 64, 1);
  const hone_node *node = b->graph->first;
  int convs = 0;
  for (; node; node = node->next)
    if (strcmp(node->op_type, "Conv") == 0 && ++convs == 30) break;
  assert_non_null(node);
  float *w = node->in[1]->constant->data;
  for (int64_t i = 0, n = hone_desc_count(&node->in[1]->constant->desc); i < n; i++) w[i] = -w[i];
  hone_verify_result r = verify(a, b, 3);
  assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
  assert_string_equal(r.first_different_node, node->name);
  hone_model_release(a);
  hone_model_release(b);
}

/* y = x * 0: equal answers that prove nothing. */
static void test_mistrusted(void **state) {
  (void)state;
  hone_model *m = hn_model_create("");
  assert_non_null(m);
  m->ir_version = 8;
  assert_true(hn_vec_push(&m->opsets, (hn_opset){"", 17}));
  hn_value *x = hn_value_create(m->graph, "x"), *y = hn_value_create(m->graph, "y");
  x->desc = hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){4, 8});
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 0, NULL);
  hn_value *zero = hn_value_constant(m->graph, "zero", &d, &(float){0}, true);
  assert_true(hn_graph_add_input(m->graph, x) && hn_graph_add_output(m->graph, y));
  assert_non_null(hn_node_create(m->graph, NULL, "Mul", NULL, "mul", (hn_value *const[]){x, zero}, 2,
                                 (hn_value *const[]){y}, 1));
  hone_error e = {0};
  assert_int_equal(hn_model_ready(m, &e), HONE_OK);
  hone_verify_result r = verify(m, NULL, 5);
  assert_int_equal(r.verdict, HONE_VERDICT_MISTRUSTED);
  assert_non_null(strstr(r.reason, "constant"));
  hone_model_release(m);
}

/* ---- quantised networks */

/* Right steps are at most one level apart, however far the ends sway. */
static void test_quantised(void **state) {
  (void)state;
  hone_model *m = verify_quantised_net();
  hone_verify_result r = verify(m, NULL, 5);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s at '%s'", r.reason, r.first_different_node);
  assert_true(r.steps_compared >= 15);
  assert_true(r.worst_levels <= 1);
  assert_true(r.judged_steps);
  hone_model_release(m);
}

/* In bf16 codes of 8 bits are multiplied as they are: where nothing else is narrow (without vectors nothing
 * is), steps are judged as in f32. */
static void test_quantised_narrow(void **state) {
  (void)state;
  hone_model *m = verify_quantised_net();
  hone_verify_result r;
  hone_error e = {0};
  const hone_verify_options o = {.inputs = 5, .max_seconds = 600, .threads = 2, .precision = "bf16"};
  assert_int_equal(hone_verify(m, NULL, &o, &r, &e), HONE_OK);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s at '%s'", r.reason, r.first_different_node);
  if (hn_cpu()->isa == HN_ISA_SCALAR) assert_true(r.judged_steps && r.worst_levels <= 1);
  hone_model_release(m);
}

/* What a type cannot hold is said of the type, and where it ends; without kernels for it all is f32. */
static void test_too_narrow(void **state) {
  (void)state;
  static const char large
      [] = "opset 17\ngraph g(%x: f32[8x64]) -> (%y) {\n  const %w: f32[64x64] = rand(1, -500, 500)\n"
           "  const %v: f32[64x64] = rand(2, -500, 500)\n  const %u: f32[64x64] = rand(3, -0.001, 0.001)\n"
           "  %a = MatMul(%x, %w)\n  %b = MatMul(%a, %v)\n  %y = MatMul(%b, %u)\n}\n",
 cancels[] =
      "opset 17\ngraph g(%x: f32[8x64]) -> (%y) {\n  const %w: f32[64x64] = rand(1)\n"
      "  const %o: f32[64] = rand(2, 999, 1001)\n  const %v: f32[64x64] = rand(3)\n  %a = MatMul(%x, %w)\n"
      "  %b = Add(%a, %o)\n  %m = ReduceMean(%v) {axes=[0]}\n  %s = Sub(%v, %m)\n  %y = MatMul(%b, %s)\n}\n";
  /* Of 1022 bf16 makes 1024: there is no row 9. */
  static const char places[] =
      "opset 17\ngraph g(%x: f32[8x64], %k: f32[1]) -> (%y, %m) {\n  const %w: f32[64x64] = rand(1)\n"
      "  %m = MatMul(%x, %w)\n  %z = Mul(%k, f32 0)\n  %p = Add(%z, f32 1022)\n  %q = Sub(%p, f32 1015)\n"
      "  %i = Cast(%q) {to=7}\n  %y = Gather(%m, %i)\n}\n";
  /* What is multiplied by it is so small that no step leaves the type. */
  static const char weight[] =
      "opset 17\ngraph g(%x: f32[8x64]) -> (%y) {\n  const %w: f32[64x64] = rand(1, -100000, 100000)\n"
      "  %s = Mul(%x, f32 0.0001)\n  %y = MatMul(%s, %w)\n}\n";
  static const char rows[] =
      "opset 17\ngraph g(%x: f32[8x64], %k: f32[1]) -> (%y, %m) {\n  const %w: f32[64x64] = rand(1)\n"
      "  %m = MatMul(%x, %w)\n  %z = Mul(%k, f32 0)\n  %p = Add(%z, f32 1022)\n  %q = Sub(%p, f32 1017)\n"
      "  %i = Cast(%q) {to=7}\n  %y = Slice(%m, i64[1]{0}, %i, i64[1]{0})\n}\n";
  static const struct {
    const char *graph, *precision, *why;
  } nets[] = {{large, "fp16", "(MatMul) reaches "},
              {cancels, "fp16", "that is fp16 itself: the reference rounded to it is "},
              {cancels, "bf16", "that is bf16 itself: the reference rounded to it is "},
              {places, "bf16", "; the reference rounded to bf16 does not run"},
              {weight, "fp16", "constant 'w' reaches 1e+05, and fp16 ends at 65504"},
              {rows, "bf16", "that is bf16 itself: the reference rounded to it has other shapes"}};
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    hone_model *m = net_parse("narrow", nets[i].graph);
    hone_verify_result r;
    hone_error e = {0};
    const hone_verify_options o = {.inputs = 3,
                                   .max_seconds = 600,
                                   .threads = 2,
                                   .precision = nets[i].precision,
                                   .tolerance = i > 2 ? 1e-6 : 0};
    if (hone_verify(m, NULL, &o, &r, &e)) fail_msg("%s: %s", nets[i].why, e.what);
    if (r.verdict == HONE_VERDICT_SAME)
      assert_true(r.max_rel < 1e-4);
    else if (!strstr(r.reason, nets[i].why))
      fail_msg("%s: %s", nets[i].why, r.reason);
    print_message("%s: %s\n", nets[i].precision, r.verdict == HONE_VERDICT_SAME ? "f32 here" : r.reason);
    hone_model_release(m);
  }
}

enum { SEEDS = 12 };

/* Every rounding is judged, and those that steps hide are, too: no share of elements may be wrong. */
static void test_right(void **state) {
  (void)state;
  double worst = 0;
  for (int k = 0; k < VERIFY_RIGHT_NETS; k++)
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
      hone_model *m = verify_right_nets[k](seed);
      hone_verify_result r = verify(m, NULL, 8);
      if (r.verdict != HONE_VERDICT_SAME)
        fail_msg("%d, seed %u: %s at '%s'", k, seed, r.reason, r.first_different_node);
      assert_true(r.judged_steps);
      assert_true(r.astray <= 0);
      if (r.worst_levels > worst) worst = r.worst_levels;
      hone_model_release(m);
    }
  print_message("right steps are up to %g levels apart\n", worst);
}

/* Nothing but its inputs has a name that another model may have. */
static void rename_all(hn_model *m) {
  for (size_t i = 0; i < m->graph->values.len; i++) {
    hn_value *v = m->graph->values.ptr[i];
    if (!v->is_input) v->name = hn_arena_printf(&m->arena, "its_%zu", i);
    assert_non_null(v->name);
  }
}

/* Roundings amplify between the two: the ends differ by more than any bound, and each step is right, whatever
 * its values are called. */
static void test_right_other(void **state) {
  (void)state;
  int by_steps[2] = {0};
  for (int k = 0; k < VERIFY_RIGHT_NETS; k++)
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
      hone_model *m = verify_right_nets[k](seed), *o = NULL;
      hone_error e = {0};
      assert_int_equal(hone_model_optimize(m, &(hone_optimize_options){.level = 2}, &o, NULL, &e), HONE_OK);
      for (int renamed = 0; renamed < 2; renamed++) {
        const hone_verify_result r = verify(m, o, 8);
        if (r.verdict != HONE_VERDICT_SAME)
          fail_msg("%d, seed %u: %s at '%s'", k, seed, r.reason, r.first_different_node);
        by_steps[renamed] += r.judged_steps;
        rename_all(o);
      }
      hone_model_release(o);
      hone_model_release(m);
    }
  print_message("by their steps: %d, and %d renamed\n", by_steps[0], by_steps[1]);
  assert_true(by_steps[0] && by_steps[1]);
}

/* Every second weight of the last product or convolution is negated: the values before that are right. */
static void test_wrong_other(void **state) {
  (void)state;
  for (int k = 0; k < VERIFY_RIGHT_NETS; k++) {
    hone_model *a = verify_right_nets[k](3), *b = verify_right_nets[k](3);
    const hone_node *node = b->graph->last;
    while (node && (strcmp(node->op_type, "DequantizeLinear") != 0 || !node->in[0]->constant ||
                    hone_desc_count(&node->in[0]->desc) < 64))
      node = node->prev;
    assert_non_null(node);
    int8_t *codes = node->in[0]->constant->data;
    for (int64_t i = 0, n = hone_desc_count(&node->in[0]->desc); i < n; i += 2) codes[i] = (int8_t)-codes[i];
    const hone_verify_result r = verify(a, b, 8);
    assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
    hone_model_release(a);
    hone_model_release(b);
  }
}

/* ---- models that share no name with the other but their input's */

/* Each of its steps agrees with its own weights, and with nothing of the other's. */
static void test_renamed(void **state) {
  (void)state;
  hone_model *a = verify_renamed_net((verify_renamed){.layers = 6}),
             *right = verify_renamed_net((verify_renamed){.other = true, .layers = 6}),
             *wrong = verify_renamed_net((verify_renamed){.other = true, .wrong = true, .layers = 6});
  hone_verify_result r = verify(a, right, 8);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  r = verify(a, wrong, 8);
  assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
  hone_model_release(a);
  hone_model_release(right);
  hone_model_release(wrong);
}

/* However right its steps are, what is not there, or is something else, is no rounding. */
static void test_other_ends(void **state) {
  (void)state;
  static const struct {
    verify_ends a, b;
    const char *says;
  } pairs[] = {{VERIFY_CODES, VERIFY_REAL, "f32[16x32] instead of i8[16x32]"},
               {VERIFY_REAL, VERIFY_CODES, "i8[16x32] instead of f32[16x32]"},
               {VERIFY_CODES, VERIFY_TURNED, "i8[32x16] instead of i8[16x32]"},
               {VERIFY_TURNED, VERIFY_CODES, "i8[16x32] instead of i8[32x16]"},
               {VERIFY_TWO, VERIFY_CODES, "missing"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    hone_model *a = verify_renamed_net((verify_renamed){.layers = 2, .ends = pairs[i].a}),
               *b = verify_renamed_net((verify_renamed){.other = true, .layers = 2, .ends = pairs[i].b});
    const hone_verify_result r = verify(a, b, 8);
    assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
    if (!strstr(r.reason, pairs[i].says)) fail_msg("'%s' is not in: %s", pairs[i].says, r.reason);
    hone_model_release(a);
    hone_model_release(b);
  }
}

/* What is renamed, saved as a plan. */
static void test_renamed_plan(void **state) {
  (void)state;
  hone_model *a = verify_renamed_net((verify_renamed){.layers = 3});
  for (int wrong = 0; wrong < 2; wrong++) {
    char path[512];
    const int file = mkstemp(temporary(path, sizeof path, "plan"));
    assert_true(file >= 0);
    close(file);
    net_session s = net_open(verify_renamed_net((verify_renamed){.other = true, .wrong = wrong, .layers = 3}),
                             2, false, 2);
    hone_error e = {0};
    hone_verify_result r;
    if (hone_plan_save(s.plan, path, &e) != HONE_OK) fail_msg("%s", e.what);
    if (hone_verify(a, NULL, &(hone_verify_options){.inputs = 8, .plan = path, .threads = 2}, &r, &e) !=
        HONE_OK)
      fail_msg("%s", e.what);
    assert_int_equal(r.verdict, wrong ? HONE_VERDICT_DIFFERENT : HONE_VERDICT_SAME);
    remove(path);
    net_close(&s);
  }
  hone_model_release(a);
}

/* A saved plan keeps no weights but packed ones: nothing is evaluated with them. */
static void test_packed_plan(void **state) {
  (void)state;
  static const char text[] =
      "opset 17\nopset \"com.microsoft\" 1\ngraph g(%x: f32[2x4x6x6]) -> (%y) {\n"
      "  const %k: i8[8x4x1x1] = rand(4, -100, 100)\n  const %w: i8[288x31] = rand(5, -100, 100)\n"
      "  const %b: i32[31] = rand(6, -900, 900)\n  const %c: f32[2x288] = rand(7)\n"
      "  %q = QuantizeLinear(%x, f32 0.02, i8 3)\n"
      "  %l = QLinearConv(%q, f32 0.02, i8 3, %k, f32 0.01, i8 0, f32 0.03, i8 -2)\n"
      "  %r = Reshape(%l, i64[2]{2, 288})\n  %d = DequantizeLinear(%r, f32 0.03, i8 -2)\n"
      "  %s = Sub(%c, %d)\n  %t = QuantizeLinear(%s, f32 0.03, i8 1)\n"
      "  %g = com.microsoft::QGemm(%t, f32 0.03, i8 1, %w, f32 0.01, i8 0, %b, f32 0.1, i8 -5)\n"
      "  %y = DequantizeLinear(%g, f32 0.1, i8 -5)\n}\n";
  hone_model *a = net_parse("gemm", text);
  net_session s = net_open(net_parse("gemm", text), 2, false, 2);
  char path[512];
  hone_error e = {0};
  hone_verify_result r;
  const int file = mkstemp(temporary(path, sizeof path, "plan"));
  assert_true(file >= 0);
  close(file);
  if (hone_plan_save(s.plan, path, &e) != HONE_OK) fail_msg("%s", e.what);
  if (hone_verify(a, NULL, &(hone_verify_options){.inputs = 8, .plan = path, .threads = 2}, &r, &e) !=
      HONE_OK)
    fail_msg("%s", e.what);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  remove(path);
  net_close(&s);
  hone_model_release(a);
}

/* Last bits decide about levels of 16 bits, and one of these may be far where nothing else is left of a
 * range: codes that no step keeps, and such as one does. */
static void test_wide_codes(void **state) {
  (void)state;
  static const char text[] =
      "opset 21\ngraph g(%x: f32[160x100]) -> (%y, %z) {\n  const %w: i8[100x24] = rand(4, -100, 100)\n"
      "  %k = Mul(%x, f32 0.0005)\n  %s = Sigmoid(%k)\n  %q = QuantizeLinear(%s, f32 0.00001526, u16 3)\n"
      "  %d = DequantizeLinear(%q, f32 0.00001526, u16 3)\n  %y = Sub(%d, f32 0.5)\n"
      "  %v = DequantizeLinear(%w, f32 0.0001)\n  %p = QuantizeLinear(%s, f32 0.00001526, i16 -32768)\n"
      "  %e = DequantizeLinear(%p, f32 0.00001526, i16 -32768)\n  %m = MatMul(%e, %v)\n"
      "  %n = QuantizeLinear(%m, f32 0.00001, i16 0)\n  %z = DequantizeLinear(%n, f32 0.00001, i16 0)\n}\n";
  hone_model *a = net_parse("wide codes", text);
  const hone_verify_result r = verify(a, NULL, 8);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  hone_model_release(a);
}

/* Codes and their scale are found in the run: every step is judged on the reference's values, and how far the
 * ends lie apart decides nothing. */
static void test_dynamic(void **state) {
  (void)state;
  enum { N = 48, DEEP = 12 };
  static int8_t w[N * N];
  unsigned seed = 7;
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){16, N});
  const float scale = 0.0045f;
  for (int layer = 0; layer < DEEP; layer++) {
    for (int i = 0; i < N * N; i++)
      w[i] = (int8_t)((int)((seed = seed * 1664525u + 1013904223u) >> 24) - 128);
    hn_value *codes = hn_value_create(m->graph, NULL), *step = hn_value_create(m->graph, NULL),
             *zero = hn_value_create(m->graph, NULL);
    assert_non_null(hn_node_create(m->graph, NULL, "DynamicQuantizeLinear", NULL, "", (hn_value *const[]){x},
                                   1, (hn_value *const[]){codes, step, zero}, 3));
    hn_value *sums =
        net_op(m, "MatMulInteger",
               (hn_value *[]){codes, net_constant(m, HONE_DTYPE_I8, 2, (const int64_t[]){N, N}, w), zero}, 3);
    hn_value *real = net_op(m, "Cast", &sums, 1);
    assert_true(hn_node_set_int(real->producer, "to", 1));
    hn_value *unit =
        net_op(m, "Mul", (hn_value *[]){step, net_constant(m, HONE_DTYPE_F32, 0, NULL, &scale)}, 2);
    hn_value *y = net_op(m, "Mul", (hn_value *[]){real, unit}, 2);
    x = net_op(m, "Tanh", &y, 1);
  }
  net_finish(m, x);
  hone_verify_result r = verify(m, NULL, 10);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s at '%s'", r.reason, r.first_different_node);
  assert_true(r.judged_steps);
  assert_int_equal(r.steps_compared, 2 * DEEP); /* codes and zero points */
  assert_true(r.worst_levels <= 1);
  hone_model_release(m);
}

/* Roundings in an operator's midst, which nothing sees: the ends decide, and 8 edge values' as well. */
static void test_rounded_within(void **state) {
  (void)state;
  enum { STEPS = 20, N = 32 };
  static int8_t w[N * 4 * N];
  const float scale = 0.001f;
  const int8_t zero = 0;
  unsigned seed = 3;
  hn_model *m = net_parse("lstm", "opset 17\nopset \"com.microsoft\" 1\ngraph g() -> () {\n}\n");
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 3, (const int64_t[]){STEPS, 2, N});
  for (int i = 0; i < N * 4 * N; i++)
    w[i] = (int8_t)((int)((seed = seed * 1664525u + 1013904223u) >> 24) - 128);
  hn_value *codes = net_constant(m, HONE_DTYPE_I8, 3, (const int64_t[]){1, N, 4 * N}, w),
           *by = net_constant(m, HONE_DTYPE_F32, 1, (const int64_t[]){1}, &scale),
           *none = net_constant(m, HONE_DTYPE_I8, 1, (const int64_t[]){1}, &zero),
           *y = hn_value_create(m->graph, NULL);
  hone_node *n = hn_node_create(
      m->graph, NULL, "DynamicQuantizeLSTM", "com.microsoft", "",
      (hn_value *const[]){x, codes, codes, NULL, NULL, NULL, NULL, NULL, by, none, by, none}, 12, &y, 1);
  assert_non_null(n);
  assert_true(hn_node_set_int(n, "hidden_size", N));
  net_finish(m, y);
  hone_verify_result r = verify(m, NULL, 100);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s at '%s'", r.reason, r.first_different_node);
  assert_false(r.judged_steps);
  hone_model_release(m);
}

/* ---- edge values */

/* All of the hundred where there is time, and every kind of edge value besides. */
static void test_all_inputs(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t edges;
  } nets[] = {
      {"graph g(%a: f32[4x8]) -> (%y) {\n  %y = MatMul(%a, f32[8x3]rand(1))\n}\n", 8},
      {"graph g(%a: u8[4x8]) -> (%y) {\n  %b = Cast(%a) {to=6}\n  %y = Neg(%b)\n}\n", 5},
      {"graph g(%a: bool[4x8]) -> (%y) {\n  %y = Not(%a)\n}\n", 2},
      /* all together, and each of the two alone */
      {"graph g(%a: f32[4x8], %b: i8[4x8]) -> (%y) {\n  %c = Cast(%b) {to=1}\n  %y = Max(%a, %c)\n}\n", 21},
  };
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    hone_model *m = net_parse("test", nets[i].text);
    hone_verify_result r = verify(m, NULL, 0);
    if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s: %s", nets[i].text, r.reason);
    assert_int_equal(r.inputs, 100);
    assert_int_equal(r.inputs_wanted, 100);
    assert_int_equal(r.edge_inputs, nets[i].edges);
    assert_int_equal(r.edge_inputs_unjudged, 0);
    assert_int_equal(r.edge_inputs_wanted, nets[i].edges);
    r = verify(m, NULL, 7); /* a quick look */
    assert_int_equal(r.inputs, 7);
    assert_int_equal(r.edge_inputs_wanted, 0);
    hone_model_release(m);
  }
}

/* Pairs that agree on everything but one edge value. */
static void test_edges_differ(void **state) {
  (void)state;
  static const struct {
    const char *a, *b, *says;
  } pairs[] = {
      {"graph g(%x: f32[32]) -> (%y) {\n  %z = Equal(%x, f32[]{0})\n  %c = Cast(%z) {to=1}\n  %y = Add(%x, "
       "%c)\n}\n",
       "graph g(%x: f32[32]) -> (%y) {\n  %y = Identity(%x)\n}\n", "zeros in every input"},
      {"graph g(%x: f32[32]) -> (%y) {\n  %z = Equal(%x, f32[]{1})\n  %c = Cast(%z) {to=1}\n  %y = Add(%x, "
       "%c)\n}\n",
       "graph g(%x: f32[32]) -> (%y) {\n  %y = Identity(%x)\n}\n", "ones in every input"},
      {"graph g(%x: f32[32]) -> (%y) {\n  %y = Identity(%x)\n}\n",
       "graph g(%x: f32[32]) -> (%y) {\n  %y = Min(%x, f32[]{1e30})\n}\n",
       "the largest value in every input"},
      {"graph g(%x: f32[32]) -> (%y) {\n  %y = Identity(%x)\n}\n",
       "graph g(%x: f32[32]) -> (%y) {\n  %y = Max(%x, f32[]{-1e30})\n}\n",
       "the lowest value in every input"},
      {"graph g(%x: i8[32]) -> (%y) {\n  %y = Cast(%x) {to=6}\n}\n",
       "graph g(%x: i8[32]) -> (%y) {\n  %w = Cast(%x) {to=6}\n  %y = Max(%w, i32[]{-127})\n}\n",
       "the lowest value in every input"},
      {"graph g(%x: i64[32]) -> (%y) {\n  %y = Identity(%x)\n}\n",
       "graph g(%x: i64[32]) -> (%y) {\n  %y = Min(%x, i64[]{9223372036854775806})\n}\n",
       "the largest value in every input"},
      /* one of them 1 and the other not */
      {"graph g(%x: f32[32], %z: f32[32]) -> (%y) {\n  %a = Equal(%x, f32[]{1})\n  %b = Equal(%z, f32[]{1})\n"
       "  %c = Not(%a)\n  %d = And(%b, %c)\n  %e = Cast(%d) {to=1}\n  %f = Add(%x, %z)\n  %y = Add(%e, "
       "%f)\n}\n",
       "graph g(%x: f32[32], %z: f32[32]) -> (%y) {\n  %y = Add(%x, %z)\n}\n", "in 'z'"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    hone_model *a = net_parse("test", pairs[i].a), *b = net_parse("test", pairs[i].b);
    hone_verify_result r = verify(a, b, 8);
    if (r.verdict != HONE_VERDICT_DIFFERENT || !strstr(r.reason, pairs[i].says))
      fail_msg("%zu: '%s' is not in: %s", i, pairs[i].says, r.reason);
    assert_int_equal(r.inputs, 8);
    hone_model_release(a);
    hone_model_release(b);
  }
}

/* What overflows inside is tried at smaller values; what the reference refuses is not judged. */
static void test_edges_without_answer(void **state) {
  (void)state;
  hone_model *m = net_parse(
      "test", "graph g(%x: f32[4x64]) -> (%y) {\n  %a = Mul(%x, %x)\n  %b = MatMul(%a, f32[64x8]rand(1))\n"
              "  %y = Relu(%b)\n}\n");
  hone_verify_result r = verify(m, NULL, 0);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  assert_int_equal(r.edge_inputs, 8);
  hone_model_release(m);
  /* Cubes of the largest integers leave f32, too. */
  m = net_parse("test", "graph g(%n: i64[4x64]) -> (%y) {\n  %x = Cast(%n) {to=1}\n  %a = Mul(%x, %x)\n"
                        "  %b = Mul(%a, %x)\n  %c = Sub(%b, %x)\n  %y = MatMul(%c, f32[64x8]rand(1))\n}\n");
  r = verify(m, NULL, 0);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  assert_int_equal(r.edge_inputs, 5);
  hone_model_release(m);
  /* Rows 0 to 99 exist, which the walk from input to table cannot see behind a product. */
  m = net_parse(
      "test",
      "graph g(%x: f32[100x8], %n: i64[4]) -> (%y) {\n  %i = Mul(%n, i64[]{1})\n  %y = Gather(%x, %i)\n}\n");
  r = verify(m, NULL, 0);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  assert_true(r.edge_inputs_unjudged > 0);
  assert_int_equal(r.edge_inputs + r.edge_inputs_unjudged, r.edge_inputs_wanted);
  hone_model_release(m);
}

static bool stop_at_three(void *arg, uint32_t done, uint32_t total) {
  (void)total;
  *(uint32_t *)arg = done;
  return done < 3;
}

static void test_cancel(void **state) {
  (void)state;
  hone_model *m = zoo("mobilenetv2", 0.1, 32, 1);
  uint32_t seen = 0;
  hone_verify_result r;
  hone_error e = {0};
  hone_verify_options o = {
      .inputs = 50, .max_seconds = 600, .progress = stop_at_three, .progress_arg = &seen};
  assert_int_equal(hone_verify(m, NULL, &o, &r, &e), HONE_ERROR_CANCELLED);
  assert_int_equal(seen, 3);
  hone_model_release(m);
}

#ifdef HN_FAULTS
/* A network, and the failures that verifying it meets: "\nname\nname\n". */
typedef struct subject {
  const char *name;
  hone_model *model;
  char met[4096];
} subject;

static subject subject_of(const char *name, hone_model *m) {
  subject s = {.name = name, .model = m, .met = "\n"};
  hn_fault_set("?");
  assert_int_equal(verify(m, NULL, 2).verdict,
                   HONE_VERDICT_SAME); /* without a failure there is nothing to find */
  hn_fault_set(NULL);
  size_t n = 1;
  const char *met;
  for (unsigned i = 0; (met = hn_fault_met(i)) != NULL; i++) {
    n += (size_t)snprintf(s.met + n, sizeof s.met - n, "%s\n", met);
    assert_true(n < sizeof s.met);
  }
  return s;
}

/* Met, found and localised. In a process of its own: some failures read out of bounds, where a sanitizer ends
 * it, which is a way of being caught, too. */
static bool is_caught(const char *fault, const subject *s) {
  char line[64];
  snprintf(line, sizeof line, "\n%s\n", fault);
  if (!strstr(s->met, line)) return false;
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    dup2(open("/dev/null", O_WRONLY), 2);
    hn_fault_set(fault);
    hone_verify_result r = verify(s->model, NULL, 2);
    _exit(r.verdict == HONE_VERDICT_DIFFERENT && r.first_different_node[0] ? 0 : 99);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 99;
}
#endif

/* Failures on purpose in the code under test; the reference side has none of that code. */
static void test_faults(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  static const struct {
    const char *fault, *net;
  } faults[] = {
#include "cli/verify_faults.inc"
  };
  enum { NETS = 4 };
  subject nets[NETS] = {subject_of("resnet50", zoo("resnet50", 0.3, 64, 1)),
                        subject_of("mobilenetv2", zoo("mobilenetv2", 0.3, 64, 1)),
                        subject_of("yolov3", zoo("yolov3", 0.1, 64, 1)),
                        subject_of("bert_base", zoo("bert_base", 0.17, 19, 1))};
  int caught = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    bool found = false;
    for (int k = 0; k < NETS; k++) /* first the one that is known for it */
      if (strcmp(nets[k].name, faults[i].net) == 0) found = is_caught(faults[i].fault, &nets[k]);
    for (int k = 0; k < NETS && !found; k++)
      if (strcmp(nets[k].name, faults[i].net) != 0) found = is_caught(faults[i].fault, &nets[k]);
    if (!found) print_message("not found in any network: %s\n", faults[i].fault);
    caught += found;
  }
  for (int k = 0; k < NETS; k++) hone_model_release(nets[k].model);
  print_message("verify caught %d seeded faults\n", caught);
  assert_true(caught >= 20); /* which code the networks run through is the planner's choice */
#endif
}

/* Which of the faults in what integer steps run on are found in a quantised model. Which kernels it runs
 * through is the planner's choice and the processor's, and how many of the faults lie there, too: of those
 * that it meets, all are caught but for those that change nothing there. */
static void test_quantised_faults(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  static const char *const faults[] = {"conv_last_tile",         "conv_left_padding", "conv_right_padding",
                                       "conv_skip_last_k_block", "depthwise_edge",    "depthwise_last_row",
                                       "depthwise_last_slab",    "depthwise_no_bias", "depthwise_row_origin",
                                       "depthwise_tail_mask",    "dw8_bottom",        "dw8_padding",
                                       "dw8_tail_mask",          "dw8_zero",          "gemm_last_k",
                                       "gemm_no_accumulate",     "gemm_no_bias",      "gemm_pack_last_column",
                                       "gemm_tail_mask",         "int8_last_k",       "int8_left_padding",
                                       "int8_tail_mask",         "int8_zero",         "move_last_chunk",
                                       "pointwise_last_tile",    "qlinear_zero",      "quantize_tail"};
  subject s = subject_of("quantised", verify_quantised_net());
  int caught = 0, met = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    char line[64];
    snprintf(line, sizeof line, "\n%s\n", faults[i]);
    const bool found = is_caught(faults[i], &s), here = strstr(s.met, line) != NULL;
    met += here;
    if (here && !found) print_message("not found in the quantised network: %s\n", faults[i]);
    caught += found;
  }
  print_message("verify caught %d of %d seeded faults met in a quantised network\n", caught, met);
  assert_true(met >= 6 && caught * 4 >= met * 3);
  hone_model_release(s.model);
#endif
}

#ifdef HN_FAULTS
/* A network in 8 bits whose convolutions are integer steps. */
static hone_model *integer_net(void) {
  hone_model *m = zoo("mobilenetv2", 0.2, 32, 1), *q = NULL;
  hone_quantize_report report;
  hone_error e = {0};
  assert_int_equal(
      hone_quantize(m, &(hone_quantize_options){.calib = "random", .threads = 2}, &q, &report, &e), HONE_OK);
  hone_quantize_report_free(&report);
  hone_model_release(m);
  return q;
}
#endif

/* One channel's scale for all of them; every code one level too high, which no step's largest difference
 * shows. */
static void test_integer_faults(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  static const char *const faults[] = {"qlinear_scale", "qlinear_next_zero"};
  subject s = subject_of("integer", integer_net());
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (!is_caught(faults[i], &s)) fail_msg("%s is not caught", faults[i]);
  hone_model_release(s.model);
#endif
}

/* The same in what hides roundings. */
static void test_hidden_faults(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  static const char *const faults[] = {"qlinear_next_zero", "code_table_tail", "int8_last_k",
                                       "int8_tail_mask", "int8_left_padding"};
  int met = 0, caught = 0;
  for (int k = 0; k < 2; k++) {
    subject s = subject_of("small", verify_right_nets[k](2));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
      char line[64];
      snprintf(line, sizeof line, "\n%s\n", faults[i]);
      if (!strstr(s.met, line)) continue;
      met++;
      const bool found = is_caught(faults[i], &s);
      if (!found) print_message("not found in model %d: %s\n", k, faults[i]);
      caught += found;
    }
    hone_model_release(s.model);
  }
  print_message("verify caught %d of %d seeded faults where roundings are hidden\n", caught, met);
  assert_true(met > 0);
  assert_int_equal(caught, met);
#endif
}

/* The sums of a recurrent network leave f32 long before anything that it makes does. */
static void test_edges_in_gates(void **state) {
  (void)state;
  hone_model *m =
      net_parse("test", "graph g(%x: f32[5x2x3]) -> (%y) {\n  %y = LSTM(%x, f32[1x16x3]rand(1, -2, 2), "
                        "f32[1x16x4]rand(2, -2, 2)) {hidden_size=4}\n}\n");
  const hone_verify_result r = verify(m, NULL, 0);
  if (r.verdict != HONE_VERDICT_SAME) fail_msg("%s", r.reason);
  assert_int_equal(r.edge_inputs, 8);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),
      cmocka_unit_test(test_localised),
      cmocka_unit_test(test_mistrusted),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_all_inputs),
      cmocka_unit_test(test_edges_differ),
      cmocka_unit_test(test_edges_without_answer),
      cmocka_unit_test(test_edges_in_gates),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_quantised),
      cmocka_unit_test(test_quantised_narrow),
      cmocka_unit_test(test_too_narrow),
      cmocka_unit_test(test_right),
      cmocka_unit_test(test_right_other),
      cmocka_unit_test(test_wrong_other),
      cmocka_unit_test(test_renamed),
      cmocka_unit_test(test_other_ends),
      cmocka_unit_test(test_renamed_plan),
      cmocka_unit_test(test_packed_plan),
      cmocka_unit_test(test_wide_codes),
      cmocka_unit_test(test_quantised_faults),
      cmocka_unit_test(test_hidden_faults),
      cmocka_unit_test(test_dynamic),
      cmocka_unit_test(test_rounded_within),
      cmocka_unit_test(test_integer_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
