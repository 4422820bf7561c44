/* Operators that ONNX had on trial until opset 9: their formulas, as ONNX Runtime 1.32 has them. */
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(formulas), cmocka_unit_test(pictures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
