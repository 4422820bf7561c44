/* Squeeze-and-excitation as one step of an emulated Hopper: clusters, all storage types, every way in which
 * exporters write it, and what must not become one. Answers are the CPU's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "net.h"

#include <hone/data.h>
#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What needs warpgroups is not emulated, and libraries are not what is looked at. */
#define APART "-cu*,-*wgmma*,-conv_chain*"

typedef struct block {
  const char *what;
  int steps; /* of squeeze-and-excitation */
  const char *graph;
} block;

#define CONVS(in, c, h, act)                                                                                 \
  "  %p = GlobalAveragePool(%" in ")\n  %a = Conv(%p, f32[" h "x" c "x1x1] rand(1), f32[" h "] rand(2))\n"   \
  "  %b = " act "(%a)\n  %d = Conv(%b, f32[" c "x" h "x1x1] rand(3), f32[" c "] rand(4))\n"

static const block blocks[] = {
    {"sums of few channels: pixels are divided", 1,
     "graph g(%x: f32[2x24x29x31]) -> (%y) {\n" CONVS("x", "24", "6",
                                                      "Relu") "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"many channels of few pixels: channels are divided", 1,
     "graph g(%x: f32[1x392x3x4]) -> (%y) {\n" CONVS(
         "x", "392", "24",
         "Relu") "  %s = HardSigmoid(%d) {alpha=0.16666667, beta=0.5}\n  %y = Mul(%s, %x)\n}\n"},
    {"channels that are no whole vectors, a residual and functions behind it", 1,
     "graph g(%x: f32[3x43x9x6], %r: f32[3x43x9x6]) -> (%y) {\n" CONVS(
         "x", "43", "11",
         "Relu") "  %s = Sigmoid(%d)\n  %m = Mul(%x, %s)\n  %z = Add(%m, %r)\n  %y = Relu(%z)\n}\n"},
    {"swish between the products", 1,
     "graph g(%x: f32[1x40x14x14]) -> (%y) {\n"
     "  %p = GlobalAveragePool(%x)\n  %a = Conv(%p, f32[10x40x1x1] rand(1), f32[10] rand(2))\n"
     "  %q = Sigmoid(%a)\n  %b = Mul(%a, %q)\n  %d = Conv(%b, f32[40x10x1x1] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"a mean, and what is scaled is not what is averaged", 1,
     "graph g(%x: f32[2x16x5x5]) -> (%y) {\n  %e = Exp(%x)\n"
     "  %p = ReduceMean(%x) {axes=[2, -1], keepdims=1}\n"
     "  %a = Conv(%p, f32[8x16x1x1] rand(1))\n  %b = Relu(%a)\n  %d = Conv(%b, f32[16x8x1x1] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%e, %s)\n}\n"},
    {"matrices between views", 1,
     "graph g(%x: f32[3x24x6x6]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n  %f = Flatten(%p)\n"
     "  %a = Gemm(%f, f32[24x4] rand(1), f32[4] rand(2))\n  %b = Relu(%a)\n"
     "  %d = Gemm(%b, f32[24x4] rand(3), f32[24] rand(4)) {transB=1}\n  %s = Sigmoid(%d)\n"
     "  %v = Reshape(%s, i64[4]{3, 24, 1, 1})\n  %y = Mul(%x, %v)\n}\n"},
    {"volumes", 1,
     "graph g(%x: f32[1x16x3x4x5]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n"
     "  %a = Conv(%p, f32[8x16x1x1x1] rand(1))\n  %b = Relu(%a)\n  %d = Conv(%b, f32[16x8x1x1x1] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"weights that do not fit into registers", 1,
     "graph g(%x: f32[1x512x2x2]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n"
     "  %a = Conv(%p, f32[500x512x1x1] rand(1, -0.1, 0.1), f32[500] rand(2))\n  %b = Relu(%a)\n"
     "  %d = Conv(%b, f32[512x500x1x1] rand(3, -0.1, 0.1), f32[512] rand(4))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"more images than a wave", 1,
     "graph g(%x: f32[40x8x4x4]) -> (%y) {\n" CONVS("x", "8", "8",
                                                    "Relu") "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"the gate is returned, too", 0,
     "graph g(%x: f32[1x16x5x5]) -> (%y, %s) {\n" CONVS(
         "x", "16", "8", "Relu") "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"the average is read elsewhere", 0,
     "graph g(%x: f32[1x16x5x5]) -> (%y, %z) {\n" CONVS(
         "x", "16", "8", "Relu") "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n  %z = Exp(%p)\n}\n"},
    {"a mean of rows alone", 0,
     "graph g(%x: f32[1x16x5x5]) -> (%y) {\n  %p = ReduceMean(%x) {axes=[2], keepdims=1}\n"
     "  %q = MaxPool(%p) {kernel_shape=[1, 5]}\n"
     "  %a = Conv(%q, f32[8x16x1x1] rand(1))\n  %b = Relu(%a)\n  %d = Conv(%b, f32[16x8x1x1] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"products in groups", 0,
     "graph g(%x: f32[1x16x5x5]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n"
     "  %a = Conv(%p, f32[8x8x1x1] rand(1)) {group=2}\n  %b = Relu(%a)\n  %d = Conv(%b, f32[16x8x1x1] "
     "rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"a vector that is computed", 0,
     "graph g(%x: f32[1x16x5x5], %c: f32[8]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n  %v = Exp(%c)\n"
     "  %a = Conv(%p, f32[8x16x1x1] rand(1), %v)\n  %b = Relu(%a)\n  %d = Conv(%b, f32[16x8x1x1] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %y = Mul(%x, %s)\n}\n"},
    {"images of a batch that are mixed", 0,
     "graph g(%x: f32[2x8x5x5]) -> (%y) {\n  %p = GlobalAveragePool(%x)\n  %f = Reshape(%p, i64[2]{1, 16})\n"
     "  %a = Gemm(%f, f32[16x4] rand(1))\n  %b = Relu(%a)\n  %d = Gemm(%b, f32[4x16] rand(3))\n"
     "  %s = Sigmoid(%d)\n  %v = Reshape(%s, i64[4]{2, 8, 1, 1})\n  %y = Mul(%x, %v)\n}\n"},
};

