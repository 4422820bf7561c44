/* Own cases for operators on arrays: elementwise, casts, movement, gathering, reductions, products and random
 * numbers. What the public suites leave out: dtypes, borders, old opsets, refusals. */
#include "ops/text_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void elementwise(void **state) {
  (void)state;
  static const text_case cases[] = {
      /* Integers wrap, and nothing traps. */
      {"Add", 14, "i8:2=127,-128 i8:2=1,-1", "", "i8:2=-128,127"},
      {"Mul", 14, "u16:1=65535 u16:1=65535", "", "u16:1=1"},
      {"Sub", 13, "u32:=0 u32:=1", "", "u32:=4294967295"},
      {"Div", 14, "i8:3=-128,7,-7 i8:3=-1,2,2", "", "i8:3=-128,3,-3"},
      {"Div", 13, "i64:2=-9223372036854775808,9 i64:=-1", "", "i64:2=-9223372036854775808,-9"},
      {"Div", 13, "i32:=1 i32:=0", "", NULL},
      {"Div", 14, "u8:2=1,2 u8:2=1,0", "", NULL},
      {"Div", 13, "f32:2=1,-1 f32:=0", "", "f32:2=inf,-inf"},
      {"Mod", 13, "i32:4=-7,7,-7,-2147483648 i32:4=3,-3,-3,-1", "", "i32:4=2,-2,-1,0"},
      {"Mod", 13, "i32:4=-7,7,-7,-2147483648 i32:4=3,-3,-3,-1", "fmod=1", "i32:4=-1,1,-1,0"},
      {"Mod", 13, "i8:=1 i8:=0", "", NULL},
      {"Mod", 13, "f32:=1 f32:=2", "", NULL},
      {"Mod", 28, "f32:5=-7,7,-7,inf,1 f32:5=3,-3,-3,2,0", "", "f32:5=2,-2,-1,nan,nan"},
      {"Mod", 28, "f64:3=5,-5,6 f64:3=inf,inf,-3", "", "f64:3=5,inf,0"},
      {"Mod", 28, "f16:2=-7,7 f16:=3", "fmod=1", "f16:2=-1,1"},
      {"Abs", 13, "i8:2=-128,-3", "", "i8:2=-128,3"},
      {"Neg", 13, "i64:1=-9223372036854775808", "", "i64:1=-9223372036854775808"},
      {"BitShift", 11, "u8:3=255,1,1 u8:3=8,7,255", "direction=s:LEFT", "u8:3=0,128,0"},
      {"BitShift", 11, "u64:1=1 u64:1=64", "direction=s:RIGHT", "u64:1=0"},
      {"BitShift", 11, "u8:1=1 u8:1=1", "direction=s:UP", NULL},
      {"BitShift", 11, "i8:1=1 i8:1=1", "direction=s:LEFT", NULL},
      {"BitShift", 28, "i8:5=-128,-3,5,-1,7 i8:5=7,1,1,8,-1", "direction=s:RIGHT", "i8:5=-1,-2,2,-1,0"},
      {"BitShift", 28, "i8:5=-128,-3,64,-1,7 i8:5=1,1,1,8,-1", "direction=s:LEFT", "i8:5=0,-6,-128,0,0"},
      {"BitShift", 28, "i64:2=-1,1 i64:2=63,63", "direction=s:LEFT",
       "i64:2=-9223372036854775808,-9223372036854775808"},
      {"BitCast", 26, "f32:2=1,-0.0", "to=6", "i32:2=1065353216,-2147483648"},
      {"BitCast", 26, "i8:1=-1", "to=2", "u8:1=255"},
      {"BitCast", 26, "f32:1=1", "to=7", NULL},
      {"BitCast", 26, "f32:1=1", "to=8", NULL},
      {"CumProd", 26, "i32:3=1,2,3 i64:=0", "", "i32:3=1,2,6"},
      {"CumProd", 26, "f32:2x2=1,2,3,4 i32:=-1", "exclusive=1 reverse=1", "f32:2x2=2,1,4,1"},
      {"BitwiseNot", 18, "i16:2=0,-1", "", "i16:2=-1,0"},
      {"Pow", 15, "i32:4=2,-1,2,3 i32:4=10,-3,-1,0", "", "i32:4=1024,-1,0,1"},
      {"Pow", 15, "i32:2=2,3 f32:=0.5", "", "i32:2=1,1"},
      {"Pow", 15, "f32:2=2,3 i64:=-1", "", "f32:2=0.5,0.333333333"},
      /* Exponents that f32 does not hold: element by element. None of the bases is an integer of 64 bits. */
      {"Pow", 15, "f32:4=18446744073709551616,inf,nan,1 f64:4=1,2,1,0.1", "",
       "f32:4=18446744073709551616,inf,nan,1"},
      /* NaN goes through. */
      {"Relu", 14, "f32:3=nan,-1,2", "", "f32:3=nan,0,2"},
      {"Celu", 12, "f16:3=nan,inf,-inf", "", "f16:3=nan,inf,-1"},
      {"Celu", 12, "f64:2=nan,3", "alpha=f:2", "f64:2=nan,3"},
      {"Max", 13, "f32:3=nan,1,2 f32:3=1,nan,3", "", "f32:3=nan,nan,3"},
      {"Min", 13, "f64:3=nan,1,2 f64:3=1,nan,3", "", "f64:3=nan,nan,2"},
      {"Clip", 13, "f32:3=nan,-9,9 f32:=-1 f32:=1", "", "f32:3=nan,-1,1"},
      {"Clip", 13, "i8:3=-128,0,127 - i8:=5", "", "i8:3=-128,0,5"},
      {"Clip", 6, "f32:3=-2,0,2", "max=f:1", "f32:3=-2,0,1"},
      {"Clip", 12, "u8:3=1,5,9 u8:=7 u8:=3", "", "u8:3=3,3,3"}, /* the upper bound wins */
      {"Clip", 6, "f32:2=5,nan", "min=f:2 max=f:1", "f32:2=1,nan"},
      /* A bound that is left out: the largest finite f32 before opset 11, none since. */
      {"Clip", 6, "f32:4=-inf,nan,1,inf", "", "f32:4=-3.4028234663852886e38,nan,1,3.4028234663852886e38"},
      {"Clip", 10, "f32:3=-inf,1,inf", "min=f:0", "f32:3=0,1,3.4028234663852886e38"},
      {"Clip", 6, "f32:3=-inf,1,inf", "min=f:-inf max=f:inf", "f32:3=-inf,1,inf"},
      {"Clip", 6, "f16:3=-inf,1,inf", "", "f16:3=-inf,1,inf"}, /* that bound is beyond f16 */
      {"Clip", 11, "f32:4=-inf,nan,1,inf", "", "f32:4=-inf,nan,1,inf"},
      {"Clip", 13, "f32:3=-inf,1,inf f32:=0", "", "f32:3=0,1,inf"},
      {"Clip", 13, "bf16:3=-inf,1,inf - bf16:=0", "", "bf16:3=-inf,0,0"},
      /* A bound that is no number bounds nothing. */
      {"Clip", 6, "f32:3=-1,nan,inf", "min=f:nan max=f:2", "f32:3=-1,nan,2"},
      {"Clip", 13, "f32:3=-1,nan,inf - f32:=nan", "", "f32:3=-1,nan,inf"},
      {"Clip", 13, "f16:3=-1,nan,inf f16:=nan f16:=1", "", "f16:3=-1,nan,1"},
      {"Clip", 13, "f64:2=-1,1 f64:=0 f64:=nan", "", "f64:2=0,1"},
      {"Sign", 13, "f32:4=nan,-0.5,0,9", "", "f32:4=nan,-1,0,1"},
      {"IsInf", 20, "f16:3=inf,-inf,1", "detect_negative=0", "bool:3=1,0,0"},
      {"IsNaN", 13, "bf16:2=nan,1", "", "bool:2=1,0"},
      {"Less", 13, "u64:2=18446744073709551615,1 u64:=2", "", "bool:2=0,1"},
      {"Equal", 13, "bool:2=1,0 bool:=1", "", "bool:2=1,0"},
      {"Softplus", 22, "f32:2=1000,-1000", "", "f32:2=1000,0"},
      {"Mish", 18, "f32:2=1000,-1000", "", "f32:2=1000,0"},
      {"Round", 11, "f32:5=0.5,1.5,2.5,-0.5,-2.5", "", "f32:5=0,2,2,0,-2"},
      {"Sum", 8, "f16:1=2048 f16:1=1 f16:1=1", "", "f16:1=2050"}, /* rounded once */
      {"Mean", 8, "f32:2x1=1,2 f32:3=1,2,3", "", "f32:2x3=1,1.5,2,1.5,2,2.5"},
      {"Add", 14, "f32:2x0 f32:2x1", "", "f32:2x0"},
      {"Add", 14, "f32:2x3 f32:2", "", NULL},
      {"Add", 14, "f32:2 f64:2", "", NULL},
      {"Where", 16, "bool:2x1=1,0 i8:=5 i8:3=1,2,3", "", "i8:2x3=5,5,5,1,2,3"},
      {"Where", 16, "bool:=1 i8:= f32:=", "", NULL},
      {"PRelu", 16, "f32:1x2x2=-1,-1,-1,-1 f32:2x1=2,3", "", "f32:1x2x2=-2,-2,-3,-3"},
      {"PRelu", 6, "f32:1x2x2=-1,-1,-1,-1 f32:2=2,3", "", "f32:1x2x2=-2,-2,-3,-3"},
      {"PRelu", 16, "f32:2 f32:2x2", "", NULL},
      {"PRelu", 6, "f32:2 f32:2x2", "", NULL},
      {"PRelu", 6, "f32:2=-1,2 f32:1x1=3", "", "f32:2=-3,2"},
      {"PRelu", 6, "f32:=-1 f32:1=3", "", "f32:=-3"},
      {"PRelu", 7, "f32:2 f32:1x1", "", NULL},
      /* Opset 6: operands are placed by attributes. */
      {"Add", 6, "f32:2x3=0,0,0,0,0,0 f32:2=1,2", "broadcast=1 axis=0", "f32:2x3=1,1,1,2,2,2"},
      {"Add", 6, "f32:2x3=0,0,0,0,0,0 f32:3=1,2,3", "broadcast=1", "f32:2x3=1,2,3,1,2,3"},
      {"Mul", 6, "f32:2=3,4 f32:1=2", "broadcast=1", "f32:2=6,8"},
      {"Add", 6, "f32:2x3 f32:3", "", NULL},
      {"Add", 6, "f32:2x3 f32:2", "broadcast=1 axis=1", NULL},
      {"Add", 6, "f32:2x3 f32:2x3", "broadcast=1 axis=1", NULL},
  };
  CHECK_ALL(cases);
}

