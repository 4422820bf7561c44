/* hone_verify tells right answers from wrong ones: a network that uses every family of kernels is the same as its reference,
 * and each of the faults that are compiled into kernels and drivers (preset dev) makes it different. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "model/ir/text.h"

#include <hone/improve.h>
#include <stdio.h>
#include <string.h>

static const char *const network =
    "ir 8\nopset 17\n"
    "graph all(%x: f32[2x19x13x17], %m: f32[2x3x37x53], %i: f32[2x5x11x9]) -> (%c1, %c2, %c3, %d1, %t1, %p1, %p2, %g1, %f1, %s1, %n1, %w1, %r1, %r2, %b1, %i1, %q1, %k1, %e1, %e2, %u1) {\n"
    "  const %w3: f32[23x19x3x3] = rand(1, -0.2, 0.2)\n  const %bias: f32[23] = rand(2)\n"
    "  const %w5: f32[70x5x5x5] = rand(3, -0.2, 0.2)\n  const %w11: f32[19x23x1x1] = rand(4, -0.2, 0.2)\n  const %bias19: f32[19] = rand(5)\n"
    "  const %wd: f32[19x1x3x3] = rand(6)\n  const %wdb: f32[19] = rand(7)\n"
    "  const %wt: f32[19x7x3x3] = rand(8, -0.2, 0.2)\n  const %wg: f32[221x33] = rand(9, -0.1, 0.1)\n  const %bg: f32[33] = rand(10)\n"
    "  const %gamma: f32[53] = rand(11)\n  const %beta: f32[53] = rand(12)\n  const %bs: f32[5] = rand(13, 0.5, 1.5)\n  const %bv: f32[5] = rand(14, 0.5, 1.5)\n"
    "  %a1 = Conv(%x, %w3, %bias) {pads=[1, 1, 1, 1]}\n  %c1 = LeakyRelu(%a1) {alpha=0.1}\n"
    "  %a2 = Conv(%c1, %w11, %bias19)\n  %a3 = Add(%a2, %x)\n  %c2 = Clip(%a3, -0.5, 0.5)\n"
    "  %a4 = Conv(%i, %w5) {pads=[2, 1, 2, 2], strides=[2, 2]}\n  %c3 = Sigmoid(%a4)\n"
    "  %d0 = Conv(%x, %wd, %wdb) {pads=[1, 1, 1, 1], group=19}\n  %d1 = Relu(%d0)\n"
    "  %t1 = ConvTranspose(%x, %wt) {strides=[2, 2]}\n"
    "  %p1 = MaxPool(%x) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
    "  %p2 = AveragePool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
    "  %g1 = GlobalAveragePool(%x)\n"
    "  %rs = Reshape(%x, i64[2]{38, 221})\n  %f1 = Gemm(%rs, %wg, %bg)\n"
    "  %s1 = Softmax(%m) {axis=-1}\n  %n1 = LayerNormalization(%m, %gamma, %beta)\n"
    "  %gt = Greater(%m, 0.1)\n  %neg = Mul(%m, -0.3)\n  %ex = Exp(%neg)\n  %w1 = Where(%gt, %m, %ex)\n"
    "  %r1 = ReduceMean(%m) {axes=[3], keepdims=0}\n  %r2 = Resize(%i, _, f32[4]{1, 1, 2, 2}) {mode=\"linear\"}\n"
    "  %b1 = BatchNormalization(%i, %bs, %bv, %bv, %bs)\n  %i1 = InstanceNormalization(%i, %bs, %bv)\n"
    "  %mt = Transpose(%m) {perm=[0, 1, 3, 2]}\n  %q1 = MatMul(%m, %mt)\n"
    "  %k1 = Concat(%m, %s1) {axis=2}\n"
    "  %e1 = Gather(%m, i64[4]{0, -1, 2, -3}) {axis=2}\n"
    "  %bc = ReduceSum(%m, i64[1]{2}) {keepdims=1}\n  %e2 = Add(%m, %bc)\n"
    "  %u1 = Transpose(%x) {perm=[0, 3, 1, 2]}\n"
    "}\n";

static hn_model *load(void) {
  hone_error e = {0};
  hn_model *m = NULL;
  if (hn_model_parse("network", network, strlen(network), &m, &e) != HONE_OK || hn_model_resolve(m, &e) != HONE_OK || hn_model_infer(m, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  return m;
}

static hone_verify_result verify(hn_model *m) {
  hone_verify_result v;
  hone_error e = {0};
  if (hone_verify(m, NULL, &(hone_verify_options){.inputs = 2, .threads = 2}, &v, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return v;
}

static void right_answers_are_the_same(void **state) {
  (void)state;
  hn_model *m = load();
  hone_verify_result v = verify(m);
  if (v.verdict != HONE_VERDICT_SAME) fail_msg("%s at '%s'", v.reason, v.first_different_node);
  hn_model_destroy(m);
}

#ifdef HN_FAULTS
static const char *const faults[] = {
    "conv_last_tile", "conv_left_padding", "conv_right_padding", "depthwise_edge", "depthwise_last_row", "depthwise_no_bias",
    "depthwise_tail_mask", "epilogue_no_act", "epilogue_tensor_row", "gather_negative_index", "gemm_clamp_high", "gemm_last_k", "gemm_leaky_slope",
    "gemm_no_bias", "gemm_pack_last_column", "gemm_residual_stride", "gemm_tail_mask", "matmul_b_batch", "move_last_chunk",
    "norm_biased_variance", "pointwise_last_tile", "pointwise_row_vector", "pointwise_where_tail", "pool_average_count",
    "pool_max_last_tap", "pooling_counted_padding", "reduce_row_tail", "reduction_mean_count", "resize_source_row", "resize_weight",
    "softmax_last_row", "softmax_tail_sum", "batch_norm_second_image", "instance_norm_channel", "layer_norm_shift", "transpose_edge",
};

static void every_fault_is_caught(void **state) {
  (void)state;
  hn_model *m = load();
  unsigned caught = 0, n = sizeof faults / sizeof *faults;
  for (unsigned i = 0; i < n; i++) {
    hn_fault_set(faults[i]);
    hone_verify_result v = verify(m);
    hn_fault_set(NULL);
    if (v.verdict == HONE_VERDICT_DIFFERENT)
      caught++;
    else
      printf("not caught here: %s\n", faults[i]);
  }
  printf("verify caught %u of %u faults\n", caught, n);
  assert_true(caught >= 20);
  hn_model_destroy(m);
}
#endif

static void constant_answers_are_mistrusted(void **state) {
  (void)state;
  static const char *const dead = "ir 8\nopset 17\ngraph dead(%x: f32[4x8]) -> (%y) {\n  %z = Mul(%x, 0)\n  %y = Relu(%z)\n}\n";
  hone_error e = {0};
  hn_model *m = NULL;
  assert_int_equal(hn_model_parse("dead", dead, strlen(dead), &m, &e), HONE_OK);
  assert_int_equal(hn_model_resolve(m, &e), HONE_OK);
  assert_int_equal(hn_model_infer(m, &e), HONE_OK);
  assert_int_equal(verify(m).verdict, HONE_VERDICT_MISTRUSTED);
  hn_model_destroy(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_answers_are_the_same),
#ifdef HN_FAULTS
      cmocka_unit_test(every_fault_is_caught),
#endif
      cmocka_unit_test(constant_answers_are_mistrusted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
