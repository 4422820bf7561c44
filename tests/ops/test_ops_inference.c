/* Nodes of the layers of networks before they run: hostile ones are refused, and inference that knows little
 * claims nothing false. */
#include "ops/op_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct node_case {
  const char *op;
  int64_t opset;
  const char *inputs; /* "f32:1x2x5x5 i64:4 -": dtype, dims; "-" is left out */
  const char *attrs;
} node_case;

static void give_inputs(op_case *c, const char *text) {
  char copy[256], *save = NULL;
  uint32_t seed = 1;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    char *colon = strchr(word, ':');
    if (!colon) {
      op_skip(c);
      continue;
    }
    *colon = 0;
    op_in(c, hone_dtype_from_name(word), colon + 1, NULL, seed++);
  }
}

static void hostile_nodes_are_refused(void **state) {
  (void)state;
  static const node_case cases[] = {
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "strides=0,1"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "strides=-1,1"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "dilations=0,0"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "dilations=4611686018427387904,1"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "pads=-1,0,0,0"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "pads=9223372036854775807,0,0,9223372036854775807"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "pads=1,1"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "kernel_shape=3,2"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "group=0"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "group=2"},
      {"Conv", 11, "f32:1x2x5x5 f32:3x1x3x3", "group=2"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x6x3", ""},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x0x3", ""},
      {"Conv", 11, "f32:1x2x5x5 f64:2x2x3x3", ""},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3 f32:3", ""},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3", ""},
      {"Conv", 11, "f32:2x5 f32:2x2", ""},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "auto_pad=s:BOTH"},
      {"ConvTranspose", 11, "f32:1x2x5x5 f32:2x2x3x3", "output_shape=0,5"},
      {"ConvTranspose", 11, "f32:1x2x5x5 f32:2x2x3x3", "output_padding=5,5"},
      {"ConvTranspose", 11, "f32:1x2x5x5 f32:2x2x3x3", "pads=9,9,9,9"},
      {"ConvTranspose", 11, "f32:1x2x5x5 f32:3x2x3x3", ""},
      {"ConvTranspose", 11, "f32:1x3x5x5 f32:3x2x3x3", "group=2"},
      {"ConvTranspose", 11, "f32:1x2x0x5 f32:2x2x3x3", ""},
      {"MaxPool", 12, "f32:1x2x5x5", "kernel_shape=0,1"},
      {"MaxPool", 12, "f32:1x2x5x5", "kernel_shape=7,1"},
      {"MaxPool", 12, "f32:1x2x5x5", "kernel_shape=2,"},
      {"MaxPool", 18, "f32:1x1x5", "kernel_shape=8, pads=0,1"},
      {"LpPool", 18, "f32:1x1x5", "kernel_shape=7,"},
      {"LpPool", 18, "f32:1x1x5", "kernel_shape=9, strides=2, ceil_mode=1"},
      {"GlobalMaxPool", 12, "f32:1x2x0", ""},
      {"MaxPool", 12, "f32:1x2x5x5", ""},
      {"MaxPool", 12, "f32:1x2x5x5", "kernel_shape=2,2 storage_order=7"},
      {"AveragePool", 11, "f32:1x2x5x5", "kernel_shape=2,2 strides=0,0 ceil_mode=1"},
      {"AveragePool", 11, "f32:1x2x0x5", "kernel_shape=2,2 auto_pad=s:SAME_UPPER"},
      {"LpPool", 11, "f32:1x2x5x5", "kernel_shape=2,2 p=0"},
      {"GlobalAveragePool", 11, "f32:5", ""},
      {"MaxUnpool", 11, "f32:1x1x2x2 i64:1x1x2x3", "kernel_shape=2,2"},
      {"BatchNormalization", 15, "f32:1x2x5 f32:3 f32:2 f32:2 f32:2", ""},
      {"BatchNormalization", 15, "f32: f32:1 f32:1 f32:1 f32:1", ""},
      {"InstanceNormalization", 15, "f32:1x2x5 f32:2 f32:3", ""},
      {"LayerNormalization", 17, "f32:2x3 f32:3", "axis=2"},
      {"LayerNormalization", 17, "f32:2x3 f32:4", ""},
      {"GroupNormalization", 21, "f32:1x4x2 f32:4 f32:4", "num_groups=3"},
      {"GroupNormalization", 21, "f32:1x4x2 f32:4 f32:4", "num_groups=0"},
      {"LpNormalization", 11, "f32:2x3", "p=3"},
      {"LpNormalization", 11, "f32:2x3", "axis=-3"},
      {"LRN", 11, "f32:1x2x5", "size=0"},
      {"MeanVarianceNormalization", 11, "f32:1x2x5", ""},
      {"QuantizeLinear", 13, "f32:2x3 f32:4", "axis=1"},
      {"QuantizeLinear", 13, "f32:2x3 f32:3 u8:2", "axis=1"},
      {"QuantizeLinear", 21, "f32:2x3 f32:2x3", "axis=1 block_size=2"},
      {"QuantizeLinear", 21, "f32:2x3 f32:2x1", "axis=1 block_size=-1"},
      {"DequantizeLinear", 13, "u8:2x3 f32:3 i8:3", "axis=1"},
      {"QLinearMatMul", 10, "u8:2x3 f32: u8: u8:4x2 f32: u8: f32: u8:", ""},
      {"QLinearMatMul", 10, "u8:2x3 f32:4 u8: u8:3x2 f32: u8: f32: u8:", ""},
      {"RNN", 14, "f32:2x1x3 f32:1x2x4 f32:1x2x2", "hidden_size=2"},
      {"RNN", 14, "f32:2x1x3 f32:1x2x3 f32:1x2x2", "hidden_size=3"},
      {"RNN", 14, "f32:2x1x3 f32:1x2x3 f32:1x2x2", "hidden_size=2 direction=s:up"},
      {"RNN", 14, "f32:2x1x3 f32:1x2x3 f32:1x2x2", "hidden_size=2 activations=S:Tanh,Tanh"},
      {"LSTM", 14, "f32:2x1x3 f32:1x8x3 f32:1x8x2 f32:1x8", "hidden_size=2"},
      {"LSTM", 14, "f32:2x1x3 f32:1x8x3 f32:1x8x2", "hidden_size=-2"},
      {"DepthToSpace", 13, "f32:1x4x2x2", "blocksize=0"},
      {"DepthToSpace", 13, "f32:1x4x2x2", "blocksize=3"},
      {"DepthToSpace", 13, "f32:1x4x2x2", "blocksize=9223372036854775807"},
      {"SpaceToDepth", 13, "f32:1x4x3x2", "blocksize=2"},
      {"RotaryEmbedding", 23, "f32:1x1x2x4 f32:3x2 f32:1x2 i64:1x2", ""},
      {"RotaryEmbedding", 23, "f32:1x1x2x4 f32:0x2 f32:0x2 i64:1x2", ""},
      {"GridSample", 16, "f32:1x1x2x2 f32:1x2x2x3", ""},
      {"GridSample", 16, "f32:1x1x2x2 f32:2x2x2x2", ""},
      {"GridSample", 16, "f32:1x1x0x2 f32:1x2x2x2", ""},
      {"RoiAlign", 16, "f32:1x1x2x2 f32:1x5 i64:1", ""},
      {"RoiAlign", 16, "f32:1x1x2x2 f32:1x4 i64:1", "output_height=0"},
      {"RoiAlign", 16, "f32:1x1x2x2 f32:1x4 i64:1", "sampling_ratio=2147483647"},
      {"MaxRoiPool", 16, "f32:1x1x2x2 f32:1x5", "pooled_shape=0,1"},
      {"NonMaxSuppression", 11, "f32:1x3x4 f32:1x1x4", ""},
      {"NonMaxSuppression", 11, "f32:1x3x3 f32:1x1x3", ""},
      {"Col2Im", 18, "f32:1x4x3 i64:2 i64:3", ""},
      {"CenterCropPad", 18, "f32:1x4x3 i64:2", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_case c;
    op_begin(&c, cases[i].op, cases[i].opset);
    give_inputs(&c, cases[i].inputs);
    op_attrs(&c, cases[i].attrs);
    hone_status s = op_run(&c, 1);
    if (s != HONE_ERROR_INPUT)
      print_error("%s %s %s: %s\n", cases[i].op, cases[i].inputs, cases[i].attrs, hone_status_name(s));
    assert_int_equal(s, HONE_ERROR_INPUT);
    assert_true(c.error.what[0] != 0);
    op_end(&c);
  }
}