/* gpu: with clusters; narrow: with smaller blocks of threads alone; old: without clusters. */
static hone_engine *cpu, *gpu, *narrow, *old;

static hone_plan *plan_of(hone_engine *engine, const char *graph, const char *precision, const char *passes) {
  char text[2048];
  hone_plan *plan = NULL;
  hone_error e = {0};
  snprintf(text, sizeof text, "opset 17\n%s", graph);
  hn_model *m = net_parse("block", text);
  const hone_plan_options o = {
      .level = 2, .precision = precision, .passes = passes, .chains = HONE_CHAINS_ALWAYS};
  if (hone_plan_create(engine, m, &o, &plan, &e)) fail_msg("%s: %s", e.where, e.what);
  hone_model_release(m);
  return plan;
}

static int squeezes(const hone_plan *plan) {
  int n = 0;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info step;
    assert_true(hone_plan_step(plan, i, &step));
    n += strcmp(step.op_type, "SqueezeExcite") == 0;
  }
  return n;
}

static hone_context *run(hone_plan *plan, const hone_data *in) {
  hone_context *c = NULL;
  hone_error e = {0};
  const hone_tensor *given[4];
  for (uint32_t i = 0; i < hone_plan_inputs(plan); i++) given[i] = &in[i].tensor;
  if (hone_context_create(plan, &c, &e) || hone_context_run(c, given, NULL, &e))
    fail_msg("%s: %s", e.where, e.what);
  return c;
}

static double difference(const hone_tensor *got, const hone_tensor *want) {
  const float *g = got->data, *w = want->data;
  double most = 0, range = 0;
  for (int64_t i = 0; i < hone_desc_count(&want->desc); i++) {
    const double d = fabs((double)g[i] - (double)w[i]);
    range = fmax(range, fabs((double)w[i]));
    if (!(d <= most)) most = isnan(d) ? (double)INFINITY : d;
  }
  return most / range;
}

static void check(hone_engine *engine, const block *b, const char *precision, double tolerance) {
  hone_plan *want = plan_of(cpu, b->graph, "f32", NULL), *got = plan_of(engine, b->graph, precision, NULL);
  hone_data in[4];
  hone_error e = {0};
  if (squeezes(got) != b->steps) fail_msg("%s, %s: %d steps of it", b->what, precision, squeezes(got));
  for (uint32_t i = 0; i < hone_plan_inputs(want); i++)
    assert_int_equal(
        hone_data_random(hone_plan_input_name(want, i), hone_plan_input_desc(want, i), 100, 3, &in[i], &e),
        HONE_OK);
  hone_context *right = run(want, in), *c = run(got, in);
  for (uint32_t i = 0; i < hone_plan_outputs(want); i++) {
    const double d = difference(hone_context_output(c, i), hone_context_output(right, i));
    if (!(d <= tolerance)) fail_msg("%s, %s: differs by %g of the range", b->what, precision, d);
  }
  for (uint32_t i = 0; i < hone_plan_inputs(want); i++) hone_data_free(&in[i]);
  hone_context_destroy(c), hone_context_destroy(right);
  hone_plan_destroy(want), hone_plan_destroy(got);
}