static void casts(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Cast", 13, "f32:4=-1.7,-1,300,nan", "to=2", "u8:4=255,255,44,0"},
      {"Cast", 13, "f32:3=1e30,-1e30,nan", "to=6", "i32:3=2147483647,-2147483648,0"},
      {"Cast", 13, "f64:3=-1,1e30,9.5e18", "to=13",
       "u64:3=18446744073709551615,18446744073709551615,9500000000000000000"},
      /* rounded once: f32 would make ties of these */
      {"Cast", 13, "f64:4=1.000488281251,1.000488281249,-1.000488281251,65519.9999999", "to=10",
       "f16:4=1.0009765625,1,-1.0009765625,65504"},
      {"Cast", 13, "f64:2=1.003906250001,1.003906249999", "to=16", "bf16:2=1.0078125,1"},
      {"Cast", 13, "i64:2=16842753,-16842753", "to=16", "bf16:2=16908288,-16908288"},
      {"Cast", 13, "i32:1=16842752", "to=16", "bf16:1=16777216"},
      {"Cast", 13, "f32:3=nan,0.3,-0", "to=9", "bool:3=1,1,0"},
      {"Cast", 13, "i32:2=-1,511", "to=3", "i8:2=-1,-1"},
      {"Cast", 13, "i32:1=16777217", "to=1", "f32:1=16777216"},
      {"Cast", 13, "f32:3=65519.99,65520,1e-9", "to=10", "f16:3=65504,inf,0"},
      /* Narrow floats: ties to even, subnormals, the largest number or what lies beyond it. */
      {"Cast", 19, "f32:6=17,19,1000,-0.001953125,nan,-inf", "to=17",
       "f8e4m3fn:6=16,20,448,-0.001953125,nan,-448"},
      {"Reshape", 21, "i4:2x3=-8,7,0,1,-1,2 i64:2=3,2", "", "i4:3x2=-8,7,0,1,-1,2"},
      {"Transpose", 23, "f4e2m1:2x2=0.5,-6,1.5,2", "", "f4e2m1:2x2=0.5,1.5,-6,2"},
      {"Transpose", 21, "u4:2x3=15,1,2,3,4,5", "", "u4:3x2=15,3,1,4,2,5"},
      {"Flatten", 23, "f8e4m3fn:2x1x2=1,448,-2,0", "", "f8e4m3fn:2x2=1,448,-2,0"},
      {"Unsqueeze", 24, "f8e8m0:2=1,4 i64:1=0", "", "f8e8m0:1x2=1,4"},
      {"Identity", 25, "u2:3=0,3,2", "", "u2:3=0,3,2"},
      {"Shape", 25, "i2:2x3=1,1,1,1,1,1", "", "i64:2=2,3"},
      {"Cast", 19, "f32:3=465,-465,inf", "to=17 saturate=0", "f8e4m3fn:3=nan,nan,nan"},
      {"Cast", 19, "f32:3=464,0.0009765625,0", "to=17 saturate=0", "f8e4m3fn:3=448,0,0"},
      {"Cast", 19, "f32:3=1000,inf,-3", "to=18", "f8e4m3fnuz:3=240,240,-3"},
      {"Cast", 19, "f32:3=1e9,inf,-3", "to=19 saturate=0", "f8e5m2:3=inf,inf,-3"},
      {"Cast", 19, "f32:3=1e9,inf,-3", "to=20 saturate=0", "f8e5m2fnuz:3=nan,nan,-3"},
      {"Cast", 24, "f32:4=1,1.5,5,1e39", "to=24", "f8e8m0:4=1,2,8,1.7014118346046923e38"},
      {"Cast", 24, "f32:3=1.4,1.5,5", "to=24 round_mode=s:nearest", "f8e8m0:3=1,2,4"},
      {"Cast", 24, "f32:3=1.4,1.5,5", "to=24 round_mode=s:down", "f8e8m0:3=1,1,4"},
      {"Cast", 24, "f32:1=1", "to=24 round_mode=s:even", NULL},
      {"Cast", 23, "f32:5=0.25,0.75,5,100,-1.25", "to=23", "f4e2m1:5=0,1,4,6,-1"},
      {"Cast", 28, "f32:3=7.4,0.125,-100", "to=27", "f6e2m3:3=7.5,0.125,-7.5"},
      {"Cast", 28, "f32:3=27,0.0625,-100", "to=28", "f6e3m2:3=28,0.0625,-28"},
      {"Cast", 21, "i32:4=-9,7,8,16", "to=22", "i4:4=7,7,-8,0"},
      {"Cast", 25, "f32:3=3.9,1,2", "to=25", "u2:3=3,1,2"},
      {"Cast", 21, "i4:3=-8,7,-1", "to=1", "f32:3=-8,7,-1"},
      {"Cast", 19, "f8e5m2:3=57344,-2,nan", "to=10", "f16:3=57344,-2,nan"},
      {"CastLike", 21, "u4:2=15,0 i8:1=0", "", "i8:2=15,0"},
      {"BitCast", 26, "f4e2m1:2=-6,0.5", "to=22", "i4:2=-1,1"},
      {"BitCast", 26, "i4:2=-1,1", "to=23", "f4e2m1:2=-6,0.5"},
      {"BitCast", 26, "i4:2=-1,1", "to=2", NULL},
      {"QuantizeLinear", 21, "f32:5=-100,-1,0.6,1,100 f32:=0.5 i4:=1", "", "i4:5=-8,-1,2,3,7"},
      {"QuantizeLinear", 25, "f32:3=-1,1,5 f32:=1", "output_dtype=25", "u2:3=0,1,3"},
      {"QuantizeLinear", 19, "f32:2=1000,3 f32:=2 f8e4m3fn:=0", "saturate=0", "f8e4m3fn:2=nan,1.5"},
      {"QuantizeLinear", 23, "f32:2=1000,3 f32:=2", "output_dtype=23", "f4e2m1:2=6,1.5"},
      {"DequantizeLinear", 21, "u4:2x2=15,1,2,3 f32:2=0.5,2 u4:2=1,0", "axis=0", "f32:2x2=7,0,4,6"},
      {"DequantizeLinear", 19, "f8e5m2:2=-4,0.5 f32:=3", "", "f32:2=-12,1.5"},
      {"Cast", 13, "f32:2=1.00390625,1.01171875", "to=16", "bf16:2=1,1.015625"}, /* ties to even */
      {"Cast", 13, "bool:2=1,0", "to=11", "f64:2=1,0"},
      {"Cast", 13, "f32:1", "to=99", NULL},
      {"Cast", 13, "f32:1", "to=14", NULL},
      {"Cast", 13, "f32:1", "", NULL},
      {"CastLike", 15, "f32:2=1.9,-1.9 i16:0", "", "i16:2=1,-1"},
  };
  CHECK_ALL(cases);
}

