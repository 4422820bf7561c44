/* What lies between the steps of a processor's plan in bf16 or fp16: 16 bits where it multiplies such
 * numbers, f32 everywhere on the others, and right answers on all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "backends/cpu/backend.h"
#include "model/operators.h"
#include "optimize/plan/plan.h"
#include "runtime/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { C = 64, SIZE = 28, MOST = 1 << 16 };

static hn_value *conv(hn_model *m, hn_value *x, int64_t cin, int64_t cout, int64_t k, int64_t group,
                      unsigned seed) {
  const int64_t pads[] = {k / 2, k / 2, k / 2, k / 2};
  hn_value *w = net_weights(m, 4, (const int64_t[]){cout, cin / group, k, k}, seed);
  hn_value *y = net_op(m, "Conv", (hn_value *[]){x, w}, 2);
  assert_true(hn_node_set_ints(y->producer, "pads", pads, 4));
  if (group > 1) assert_true(hn_node_set_int(y->producer, "group", group));
  return y;
}

static hn_value *relu(hn_model *m, hn_value *x) { return net_op(m, "Relu", &x, 1); }

/* Everything that knows values of 16 bits, and between them what does not. */
static hn_model *network(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 2 * SIZE, 2 * SIZE});
  hn_value *v = relu(m, conv(m, x, 3, C, 3, 1, 1));
  v = net_op(m, "MaxPool", &v, 1);
  assert_true(hn_node_set_ints(v->producer, "kernel_shape", (const int64_t[]){2, 2}, 2));
  assert_true(hn_node_set_ints(v->producer, "strides", (const int64_t[]){2, 2}, 2));
  hn_value *a = relu(m, conv(m, v, C, C, 1, 1, 2)); /* and a residual */
  a = conv(m, a, C, C, 3, 1, 3);
  v = relu(m, net_op(m, "Add", (hn_value *[]){a, v}, 2));
  hn_value *d = relu(m, conv(m, v, C, C, 3, C, 4)); /* depthwise, alone or in a chain */
  v = conv(m, d, C, C, 1, 1, 5);
  hn_value *s = net_op(m, "Sigmoid", &v, 1); /* a gate, from another reader */
  hn_value *e = net_op(m, "Erf", &v, 1);
  v = net_op(m, "Concat", (hn_value *[]){net_op(m, "Mul", (hn_value *[]){s, e}, 2), v}, 2);
  assert_true(hn_node_set_int(v->producer, "axis", 1));
  v = relu(m, conv(m, v, 2 * C, C, 1, 1, 6));
  hn_value *n = net_op(m, "LpNormalization", &v, 1); /* the reference alone has it */
  assert_true(hn_node_set_int(n->producer, "axis", 1));
  v = conv(m, net_op(m, "Add", (hn_value *[]){n, v}, 2), C, C, 3, 1, 7);
  net_output(m, v);
  net_finish(m, conv(m, relu(m, v), C, 10, 1, 1, 8));
  return m;
}

/* What a test holds; freed by its teardown. */
static struct {
  hn_device *device;
  hn_model *model;
  hn_plan *plan;
  hn_context *context;
} held;

static int let_go(void **state) {
  (void)state;
  hn_context_destroy(held.context);
  hn_plan_free(held.plan);
  hn_model_destroy(held.model);
  if (held.device) hn_backend_cpu.close(held.device);
  memset(&held, 0, sizeof held);
  return 0;
}

static bool stores(hone_dtype type) {
  return hn_backend_cpu.stores(hn_backend_cpu.machine(held.device), type);
}

/* Whether products of f32 would be faster is the processor's matter: where there are narrow ones, they are
 * taken. */
static void plan(hn_precision precision, int level, const char *f32_node) {
  hone_error e = {0};
  const hone_dtype type = precision == HN_PRECISION_F16 ? HONE_DTYPE_F16 : HONE_DTYPE_BF16;
  let_go(NULL);
  assert_int_equal(hn_backend_cpu.open(0, 2, NULL, &held.device, &e), HONE_OK);
  held.model = network();
  if (hn_model_ready(held.model, &e)) fail_msg("%s", e.what);
  const hn_plan_request r = {
      .backend = &hn_backend_cpu,
      .device = held.device,
      .model = held.model,
      .level = level,
      .precision = precision,
      .tactics = level == 2 && stores(type) ? "-conv_gemm,-conv_winograd*,-conv_chain,-*x3" : NULL,
      .f32_nodes = f32_node ? &f32_node : NULL,
      .n_f32_nodes = f32_node != NULL};
  if (hn_plan_build(&r, &held.plan, &e)) fail_msg("%s: %s", e.where, e.what);
}

