/* Operators that ONNX had on trial until opset 9: their formulas, as ONNX Runtime 1.32 has them. And the
 * forms that operators had before opset 6 or 7, as the standard has them. */
#include "ops/text_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void formulas(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Affine", 9, "f32:4=1,nan,inf,-2", "alpha=f:2 beta=f:0.5", "f32:4=2.5,nan,inf,-3.5"},
      {"Affine", 1, "f32:=3", "", "f32:=3"},
      {"Affine", 10, "f32:=3", "", NULL},
      {"Scale", 7, "f16:2=1.5,-2", "scale=f:4", "f16:2=6,-8"},
      {"Scale", 7, "f64:0", "", "f64:0"},
      {"ScaledTanh", 7, "f32:4=0,0.5,inf,-inf", "alpha=f:2 beta=f:2", "f32:4=0,1.523188312,2,-2"},
      {"ScaledTanh", 7, "f32:1=0", "alpha=f:2", NULL},
      {"ParametricSoftplus", 7, "f32:4=0,100,-100,inf", "alpha=f:2 beta=f:3", "f32:4=1.386294361,600,0,inf"},
      {"ParametricSoftplus", 7, "f32:2=50,-inf", "alpha=f:1 beta=f:-2", "f32:2=0,inf"},
      {"ParametricSoftplus", 7, "f32:1=0", "beta=f:2", NULL},
  };
  CHECK_ALL(cases);
}

static void pictures(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"ImageScaler", 7, "f32:1x2x1x2=1,2,3,4", "scale=f:0.5 bias=F:1,-1", "f32:1x2x1x2=1.5,2,0.5,1"},
      {"ImageScaler", 7, "f32:0x2x1x2", "bias=F:1,-1", "f32:0x2x1x2"},
      {"ImageScaler", 7, "f32:1x2x1x2", "bias=F:1", NULL},
      {"ImageScaler", 7, "f32:2x2", "bias=F:1,1", NULL},
      {"Crop", 7, "f32:1x1x3x4=1,2,3,4,5,6,7,8,9,10,11,12", "border=1,0,2,1", "f32:1x1x2x1=2,6"},
      {"DynamicSlice", 9, "f32:2x3=1,2,3,4,5,6 i64:2=0,-2 i64:2=1,9", "", "f32:1x2=2,3"},
      {"DynamicSlice", 9, "f32:2x3=1,2,3,4,5,6 i64:1=1 i64:1=2 i64:1=-1", "", "f32:2x1=2,5"},
      {"Crop", 7, "f32:1x1x3x4=1,2,3,4,5,6,7,8,9,10,11,12", "border=1,1,0,0 scale=2,2",
       "f32:1x1x2x2=6,7,10,11"},
      {"Crop", 7, "f32:1x1x3x4", "border=2,0,2,0", "f32:1x1x3x0"},
      {"Crop", 7, "f32:1x1x3x4", "border=2,0,3,0", NULL},
      {"Crop", 7, "f32:1x1x3x4", "border=1,2,0,0 scale=2,2", NULL},
      {"Crop", 7, "f32:1x1x3x4", "border=1,1", NULL},
      {"Crop", 7, "f32:1x1x3x4", "border=-1,0,0,0", NULL},
      {"Crop", 7, "f32:1x1x3x4", "border=-9223372036854775808,0,0,-9223372036854775808", NULL},
      {"Crop", 7, "f32:1x1x3", "border=0,0,0,0", NULL},
  };
  CHECK_ALL(cases);
}

