/* What tactics really compute, beside what the operator's formula counts: in the descriptors, and in the
 * facts of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "net.h"
#include "backends/cpu/backend.h"
#include "optimize/step/work.h"

#include <hone/facts.h>
#include <math.h>

enum { CIN = 24, COUT = 20, HEIGHT = 26, WIDTH = 25 };

/* Pixels of the output with this stride, and operations of the formula. */
static int height_of(int stride) { return (HEIGHT - 1) / stride + 1; }
static int width_of(int stride) { return (WIDTH - 1) / stride + 1; }
static double direct_of(int stride) { return 2.0 * 9 * CIN * COUT * height_of(stride) * width_of(stride); }

/* Conv 3x3 with padding, then ReLU. */
static hn_model *conv_net(int stride) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, CIN, HEIGHT, WIDTH});
  hn_value *w = net_weights(m, 4, (const int64_t[]){COUT, CIN, 3, 3}, 1);
  hn_value *c = net_op(m, "Conv", (hn_value *[]){x, w}, 2);
  assert_true(hn_node_set_ints(c->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  assert_true(hn_node_set_ints(c->producer, "strides", (const int64_t[]){stride, stride}, 2));
  net_finish(m, net_op(m, "Relu", &c, 1));
  return m;
}

/* The Conv step of a plan that may use these tactics for it, in the facts of a run. */
static hone_facts *record(const char *tactics, int stride, const hone_step_fact **conv) {
  hn_model *m = conv_net(stride);
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_facts *f = hone_facts_create();
  hone_error e = {0};
  float *x = calloc(CIN * HEIGHT * WIDTH, sizeof *x);
  const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, CIN, HEIGHT, WIDTH}), x};
  const hone_tensor *inputs[] = {&in};
  assert_non_null(x);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1, .tactics = tactics}, &engine, &e),
                   HONE_OK);
  assert_int_equal(hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  assert_int_equal(hone_context_record(context, f, 1, &e), HONE_OK);
  assert_int_equal(hone_context_run(context, inputs, NULL, &e), HONE_OK);
  if (hone_context_record_end(context, &e) != HONE_OK) fail_msg("%s", e.what);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
  free(x);
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(f, &n);
  *conv = NULL;
  for (size_t i = 0; i < n; i++)
    if (strcmp(steps[i].op_type, "Conv") == 0) *conv = &steps[i];
  assert_non_null(*conv);
  return f;
}

static void winograd_multiplies_less(void **state) {
  (void)state;
  static const struct {
    const char *tactics, *name;
    int stride, m, n;     /* n: pieces along an axis */
    double input, output; /* operations of a tile's transforms, a channel: counted in winograd_body.h */
  } way[] = {{"-conv_gemm*,-conv_winograd4*,-conv_bf16*", "conv_winograd2", 1, 2, 4, 32, 24},
             {"-conv_gemm*,-conv_winograd2*,-conv_bf16*", "conv_winograd4", 1, 4, 6, 264, 160},
             {"-conv_gemm*,-conv_winograd3*,-conv_bf16*", "conv_winograd2_stride2", 2, 2, 5, 20, 10},
             {"-conv_gemm*,-conv_winograd2*,-conv_bf16*", "conv_winograd3_stride2", 2, 3, 7, 84, 28}};
  for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
    const hone_step_fact *c;
    const int m = way[i].m, n = way[i].n, stride = way[i].stride;
    hone_facts *f = record(way[i].tactics, stride, &c);
    assert_string_equal(c->tactic, way[i].name);
    const double tiles = (double)((height_of(stride) + m - 1) / m * ((width_of(stride) + m - 1) / m));
    const double winograd = tiles * (2.0 * n * n * CIN * COUT + way[i].input * CIN + way[i].output * COUT);
    const double direct = direct_of(stride),
                 rest = (double)c->flops - direct; /* the epilogue: the same for both */
    assert_true(rest >= 0 && rest < 0.01 * direct);
    assert_true(fabs((double)c->executed_flops - winograd - rest) < 1.5);
    assert_true(c->executed_flops < c->flops);
    assert_null(c->arithmetic); /* f32 it is */
    hone_facts_destroy(f);
  }
}

static void direct_sums_are_the_formula(void **state) {
  (void)state;
  const hone_step_fact *c;
  hone_facts *f = record("conv_gemm*,pointwise*,reformat*", 1, &c);
  assert_string_equal(c->tactic, "conv_gemm");
  assert_int_equal(c->executed_flops, c->flops);
  assert_null(c->arithmetic);
  hone_facts_destroy(f);
}

/* The descriptors of tactics that this processor may lack. */
static void narrow_parts_stand_for_one_product(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double times;
    bool split;
  } expected[] = {{"conv_bf16", 1, false},
                  {"conv_bf16x3", 3, true},
                  {"conv_bf16x6", 6, true},
                  {"gemm_bf16", 1, false},
                  {"gemm_bf16x3", 3, true},
                  {"gemm_bf16x6", 6, true},
                  {"matmul_bf16", 1, false},
                  {"matmul_bf16x3", 3, true},
                  {"matmul_bf16x6", 6, true},
                  {"fused_attention_bf16", 1, false},
                  {"fused_attention_bf16x3", 3, true}};
  const hone_step s = {.cost = {.flops = 2000, .macs = 1000}};
  const hone_machine machine = {.device = "cpu"};
  size_t found = 0;
  const hn_listing *list = hn_registry_take(hn_backend_cpu.tactics);
  for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
    for (uint32_t i = 0; i < list->n; i++) {
      const hone_tactic_desc *t = list->unit[i];
      if (strcmp(t->name, expected[k].name) != 0) continue;
      const hone_work w = hn_tactic_work(t, &s, &machine);
      assert_true(fabs(w.flops - 2000 * expected[k].times) < 0.5);
      assert_int_equal(w.arithmetic, HONE_ARITHMETIC_BF16);
      assert_int_equal(w.split, expected[k].split);
      found++;
    }
  hn_listing_drop(list);
  assert_int_equal(found, sizeof expected / sizeof *expected);
  const hone_work plain = hn_tactic_work(NULL, &s, &machine);
  assert_true(plain.flops == 2000 && plain.arithmetic == HONE_ARITHMETIC_OF_DTYPE);
  assert_string_equal(hn_arithmetic_name(HONE_ARITHMETIC_TF32), "tf32");
  assert_string_equal(hn_arithmetic_name(HONE_ARITHMETIC_UNKNOWN), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(winograd_multiplies_less),
                                     cmocka_unit_test(direct_sums_are_the_formula),
                                     cmocka_unit_test(narrow_parts_stand_for_one_product)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