/* Whatever is hidden from inference, it neither fails nor contradicts what it finds when it knows everything.
 */
static void inference_tolerates_unknowns(void **state) {
  (void)state;
  static const node_case cases[] = {
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3 f32:2", "pads=1,0,1,0"},
      {"Conv", 11, "f32:1x2x5x5 f32:2x2x3x3", "auto_pad=s:SAME_LOWER kernel_shape=3,3"},
      {"ConvTranspose", 11, "f32:1x2x5x5 f32:2x2x3x3 f32:2", "strides=2,2"},
      {"ConvInteger", 10, "u8:1x2x5 i8:2x2x3", ""},
      {"QLinearConv", 10, "u8:1x2x5 f32: u8: i8:2x2x3 f32: i8: f32: u8: i32:2", ""},
      {"QLinearMatMul", 10, "u8:2x3 f32: u8: u8:3x2 f32: u8: f32: u8:", ""},
      {"QuantizeLinear", 13, "f32:2x3 f32:3 u8:3", "axis=1"},
      {"DequantizeLinear", 21, "u8:2x3 f32:2x2 u8:2x2", "axis=1 block_size=2"},
      {"DequantizeLinear", 21, "u8:2x3 f32: u8:1", ""},
      {"QuantizeLinear", 21, "f32:2x3 f32:1 u8:", ""},
      {"MaxPool", 12, "f32:1x2x5x5", "kernel_shape=2,2 ceil_mode=1"},
      {"AveragePool", 12, "f32:1x2x5x5", "kernel_shape=2,2 strides=2,2"},
      {"GlobalMaxPool", 12, "f32:1x2x5x5", ""},
      {"BatchNormalization", 15, "f32:1x2x5 f32:2 f32:2 f32:2 f32:2", ""},
      {"LayerNormalization", 17, "f32:2x3 f32:3 f32:3", ""},
      {"GroupNormalization", 21, "f32:1x4x2 f32:4 f32:4", "num_groups=2"},
      {"MeanVarianceNormalization", 13, "f32:1x2x5x5", ""},
      {"LSTM", 14, "f32:2x1x3 f32:1x8x3 f32:1x8x2 f32:1x16", "hidden_size=2"},
      {"Resize", 19, "f32:1x2x3 - f32:3", ""},
      {"GridSample", 16, "f32:1x1x2x2 f32:1x2x2x2", ""},
      {"RoiAlign", 16, "f32:1x1x2x2 f32:1x4 i64:1", ""},
      {"MaxRoiPool", 16, "f32:1x1x2x2 f32:1x5", "pooled_shape=1,1"},
      {"NonMaxSuppression", 11, "f32:1x3x4 f32:1x1x3 i64:1", ""},
      {"DepthToSpace", 13, "f32:1x4x2x2", "blocksize=2"},
      {"Einsum", 12, "f32:1x2 f32:3x2", "equation=s:ab,ab->ab"},
      {"Einsum", 12, "f32:3x2 f32:1x2", "equation=s:ab,ab->ab"},
      {"Col2Im", 18, "f32:1x4x3 i64:2 i64:2", ""},
      {"CenterCropPad", 18, "f32:1x4x3 i64:3", ""},
      {"MaxUnpool", 11, "f32:1x1x2x2 i64:1x1x2x2 i64:4", "kernel_shape=2,2 strides=2,2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (uint32_t mask = 0; mask < 64; mask++) {
      op_case all, some;
      op_case *both[] = {&all, &some};
      for (int k = 0; k < 2; k++) {
        op_begin(both[k], cases[i].op, cases[i].opset);
        give_inputs(both[k], cases[i].inputs);
        op_attrs(both[k], cases[i].attrs);
      }
      assert_int_equal(op_infer(&all, 1, 0, 0, 0), HONE_OK);
      hone_status s = op_infer(&some, 1, mask & 7, mask >> 3, 0);
      if (s) print_error("%s: %s\n", cases[i].op, some.error.what);
      assert_int_equal(s, HONE_OK);
      const hone_tensor_desc *a = &all.out[0].desc, *b = &some.out[0].desc;
      assert_true(b->dtype == HONE_DTYPE_NONE || a->dtype == b->dtype);
      if (b->rank >= 0 && a->rank >= 0) assert_int_equal(a->rank, b->rank);
      for (int32_t d = 0; d < b->rank && d < a->rank; d++)
        assert_true(a->dim[d] < 0 || b->dim[d] < 0 || a->dim[d] == b->dim[d]);
      op_end(&all);
      op_end(&some);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hostile_nodes_are_refused),
      cmocka_unit_test(inference_tolerates_unknowns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