static int64_t answer(float *y) {
  static float x[3 * 4 * SIZE * SIZE];
  hone_error e = {0};
  int64_t n = 0;
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 2 * SIZE, 2 * SIZE}), x};
  const hone_tensor *inputs[] = {&in};
  assert_int_equal(hn_context_create(held.plan, &held.context, &e), HONE_OK);
  if (hn_context_run(held.context, inputs, NULL, &e)) fail_msg("%s: %s", e.where, e.what);
  for (uint32_t i = 0; i < held.plan->n_outputs; i++) {
    const hone_tensor *t = hn_context_output(held.context, i);
    assert_int_equal(t->desc.dtype, HONE_DTYPE_F32);
    const int64_t more = hone_desc_count(&t->desc);
    assert_true(n + more <= MOST);
    memcpy(y + n, t->data, (size_t)more * sizeof *y);
    n += more;
  }
  return n;
}

/* Values that some step makes so. */
static uint32_t made_as(hone_dtype type) {
  uint32_t n = 0;
  for (size_t i = 0; i < held.plan->steps.len; i++)
    for (uint32_t k = 0; k < held.plan->steps.ptr[i].desc.n_outputs; k++)
      n += held.plan->steps.ptr[i].desc.output[k].desc.dtype == type;
  return n;
}

/* Steps that do nothing but change the type. */
static uint32_t conversions(void) {
  uint32_t n = 0;
  for (size_t i = 0; i < held.plan->steps.len; i++) {
    const hn_step *s = &held.plan->steps.ptr[i];
    n += s->role == HONE_STEP_REFORMAT && s->desc.input[0].desc.dtype != s->desc.output[0].desc.dtype;
  }
  return n;
}

static void check(hn_precision precision, hone_dtype type, double bound) {
  static float want[MOST], got[MOST];
  plan(HN_PRECISION_F32, 0, NULL);
  const int64_t n = answer(want);
  assert_int_equal(made_as(type), 0);
  plan(precision, 2, NULL);
  if (stores(type))
    assert_true(made_as(type) >= 5);
  else
    assert_int_equal(made_as(type), 0);
  assert_int_equal(conversions(), 0);
  assert_int_equal(answer(got), n);
  double range = 0, worst = 0;
  for (int64_t i = 0; i < n; i++) range = fmax(range, fabs((double)want[i]));
  for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
  if (!(worst <= bound * range)) fail_msg("off by %g of the range, %g allowed", worst / range, bound);
}

static void bf16_lies_between_steps(void **state) {
  (void)state;
  check(HN_PRECISION_BF16, HONE_DTYPE_BF16, 0x1p-5);
}

static void f16_lies_between_steps(void **state) {
  (void)state;
  check(HN_PRECISION_F16, HONE_DTYPE_F16, 0x1p-8);
}

/* A node that is to stay f32 does, with what it reads and makes. */
static void nodes_stay_f32(void **state) {
  (void)state;
  plan(HN_PRECISION_BF16, 2, NULL);
  const hn_step *of = NULL;
  for (size_t i = 0; i < held.plan->steps.len && !of; i++)
    if (held.plan->steps.ptr[i].node && held.plan->steps.ptr[i].desc.output[0].desc.dtype == HONE_DTYPE_BF16)
      of = &held.plan->steps.ptr[i];
  if (!of) {
    print_message("SKIP: this processor has no bf16 products\n");
    skip();
  }
  char name[128];
  strncpy(name, of->node->name, sizeof name - 1), name[sizeof name - 1] = 0;
  plan(HN_PRECISION_BF16, 2, name);
  uint32_t seen = 0;
  for (size_t i = 0; i < held.plan->steps.len; i++) {
    const hone_step *s = &held.plan->steps.ptr[i].desc;
    if (!held.plan->steps.ptr[i].node || strcmp(held.plan->steps.ptr[i].node->name, name) != 0) continue;
    seen++;
    assert_int_equal(s->input[0].desc.dtype, HONE_DTYPE_F32);
    assert_int_equal(s->output[0].desc.dtype, HONE_DTYPE_F32);
  }
  assert_int_equal(seen, 1);
}

/* Below level 2 nothing is rounded. */
static void level_1_stays_f32(void **state) {
  (void)state;
  plan(HN_PRECISION_BF16, 1, NULL);
  assert_int_equal(made_as(HONE_DTYPE_BF16), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(bf16_lies_between_steps, let_go),
      cmocka_unit_test_teardown(f16_lies_between_steps, let_go),
      cmocka_unit_test_teardown(nodes_stay_f32, let_go),
      cmocka_unit_test_teardown(level_1_stays_f32, let_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