static void movement(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Reshape", 14, "f32:2x3 i64:=3", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,2", "", "f32:3x2"},
      {"Reshape", 14, "f32:0x3 i64:2=0,-1", "", "f32:0x3"},
      {"Reshape", 14, "f32:0x3 i64:3=3,0,2", "allowzero=1", "f32:3x0x2"},
      {"Reshape", 14, "f32:0x3 i64:2=0,-1", "allowzero=1", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,-1", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-2,-3", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:3=2,3,0", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=4611686018427387904,4", "", NULL},
      {"Reshape", 14, "f32:2x3 i64:2=-1,4", "", NULL},
      {"Reshape", 4, "f32:2x3=1,2,3,4,5,6", "shape=3,2", "f32:3x2=1,2,3,4,5,6"},
      {"Flatten", 13, "f32:2x3x4", "axis=3", "f32:24x1"},
      {"Flatten", 13, "f32:2x3x4", "axis=4", NULL},
      {"Squeeze", 13, "f32:1x2 i64:1=1", "", NULL},
      {"Squeeze", 11, "f32:1x2x1", "axes=0,-1", "f32:2"},
      {"Squeeze", 11, "f32:1x2x1", "axes=0,-3", NULL},
      {"Unsqueeze", 13, "f32:2 i64:2=0,-4", "", NULL},
      {"Unsqueeze", 13, "f32:2 i64:2=2,0", "", "f32:1x2x1"},
      {"Unsqueeze", 13, "f32:1x1x1x1x1x1x1x1 i64:1=0", "", NULL},
      {"Shape", 15, "f32:2x3x4", "start=-9 end=-1", "i64:2=2,3"},
      {"Shape", 15, "f32:2x3x4", "start=2 end=1", "i64:0"},
      {"Transpose", 13, "f32:2x3", "perm=0,0", NULL},
      {"Transpose", 13, "f32:2x3", "perm=0,", NULL},
      {"Transpose", 13, "f16:0x3", "", "f16:3x0"},
      {"Concat", 13, "i8:2=1,2 i8:0 i8:1=3", "axis=-1", "i8:3=1,2,3"},
      {"Concat", 13, "f32:2x2 f32:3x3", "axis=0", NULL},
      {"Concat", 13, "f32:2 f64:2", "axis=0", NULL},
      {"Concat", 13, "f32:", "axis=0", NULL},
      {"Split", 18, "f32:5=1,2,3,4,5", "num_outputs=3", "f32:2=1,2 f32:2=3,4 f32:1=5"},
      {"Split", 13, "f32:4 i64:2=1,2", "", NULL},
      {"Split", 13, "f32:4 i64:1=-4", "", NULL},
      {"Split", 11, "f32:2x3=1,2,3,4,5,6", "axis=1 split=1,2", "f32:2x1=1,4 f32:2x2=2,3,5,6"},
      {"Slice", 13, "f32:4=1,2,3,4 i64:1=9223372036854775807 i64:1=-9223372036854775808 - i64:1=-2", "",
       "f32:2=4,2"},
      {"Slice", 13,
       "f32:4=1,2,3,4 i64:1=-9223372036854775808 i64:1=9223372036854775807 - i64:1=9223372036854775807", "",
       "f32:1=1"},
      {"Slice", 13, "f32:4=1,2,3,4 i64:1=3 i64:1=-9 - i64:1=-9223372036854775808", "", "f32:1=4"},
      {"Slice", 13, "f32:4=1,2,3,4 i64:1=-5 i64:1=-9 - i64:1=-2", "", "f32:1=1"},
      {"Slice", 13, "f32:0 i64:1=-5 i64:1=-9 - i64:1=-2", "", "f32:0"},
      {"Slice", 13, "f32:4 i64:1=0 i64:1=1 - i64:1=0", "", NULL},
      {"Slice", 13, "f32:4x4 i64:2=0,0 i64:2=1,1 i64:2=0,-2", "", NULL},
      {"Slice", 13, "f32:4 i64:1=0 i64:2=1,1", "", NULL},
      {"Slice", 9, "f32:2x3=1,2,3,4,5,6", "starts=-2, ends=9, axes=1,", "f32:2x2=2,3,5,6"},
      {"Tile", 13, "f32:2 i64:1=4611686018427387904", "", NULL},
      {"Tile", 13, "f32:2 i64:1=-1", "", NULL},
      {"Tile", 13, "i8:2x1=1,2 i64:2=1,3", "", "i8:2x3=1,1,1,2,2,2"},
      {"Tile", 13, "i8:2x1 i64:2=0,3", "", "i8:0x3"},
      {"Expand", 13, "f32:3x1 i64:2=2,4", "", NULL},
      {"Expand", 13, "f32:2=1,2 i64:2=2,1", "", "f32:2x2=1,2,1,2"},
      {"Expand", 13, "f32:1 i64:2=4611686018427387904,8", "", NULL},
      {"ConstantOfShape", 20, "i64:1=-1", "", NULL},
      {"ConstantOfShape", 20, "i64:2=4611686018427387904,8", "", NULL},
      {"ConstantOfShape", 20, "i64:1=4611686018427387904", "", NULL},
      {"ConstantOfShape", 20, "i64:0", "", "f32:=0"},
      {"Pad", 18, "i32:3=1,2,3 i64:2=4,5", "mode=s:reflect", "i32:12=1,2,3,2,1,2,3,2,1,2,3,2"},
      {"Pad", 18, "i32:1=7 i64:2=1,2", "mode=s:reflect", "i32:4=7,7,7,7"},
      {"Pad", 19, "i32:3=1,2,3 i64:2=2,4", "mode=s:wrap", "i32:9=2,3,1,2,3,1,2,3,1"},
      {"Pad", 18, "i32:3=1,2,3 i64:2=-1,2", "mode=s:edge", "i32:4=2,3,3,3"},
      {"Pad", 18, "i32:2x2=1,2,3,4 i64:2=1,0 i32:=9 i64:1=-1", "", "i32:2x3=9,1,2,9,3,4"},
      {"Pad", 18, "i32:2 i64:2=-3,0", "", NULL},
      {"Pad", 18, "i32:0 i64:2=1,0", "mode=s:edge", NULL},
      {"Pad", 18, "i32:2 i64:2=9223372036854775807,9223372036854775807", "", NULL},
      {"Pad", 18, "i32:2 i64:1=1", "", NULL},
      {"Pad", 18, "i32:2 i64:2=1,1", "mode=s:mirror", NULL},
      {"Pad", 13, "i32:2 i64:2=1,1", "mode=s:wrap", NULL},
      {"Pad", 2, "f32:2=1,2", "pads=1,0 value=f:5", "f32:3=5,1,2"},
      {"Trilu", 14, "i8:2x2=1,2,3,4 i64:=9223372036854775807", "upper=0", "i8:2x2=1,2,3,4"},
      {"Trilu", 14, "i8:2x2=1,2,3,4 i64:=-9223372036854775808", "upper=0", "i8:2x2=0,0,0,0"},
      {"Trilu", 14, "i8:4", "", NULL},
      {"EyeLike", 9, "f32:2x3", "k=-1 dtype=9", "bool:2x3=0,0,0,1,0,0"},
      {"EyeLike", 9, "f32:2x3", "k=9223372036854775807", "f32:2x3=0,0,0,0,0,0"},
      {"ReverseSequence", 10, "f32:2x2=1,2,3,4 i64:2=2,1", "", "f32:2x2=3,2,1,4"},
      {"ReverseSequence", 10, "f32:2x2 i64:2=3,1", "", NULL},
      {"ReverseSequence", 10, "f32:2x2 i64:3=1,1,1", "", NULL},
      {"Range", 11, "i32:=5 i32:=-1 i32:=-2", "", "i32:3=5,3,1"},
      {"Range", 11, "f32:=0 f32:=1 f32:=0", "", NULL},
      {"Range", 11, "i64:=-9223372036854775808 i64:=9223372036854775807 i64:=1", "", NULL},
      {"Range", 11, "f32:=0 f32:=inf f32:=1", "", NULL},
      {"Range", 27, "f16:=2048 f16:=2056 f16:=2", "", "f16:4=2048,2050,2052,2054"},
      {"Range", 27, "bf16:=0 bf16:=2 bf16:=1", "stash_type=16", NULL},
      {"Range", 11, "f16:=0 f16:=2 f16:=1", "", NULL},
      {"SpaceToDepth", 28, "u8:1x2x2x2=1,2,3,4,5,6,7,8", "blocksize=2 mode=s:CRD",
       "u8:1x8x1x1=1,2,3,4,5,6,7,8"},
      {"SpaceToDepth", 28, "u8:1x2x2x2=1,2,3,4,5,6,7,8", "blocksize=2", "u8:1x8x1x1=1,5,2,6,3,7,4,8"},
      {"Range", 11, "f32:=nan f32:=1 f32:=1", "", "f32:0"},
  };
  CHECK_ALL(cases);
}