static void first_forms(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Cast", 5, "f32:3=1.5,-2,0", "to=s:INT64", "i64:3=1,-2,0"},
      {"Cast", 1, "f32:2=0,3", "to=s:bool", "bool:2=0,1"},
      {"Cast", 5, "f32:1=2", "to=7", "i64:1=2"}, /* as some exporters wrote it early */
      {"Cast", 5, "f32:1=1", "to=s:COMPLEX64", NULL},
      {"Cast", 6, "f32:1=1", "to=s:FLOAT", NULL},
      {"Cast", 5, "f32:1=1", "", NULL},
      {"Tile", 5, "f32:2x2=1,2,3,4 f32:=2 f32:=1", "", "f32:2x4=1,2,1,2,3,4,3,4"},
      {"Tile", 1, "f32:1x2=1,2 i64:1=3 i64:1=0", "", "f32:3x2=1,2,1,2,1,2"},
      {"Tile", 5, "f32:2=1,2 f32:=0 f32:=0", "", "f32:0"},
      {"Tile", 5, "f32:2=1,2 f32:=1.5 f32:=0", "", NULL},
      {"Tile", 5, "f32:2=1,2 f32:=2 f32:=1", "", NULL},
      {"Tile", 5, "f32:2=1,2 f32:2=1,2 f32:=0", "", NULL},
      {"Tile", 5, "f32:2=1,2 i64:1=2", "", NULL},
      {"Upsample", 1, "f32:1x1x1x2=1,2", "height_scale=f:2 width_scale=f:2 mode=s:nearest",
       "f32:1x1x2x4=1,1,2,2,1,1,2,2"},
      {"Upsample", 6, "f32:1x1x1x2=1,2", "height_scale=f:1 width_scale=f:2 mode=s:bilinear",
       "f32:1x1x1x4=1,1.5,2,2"},
      {"Upsample", 1, "f32:1x1x1x2=1,2", "height_scale=f:2", NULL},
      {"Upsample", 1, "f32:1x1x2=1,2", "height_scale=f:2 width_scale=f:2", NULL},
      {"LpPool", 1, "f32:1x1x3=1,-2,3", "p=f:1 kernel_shape=2,", "f32:1x1x2=3,5"},
      {"LpPool", 1, "f32:1x1x3=3,4,0", "kernel_shape=2,", "f32:1x1x2=5,4"},
      {"LpPool", 1, "f32:1x1x3=1,-2,3", "p=f:1.5 kernel_shape=2,", NULL},
      {"LpPool", 2, "f32:1x1x3=1,-2,3", "p=0 kernel_shape=2,", NULL},
      {"LpPool", 18, "f32:1x1x3=1,-2,3", "p=1 kernel_shape=2,", "f32:1x1x2=3,5"},
      {"LpPool", 18, "f32:1x1x3=1,-2,3", "p=f:1 kernel_shape=2,", NULL},
      {"LpPool", 1, "f32:1x1x3=1,-2,3", "p=1 kernel_shape=2,", NULL},
      {"Cast", 6, "f32:1=1", "to=s:INT64", NULL},
      {"GlobalLpPool", 1, "f32:1x1x3=1,-2,3", "p=f:1", "f32:1x1x1=6"},
      {"Split", 1, "f32:4=1,2,3,4", "axis=0 split=1,3", "f32:1=1 f32:3=2,3,4"},
      {"Split", 1, "f32:4=1,2,3,4", "", NULL},
      {"Split", 1, "f32:4=1,2,3,4 f32:2=1,3", "axis=0", NULL},
      {"BatchNormalization", 1, "f32:1x2=1,2 f32:2=2,2 f32:2=0,1 f32:2=0,0 f32:2=1,1",
       "epsilon=f:0 is_test=1 consumed_inputs=0,0,0,1,1", "f32:1x2=2,5"},
      {"BatchNormalization", 1, "f32:2x2=1,2,3,4 f32:2=2,1 f32:2=0,1 f32:2=0,0 f32:2=1,1",
       "epsilon=f:0 is_test=1 spatial=0", "f32:2x2=2,3,6,5"},
      {"BatchNormalization", 6, "f32:1x2=1,2 f32:2=2,2 f32:2=0,1 f32:2=0,0 f32:2=1,1", "epsilon=f:0",
       "f32:1x2=2,5"},
      {"BatchNormalization", 6, "f32:1x2 f32:2 f32:2 f32:2 f32:2", "is_test=0", NULL},
      {"InstanceNormalization", 1, "f32:1x1x2=1,3 f32:1=2 f32:1=1", "epsilon=f:0 consumed_inputs=0,0,0",
       "f32:1x1x2=-1,3"},
      {"Dropout", 1, "f32:2=1,2", "is_test=1 consumed_inputs=0,", "f32:2=1,2"},
      {"Dropout", 1, "f32:2=1,2", "", "f32:2=1,2"},
      {"Dropout", 6, "f32:2=1,2", "is_test=1", "f32:2=1,2 f32:2=1,1"},
      {"Dropout", 6, "f32:2=1,2", "is_test=0", NULL},
      {"ThresholdedRelu", 1, "f32:3=0.5,1,2", "alpha=f:1", "f32:3=0,0,2"},
      {"RNN", 1, "f32:1x1x1=1 f32:1x1x1=0.5 f32:1x1x1=0", "hidden_size=1 output_sequence=1",
       "f32:1x1x1x1=0.462117157 f32:1x1x1=0.462117157"},
      {"GRU", 1, "f32:1x1x1=1 f32:1x3x1=0,0,1 f32:1x3x1=0,0,0", "hidden_size=1",
       "f32:1x1x1x1=0.380797078 f32:1x1x1=0.380797078"},
      {"GRU", 3, "f32:1x1x1=1 f32:1x3x1=0,0,1 f32:1x3x1=0,0,0", "hidden_size=1 linear_before_reset=1",
       "f32:1x1x1x1=0.380797078 f32:1x1x1=0.380797078"},
      {"LSTM", 1, "f32:1x1x1=1 f32:1x4x1=0,0,0,1 f32:1x4x1=0,0,0,0", "hidden_size=1 output_sequence=0",
       "f32:1x1x1x1=0.181699485 f32:1x1x1=0.181699485 f32:1x1x1=0.380797078"},
      {"ConstantFill", 1, "", "shape=2,1 value=f:3 dtype=7", "i64:2x1=3,3"},
      {"ConstantFill", 1, "", "", "f32:=0"},
      {"ConstantFill", 9, "i64:2=2,1", "input_as_shape=1 extra_shape=2, value=f:0.5",
       "f32:2x1x2=0.5,0.5,0.5,0.5"},
      {"ConstantFill", 8, "f32:2x2", "dtype=9 value=f:1", "bool:2x2=1,1,1,1"},
      {"ConstantFill", 8, "f32:2x2", "shape=2,", NULL},
      {"ConstantFill", 8, "", "extra_shape=2,", NULL},
      {"ConstantFill", 8, "", "input_as_shape=1", NULL},
      {"ConstantFill", 8, "i64:1=-1", "input_as_shape=1", NULL},
      {"ConstantFill", 8, "i64:9=1,1,1,1,1,1,1,1,1", "input_as_shape=1", NULL},
      {"ConstantFill", 8, "", "shape=2, dtype=8", NULL},
      {"ConstantFill", 10, "", "shape=2,", NULL},
      /* Attributes that became inputs: a file of a newer opset that has them says two things. */
      {"Clip", 10, "f32:2=1,9", "max=f:6", "f32:2=1,6"},
      {"Clip", 11, "f32:2=1,9", "max=f:6", NULL},
      {"ReduceMean", 17, "f32:2x2=1,2,3,4", "axes=1, keepdims=0", "f32:2=1.5,3.5"},
      {"ReduceMean", 18, "f32:2x2=1,2,3,4", "axes=1, keepdims=0", NULL},
      {"Relu", 13, "f32:2=-1,2", "consumed_inputs=0,", "f32:2=0,2"},
      {"BatchNormalization", 9, "f32:1x2=1,2 f32:2=2,2 f32:2=0,1 f32:2=0,0 f32:2=1,1",
       "epsilon=f:0 spatial=1", "f32:1x2=2,5"},
  };
  CHECK_ALL(cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(formulas), cmocka_unit_test(pictures),
                                     cmocka_unit_test(first_forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