enum { DIVIDED = 3, WIDE = 7 }; /* blocks up to the first; the one with many weights */
#define HALF (1.0 / 512)
#define EXACT 1e-5 /* sums of up to 512 products */

static void every_block_is_right(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    if (blocks[i].steps) check(gpu, &blocks[i], "fp16", HALF);
    if (i < DIVIDED || i == WIDE) check(gpu, &blocks[i], "f32", EXACT);
    if (i < DIVIDED) check(gpu, &blocks[i], "bf16", 1.0 / 64);
  }
}

static void blocks_of_fewer_threads_are_right(void **state) {
  (void)state;
  check(narrow, &blocks[DIVIDED - 1], "fp16", HALF);
  check(narrow, &blocks[WIDE], "f32", EXACT);
}

static void without_clusters_a_block_has_an_image(void **state) {
  (void)state;
  setenv("HONE_FAKE_ARCH", "80", 1);
  for (size_t i = 0; i < DIVIDED; i++) check(old, &blocks[i], "fp16", HALF);
  setenv("HONE_FAKE_ARCH", "90", 1);
}

static void what_others_read_stays_apart(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    if (blocks[i].steps) continue;
    hone_plan *plan = plan_of(gpu, blocks[i].graph, "fp16", NULL);
    if (squeezes(plan)) fail_msg("%s", blocks[i].what);
    hone_plan_destroy(plan);
  }
}

static void it_can_be_switched_off(void **state) {
  (void)state;
  hone_plan *plan = plan_of(gpu, blocks[0].graph, "fp16", "-squeeze");
  assert_int_equal(squeezes(plan), 0);
  hone_plan_destroy(plan);
  plan = plan_of(cpu, blocks[0].graph, "f32", NULL);
  assert_int_equal(squeezes(plan), 0);
  hone_plan_destroy(plan);
}

static void the_step_owns_its_nodes(void **state) {
  (void)state;
  hone_plan *plan = plan_of(gpu, blocks[5].graph, "fp16", NULL); /* with views between */
  const hn_plan *p = hn_api_plan(plan);
  uint32_t owned = 0;
  for (size_t i = 0; i < p->steps.len; i++)
    if (strcmp(p->steps.ptr[i].desc.anchor, "SqueezeExcite") == 0) owned += p->steps.ptr[i].n_nodes;
  assert_int_equal(owned, 8);
  hone_plan_destroy(plan);
}

static int open_engines(void **state) {
  (void)state;
  hone_error e = {0};
  if (hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &cpu, &e) ||
      hone_engine_create(
          &(hone_engine_options){.device = "cuda", .threads = 1, .tuning = "off", .tactics = APART}, &gpu,
          &e) ||
      hone_engine_create(
          &(hone_engine_options){
              .device = "cuda", .threads = 1, .tuning = "off", .tactics = APART ",-squeeze_512"},
          &narrow, &e))
    return -1;
  setenv("HONE_FAKE_ARCH", "80", 1);
  const hone_status s =
      hone_engine_create(&(hone_engine_options){.device = "cuda", .threads = 1, .tuning = "off"}, &old, &e);
  setenv("HONE_FAKE_ARCH", "90", 1);
  return s ? -1 : 0;
}

static int close_engines(void **state) {
  (void)state;
  hone_engine_destroy(cpu), hone_engine_destroy(gpu), hone_engine_destroy(narrow), hone_engine_destroy(old);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_block_is_right),
                                     cmocka_unit_test(blocks_of_fewer_threads_are_right),
                                     cmocka_unit_test(without_clusters_a_block_has_an_image),
                                     cmocka_unit_test(what_others_read_stays_apart),
                                     cmocka_unit_test(it_can_be_switched_off),
                                     cmocka_unit_test(the_step_owns_its_nodes)};
  return cmocka_run_group_tests(tests, open_engines, close_engines);
}