static void gathering(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"Gather", 13, "f32:3=1,2,3 i64:2=-1,0", "", "f32:2=3,1"},
      {"Gather", 13, "f32:3 i64:1=3", "", NULL},
      {"Gather", 13, "f32:3 i64:1=-4", "", NULL},
      {"Gather", 13, "f32:0x2 i64:1=0", "", NULL},
      {"Gather", 13, "f32:2x0 i32:1=5", "", NULL},
      {"Gather", 13, "f32:3 f32:1=0", "", NULL},
      {"GatherElements", 13, "i8:2x2=1,2,3,4 i64:1x2=-1,0", "axis=0", "i8:1x2=3,2"},
      {"GatherElements", 13, "i8:2x2 i64:2x3", "axis=0", NULL},
      {"GatherElements", 13, "i8:2x2 i64:1x1=2", "axis=1", NULL},
      {"GatherND", 13, "f32:2x2=1,2,3,4 i64:1x2=-1,-2", "", "f32:1=3"},
      {"GatherND", 13, "f32:2x2 i64:1x3=0,0,0", "", NULL},
      {"GatherND", 13, "f32:2x2 i64:1x1=2", "", NULL},
      {"GatherND", 13, "f32:2x2 i64:3x1", "batch_dims=1", NULL},
      {"ScatterElements", 18, "f32:3=1,2,3 i64:3=0,0,-1 f32:3=5,4,9", "reduction=s:min", "f32:3=1,2,3"},
      {"ScatterElements", 16, "u8:2=200,1 i64:2=0,0 u8:2=100,1", "reduction=s:add", "u8:2=45,1"},
      {"ScatterElements", 16, "u8:2 i64:1=0 u8:1", "reduction=s:min", NULL}, /* came with opset 18 */
      {"ScatterElements", 18, "f32:2 i64:1=2 f32:1", "", NULL},
      {"ScatterElements", 18, "f32:2 i64:1=0 f32:2", "", NULL},
      {"ScatterElements", 18, "f32:2 i64:1=0 f64:1", "", NULL},
      {"ScatterND", 18, "i32:2x2=1,2,3,4 i64:2x1=1,1 i32:2x2=10,10,10,10", "reduction=s:mul",
       "i32:2x2=1,2,300,400"},
      {"ScatterND", 18, "i32:2x2 i64:1x1=-3 i32:1x2", "", NULL},
      {"ScatterND", 18, "i32:2x2 i64:1x1=0 i32:1x3", "", NULL},
      {"OneHot", 11, "f32:2=1.9,-4 i32:=3 i8:2=7,9", "", "i8:2x3=7,9,7,7,7,7"},
      {"OneHot", 11, "i64:1=0 i64:=-1 i8:2", "", NULL},
      {"Compress", 11, "i8:2x2=1,2,3,4 bool:1=1", "axis=1", "i8:2x1=1,3"},
      {"Compress", 11, "i8:2 bool:3=0,0,1", "axis=0", NULL},
      {"Compress", 11, "i8:2=1,2 bool:3=0,1,0", "axis=0", "i8:1=2"},
      {"NonZero", 13, "f32:2x2=0,-1,nan,0", "", "i64:2x2=0,1,1,0"},
      {"NonZero", 13, "bool:=1", "", "i64:0x1"},
      {"Unique", 11, "i32:5=3,1,3,2,1", "sorted=0", "i32:3=3,1,2 i64:3=0,1,3 i64:5=0,1,0,2,1 i64:3=2,2,1"},
      {"Shrink", 9, "u64:3=9223372036854775808,3,0", "bias=f:1", "u64:3=9223372036854775808,2,0"},
      {"Shrink", 9, "u8:2=1,3", "bias=f:2", "u8:2=255,1"},                      /* below 0 it wraps */
      {"Unique", 11, "i8:0x3", "axis=1", "i8:0x1 i64:1=0 i64:3=0,0,0 i64:1=3"}, /* all slices are alike */
      {"Unique", 11, "f32:0", "", "f32:0 i64:0 i64:0 i64:0"},
      {"Unique", 11, "i8:2x3=1,0,1,2,0,2", "axis=1", "i8:2x2=0,1,0,2 i64:2=1,0 i64:3=1,0,1 i64:2=1,2"},
      {"TopK", 11, "f32:5=1,3,3,nan,2 i64:1=3", "", "f32:3=nan,3,3 i64:3=3,1,2"},
      {"TopK", 11, "u64:3=18446744073709551615,1,2 i64:1=2", "largest=0", "u64:2=1,2 i64:2=1,2"},
      {"TopK", 11, "f32:2 i64:1=3", "", NULL},
      {"TopK", 11, "f32:2 i64:1=-1", "", NULL},
      {"TopK", 1, "f32:2x3=1,2,3,6,5,4", "k=1", "f32:2x1=3,6 i64:2x1=2,0"},
      {"ArgMax", 13, "i32:4=1,5,5,0", "select_last_index=1 keepdims=0", "i64:=2"},
      {"ArgMin", 13, "f32:2x2=1,0,0,1", "axis=-1", "i64:2x1=1,0"},
      {"ArgMax", 13, "f32:0", "", NULL},
      {"ArgMax", 13, "u64:2=1,18446744073709551615", "", "i64:1=1"},
  };
  CHECK_ALL(cases);
}

static void reductions_and_products(void **state) {
  (void)state;
  static const text_case cases[] = {
      {"ReduceSum", 13, "f32:2x2=1,2,3,4 i64:0", "noop_with_empty_axes=1", "f32:2x2=1,2,3,4"},
      {"ReduceSum", 13, "f32:2x2=1,2,3,4 i64:0", "", "f32:1x1=10"},
      {"ReduceSumSquare", 18, "f32:2=-2,3", "noop_with_empty_axes=1", "f32:2=4,9"},
      {"ReduceL1", 18, "i32:2=-2147483648,-3", "noop_with_empty_axes=1", "i32:2=-2147483648,3"},
      {"ReduceSum", 13, "f32:2x0 i64:1=1", "", "f32:2x1=0,0"},
      {"ReduceProd", 18, "i64:0", "keepdims=0", "i64:=1"},
      {"ReduceMax", 20, "i8:0", "keepdims=0", "i8:=-128"},
      {"ReduceMin", 20, "f32:0", "keepdims=0", "f32:=inf"},
      {"ReduceMax", 20, "bool:0", "keepdims=0", "bool:=0"},
      {"ReduceMin", 20, "bool:2=1,0", "keepdims=0", "bool:=0"},
      {"ReduceMax", 13, "f32:3=1,nan,2", "", "f32:1=nan"},
      {"ReduceMax", 18, "f32:19=1,2,3,4,5,6,7,8,9,10,11,nan,12,13,14,15,16,17,18", "", "f32:1=nan"},
      {"ReduceMax", 18, "f64:19=1,2,3,4,5,6,7,8,9,10,11,99,12,13,14,15,16,17,18", "", "f64:1=99"},
      {"ReduceMin", 18, "f64:19=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,nan", "", "f64:1=nan"},
      {"ReduceMin", 18, "i64:19=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,-18,3", "", "i64:1=-18"},
      {"ReduceSum", 13, "f64:19=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19", "", "f64:1=190"},
      {"ReduceMean", 18, "f32:19=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19", "", "f32:1=10"},
      {"CumSum", 14, "f64:2x3=1,2,3,4,5,6 i64:=0", "", "f64:2x3=1,2,3,5,7,9"},
      {"CumSum", 14, "f64:2x3=1,2,3,4,5,6 i64:=1", "exclusive=1 reverse=1", "f64:2x3=5,3,0,11,6,0"},
      {"CumSum", 14, "u64:3=18446744073709551615,2,3 i64:=0", "reverse=1", "u64:3=4,5,3"},
      {"ArgMax", 13, "f64:2x4=1,7,7,0,nan,2,nan,1", "axis=1 select_last_index=1", "i64:2x1=2,2"},
      {"ArgMin", 13, "i64:2x4=1,0,7,0,3,2,2,5", "axis=1", "i64:2x1=1,1"},
      {"ReduceMax", 18, "u64:2=1,18446744073709551615", "", "u64:1=18446744073709551615"},
      {"ReduceMean", 18, "i32:2=-3,-4", "", "i32:1=-3"},
      /* Of no elements: ONNX Runtime has 0 for the mean. */
      {"ReduceMean", 18, "f32:2x0 i64:1=1", "", "f32:2x1=nan,nan"},
      {"ReduceMax", 18, "f32:2x0 i64:1=1", "", "f32:2x1=-inf,-inf"},
      {"ReduceMin", 18, "i32:2x0 i64:1=1", "", "i32:2x1=2147483647,2147483647"},
      {"ReduceLogSumExp", 18, "f16:1x0 i64:1=1", "", "f16:1x1=-inf"},
      {"ReduceProd", 18, "f32:1x0 i64:1=1", "", "f32:1x1=1"},
      {"ReduceMean", 18, "f16:4=60000,60000,60000,60000", "", "f16:1=60000"},
      {"ReduceLogSumExp", 18, "f32:2=1000,1000", "", "f32:1=1000.6931763"},
      {"ReduceLogSumExp", 18, "f32:2=-inf,-inf", "", "f32:1=-inf"},
      /* -1.37 and 5.01, cut towards 0: a sum of exponentials that are cut would give -2 and 4. */
      {"ReduceLogSumExp", 13, "i64:4=-3,-3,-4,-2", "", "i64:1=-1"},
      {"ReduceLogSumExp", 13, "i32:4=3,4,3,4", "", "i32:1=5"},
      {"ReduceSum", 11, "f32:2x3=1,2,3,4,5,6", "axes=0,-1 keepdims=0", "f32:=21"},
      {"ReduceSum", 11, "f32:2x3", "axes=2,", NULL},
      {"ReduceSum", 11, "f32:2x3", "axes=1,-1", NULL},
      {"CumSum", 14, "i32:3=1,2,3 i32:=0", "reverse=1 exclusive=1", "i32:3=5,3,0"},
      {"CumSum", 14, "f32:3 i64:=1", "", NULL},
      {"CumSum", 14, "f32:3 i64:2=0,0", "", NULL},
      {"MatMul", 13, "f32:2x0 f32:0x2", "", "f32:2x2=0,0,0,0"},
      {"MatMul", 13, "i32:2x2=1,2,3,4 i32:2=1,-1", "", "i32:2=-1,-1"},
      {"MatMul", 13, "u32:1x1=65536 u32:1x1=65536", "", "u32:1x1=0"},
      {"MatMul", 13, "f16:1x3=2048,1,1 f16:3x1=1,1,1", "", "f16:1x1=2050"},
      {"MatMul", 13, "f32:2x3 f32:2x3", "", NULL},
      {"MatMul", 13, "f32: f32:2", "", NULL},
      {"MatMul", 13, "f32:2x2x2 f32:3x2x2", "", NULL},
      {"Gemm", 13, "f16:1x2=2048,0.5 f16:2x1=1,1 f16:=0.5", "", "f16:1x1=2048"},
      {"Gemm", 13, "f32:1x2=1,2 f32:1x2=3,4 f32:1=1", "transB=1 alpha=f:2 beta=f:3", "f32:1x1=25"},
      {"Gemm", 13, "i32:2x1=1,2 i32:1x2=3,4 i32:2x1=10,20", "", "i32:2x2=13,14,26,28"},
      {"Gemm", 13, "f32:2x3 f32:3x2 f32:3", "", NULL},
      {"Gemm", 13, "f32:2x3x1 f32:3x2", "", NULL},
      {"Gemm", 6, "f32:1x1=2 f32:1x1=3 f32:1=1", "broadcast=1", "f32:1x1=7"},
      {"MatMulInteger", 10, "u8:2x2=1,2,3,4 i8:2x1=1,-1 u8:2=1,3", "", "i32:2x1=-1,-1"},
      {"MatMulInteger", 10, "u8:2x2 i8:2x1 u8:3", "", NULL},
      {"Softmax", 11, "f32:2x1x2=0,0,0,0", "",
       "f32:2x1x2=0.5,0.5,0.5,0.5"}, /* rows of two: axis 1 on, flattened */
      {"Softmax", 11, "f32:2x2x1=0,0,0,0", "axis=0", "f32:2x2x1=0.25,0.25,0.25,0.25"},
      {"Softmax", 13, "f32:2x2x1=0,0,0,0", "axis=0", "f32:2x2x1=0.5,0.5,0.5,0.5"},
      {"Softmax", 13, "f64:2=1000,1000", "", "f64:2=0.5,0.5"},
      {"LogSoftmax", 13, "f32:2=1000,0", "", "f32:2=0,-1000"},
      {"Hardmax", 13, "f32:3=1,2,2", "", "f32:3=0,1,0"},
      {"Softmax", 13, "f32:2", "axis=1", NULL},
      /* f16: exponentials and their sum are rounded before they are divided; the whole of it would be 0.6904.
       */
      {"Softmax", 13, "f16:6=-2,-1,-0.5,1.75,0,-0.75", "",
       "f16:6=0.0162200927734375,0.044097900390625,0.07275390625,0.68994140625,0.11993408203125,0.056640625"},
      {"Einsum", 12, "i32:2x2=1,2,3,4", "equation=s:ii", "i32:=5"},
      {"Einsum", 12, "f32:2=1,2 f32:3=1,2,3", "equation=s:i,j", "f32:2x3=1,2,3,2,4,6"},
      {"Einsum", 12, "f32:2x0 f32:0x2", "equation=s:ij,jk->ik", "f32:2x2=0,0,0,0"},
      {"Einsum", 12, "f32:1x2x1=3,4 f32:2=1,10", "equation=s:...i,...->...", "f32:1x2=3,40"},
      {"Einsum", 12, "f32:2x3 f32:2x3", "equation=s:ij,jk->ik", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij->ik", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij->ii", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:i", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij,jk", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:i5", NULL},
      {"Einsum", 12, "f32:2x3", "equation=s:ij-", NULL},
      {"Det", 11, "f32:2x2=0,1,1,0", "", "f32:=-1"},
      {"Det", 11, "f64:0x0", "", "f64:=1"},
      {"Det", 11, "f32:2x3", "", NULL},
  };
  CHECK_ALL(cases);
}

/* Of one operand -0 stays -0, moved or summed up, as in ONNX Runtime; sums of products begin with 0. */
static void einsum_zeros(void **state) {
  (void)state;
  static const struct {
    text_case text;
    bool minus;
  } cases[] = {{{"Einsum", 12, "f32:1x2=-0,-0", "equation=s:ij->ji", ""}, true},
               {{"Einsum", 12, "f32:1x2=-0,-0", "equation=s:ij->i", ""}, true},
               {{"Einsum", 12, "f32:1x2=-0,0", "equation=s:ij->i", ""}, false},
               {{"Einsum", 12, "f32:1x0", "equation=s:ij->i", ""}, false},
               {{"Einsum", 12, "f32:1x2=-0,-0 f32:1x2=1,1", "equation=s:ij,ij->i", ""}, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_case c;
    assert_int_equal(text_run(&c, &cases[i].text, 1), HONE_OK);
    if (op_get(&c.out[0], 0) != 0 || !signbit(op_get(&c.out[0], 0)) == cases[i].minus)
      fail_msg("case %zu gives %g", i, op_get(&c.out[0], 0));
    op_end(&c);
  }
}

/* Draws with a seed repeat; their mean and variance are those of the distribution. */
static void random_numbers(void **state) {
  (void)state;
  op_case a, b;
  text_case normal = {"RandomNormal", 1, "", "shape=20000, seed=f:3 mean=f:2 scale=f:0.5", ""};
  assert_int_equal(text_run(&a, &normal, 1), HONE_OK);
  assert_int_equal(text_run(&b, &normal, 1), HONE_OK);
  assert_memory_equal(a.out[0].data, b.out[0].data, 20000 * sizeof(float));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 20000; i++) {
    double v = op_get(&a.out[0], i) - 2;
    sum += v;
    squares += v * v;
  }
  /* Five standard errors: 0.5 / sqrt(20000), and 0.25 sqrt(2 / 20000). */
  assert_true(fabs(sum / 20000) < 5 * 0.0036);
  assert_true(fabs(squares / 20000 - 0.25) < 5 * 0.0025);
  op_end(&a);
  op_end(&b);
}

/* Integers of more bits than f64 has: the last one decides, and once. */
static void wide_integers_round_once(void **state) {
  (void)state;
  static const struct {
    hone_dtype from;
    uint64_t v[3];
    double want[3];
  } cases[] = {
      {HONE_DTYPE_I64,
       {(1ull << 60) + (1ull << 52) + 1, 0 - ((1ull << 60) + (1ull << 52) + 1), (1ull << 60) + (1ull << 52)},
       {0x1.02p60, -0x1.02p60, 0x1p60}},
      {HONE_DTYPE_U64,
       {(1ull << 63) + (1ull << 55) + 1, (1ull << 63) + (1ull << 55), UINT64_MAX},
       {0x1.02p63, 0x1p63, 0x1p64}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_case c;
    op_begin(&c, "Cast", 13);
    hone_tensor *x = op_in(&c, cases[i].from, "3", NULL, 7);
    memcpy(x->data, cases[i].v, sizeof cases[i].v);
    op_attrs(&c, "to=16");
    assert_int_equal(op_run(&c, 1), HONE_OK);
    op_expect(&c, 0, HONE_DTYPE_BF16, "3", cases[i].want, 0);
    op_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wide_integers_round_once),
      cmocka_unit_test(elementwise),
      cmocka_unit_test(casts),
      cmocka_unit_test(movement),
      cmocka_unit_test(gathering),
      cmocka_unit_test(reductions_and_products),
      cmocka_unit_test(einsum_zeros),
      cmocka_unit_test(random_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
