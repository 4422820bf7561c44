/* The operators on codes of ONNX Runtime's own domain: its answers (onnxruntime 1.32, CPU) on small tensors,
 * and what is refused. Codes may differ by one where a result lies at the middle between two. */
#include "ops/op_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define V(...) ((const double[]){__VA_ARGS__})

typedef struct operand {
  hone_dtype dtype; /* NONE: left out */
  const char *dims;
  const double *values;
} operand;

typedef struct answer {
  const char *op, *attrs;
  uint32_t n_in;
  operand in[OP_CASE_MAX];
  uint32_t n_out;
  operand out[2];
} answer;

static const answer answers[] = {
    {"QLinearAdd",
     "",
     8,
     {{HONE_DTYPE_U8, "2x5", V(34, 32, 204, 127, 151, 153, 182, 7, 124, 37)},
      {HONE_DTYPE_F32, "", V(0.0529999994)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_U8, "2x5", V(102, 237, 140, 18, 138, 33, 193, 242, 250, 159)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_U8, "", V(100)},
      {HONE_DTYPE_F32, "", V(0.0700000003)},
      {HONE_DTYPE_U8, "", V(131)}},
     1,
     {{HONE_DTYPE_U8, "2x5", V(67, 125, 212, 100, 171, 126, 219, 108, 200, 94)}}},
    {"QLinearMul",
     "",
     8,
     {{HONE_DTYPE_U8, "2x3x2", V(222, 94, 37, 130, 113, 169, 254, 70, 219, 35, 89, 201)},
      {HONE_DTYPE_F32, "", V(0.0529999994)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_U8, "3x1", V(63, 171, 117)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_U8, "", V(255)},
      {HONE_DTYPE_F32, "", V(0.0713)},
      {HONE_DTYPE_U8, "", V(3)}},
     1,
     {{HONE_DTYPE_U8, "2x3x2", V(0, 118, 164, 0, 25, 0, 0, 224, 0, 168, 102, 0)}}},
    {"QLinearSigmoid",
     "",
     5,
     {{HONE_DTYPE_U8, "9", V(131, 240, 209, 214, 140, 251, 251, 34, 52)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_U8, "", V(128)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_U8, "", V(0)}},
     1,
     {{HONE_DTYPE_U8, "9", V(139, 255, 254, 255, 172, 255, 255, 1, 3)}}},
    {"QLinearLeakyRelu",
     "alpha=f:0.1",
     5,
     {{HONE_DTYPE_U8, "9", V(78, 141, 210, 123, 251, 90, 237, 151, 184)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_U8, "", V(100)},
      {HONE_DTYPE_F32, "", V(0.0511000007)},
      {HONE_DTYPE_U8, "", V(80)}},
     1,
     {{HONE_DTYPE_U8, "9", V(77, 128, 209, 107, 255, 79, 241, 140, 179)}}},
    {"QLinearLeakyRelu",
     "",
     5,
     {{HONE_DTYPE_U8, "9", V(60, 151, 205, 226, 222, 247, 32, 199, 119)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_U8, "", V(250)},
      {HONE_DTYPE_F32, "", V(0.0511000007)},
      {HONE_DTYPE_U8, "", V(80)}},
     1,
     {{HONE_DTYPE_U8, "9", V(78, 79, 79, 80, 80, 80, 77, 79, 78)}}},
    {"QLinearConcat",
     "axis=1",
     8,
     {{HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_U8, "2x2", V(175, 70, 3, 21)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_U8, "2x3", V(249, 229, 77, 110, 61, 37)},
      {HONE_DTYPE_F32, "", V(0.109999999)},
      {HONE_DTYPE_U8, "", V(200)}},
     1,
     {{HONE_DTYPE_U8, "2x5", V(175, 70, 228, 184, 0, 3, 21, 0, 0, 0)}}},
    {"QLinearAveragePool",
     "kernel_shape=2,2 pads=0,1,0,1 strides=1,2 count_include_pad=1",
     5,
     {{HONE_DTYPE_U8, "1x2x3x4",
       V(219, 172, 19, 51, 144, 230, 254, 55, 156, 8, 44, 51, 113, 88, 186, 120, 86, 231, 160, 178, 190, 86,
         228, 4)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_F32, "", V(0.0313000008)},
      {HONE_DTYPE_U8, "", V(110)}},
     1,
     {{HONE_DTYPE_U8, "1x2x2x3", V(159, 188, 56, 134, 132, 56, 94, 184, 133, 124, 200, 87)}}},
    {"QLinearGlobalAveragePool",
     "",
     5,
     {{HONE_DTYPE_U8, "1x2x3x3",
       V(127, 6, 5, 214, 2, 119, 109, 32, 165, 189, 252, 50, 236, 15, 36, 153, 222, 229)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_F32, "", V(0.0109999999)},
      {HONE_DTYPE_U8, "", V(110)}},
     1,
     {{HONE_DTYPE_U8, "1x2x1x1", V(0, 255)}}},
    {"QLinearSoftmax",
     "axis=1 opset=13",
     5,
     {{HONE_DTYPE_U8, "2x3x2", V(103, 250, 94, 240, 128, 87, 239, 111, 198, 80, 255, 191)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_U8, "", V(0)}},
     1,
     {{HONE_DTYPE_U8, "2x3x2", V(50, 159, 32, 97, 174, 0, 76, 5, 10, 1, 170, 250)}}},
    {"QLinearSoftmax",
     "axis=1 opset=12",
     5,
     {{HONE_DTYPE_U8, "2x3x2", V(224, 10, 27, 17, 136, 103, 250, 62, 43, 216, 77, 189)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_U8, "", V(0)}},
     1,
     {{HONE_DTYPE_U8, "2x3x2", V(252, 0, 0, 0, 3, 1, 208, 0, 0, 38, 0, 10)}}},
    {"QLinearWhere",
     "",
     9,
     {{HONE_DTYPE_BOOL, "2x1", V(1, 0)},
      {HONE_DTYPE_U8, "3", V(74, 139, 20)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_U8, "2x1", V(169, 234)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_U8, "", V(100)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_U8, "", V(110)}},
     1,
     {{HONE_DTYPE_U8, "2x3", V(72, 126, 27, 179, 179, 179)}}},
    {"MatMulIntegerToFloat",
     "",
     7,
     {{HONE_DTYPE_U8, "2x3", V(177, 225, 199, 145, 237, 122)},
      {HONE_DTYPE_I8, "3x2", V(-90, 14, 32, -83, -92, 41)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_F32, "2", V(0.0199999996, 0.0109999999)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "2", V(-15, -5)},
      {HONE_DTYPE_F32, "2", V(1, -0.5)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(-2.25379992, -1.64608991, 3.08199978, -3.3244698)}}},
    {"QGemm",
     "transA=1 transB=1",
     9,
     {{HONE_DTYPE_U8, "3x2", V(201, 175, 229, 42, 194, 138)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "4x3", V(-119, -110, -36, 35, -87, 11, 127, -92, -92, 119, -66, 95)},
      {HONE_DTYPE_F32, "4", V(0.0199999996, 0.0109999999, 0.0130000003, 0.0299999993)},
      {HONE_DTYPE_I8, "4", V(0, 0, 0, 0)},
      {HONE_DTYPE_I32, "4", V(100, -7, 1000, 3)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_U8, "", V(120)}},
     1,
     {{HONE_DTYPE_U8, "2x4", V(0, 56, 48, 255, 150, 218, 255, 255)}}},
    {"QGemm",
     "alpha=f:0.5",
     6,
     {{HONE_DTYPE_U8, "2x3", V(91, 193, 15, 161, 222, 86)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "3x2", V(34, -73, -88, -128, -1, 5)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_I8, "", V(3)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(-2.13659978, -2.27069998, -2.36249995, -4.96379995)}}},
    {"QLinearAdd",
     "",
     8,
     {{HONE_DTYPE_I8, "2x5", V(-108, -70, 28, -35, -69, -127, -119, 35, -99, 88)},
      {HONE_DTYPE_F32, "", V(0.0529999994)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "2x5", V(14, -64, 35, -87, -45, -1, 36, -93, -38, -105)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_I8, "", V(-28)},
      {HONE_DTYPE_F32, "", V(0.0700000003)},
      {HONE_DTYPE_I8, "", V(3)}},
     1,
     {{HONE_DTYPE_I8, "2x5", V(-54, -60, 58, -44, -51, -75, -53, 7, -70, 42)}}},
    {"QLinearMul",
     "",
     8,
     {{HONE_DTYPE_I8, "2x3x2", V(-95, -71, -48, 104, -27, -101, 105, 17, -99, -107, -106, 105)},
      {HONE_DTYPE_F32, "", V(0.0529999994)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "3x1", V(15, 46, 118)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_I8, "", V(127)},
      {HONE_DTYPE_F32, "", V(0.0713)},
      {HONE_DTYPE_I8, "", V(-125)}},
     1,
     {{HONE_DTYPE_I8, "2x3x2", V(100, 38, -50, -128, -121, -106, -128, -128, 45, 60, -105, -128)}}},
    {"QLinearSigmoid",
     "",
     5,
     {{HONE_DTYPE_I8, "9", V(-26, 104, -25, 51, 83, -111, 59, 78, 120)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_I8, "", V(0)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_I8, "", V(-128)}},
     1,
     {{HONE_DTYPE_I8, "9", V(-84, 127, -81, 117, 126, -128, 121, 126, 127)}}},
    {"QLinearLeakyRelu",
     "alpha=f:0.1",
     5,
     {{HONE_DTYPE_I8, "9", V(46, -4, -92, 68, -9, 78, -116, -40, 77)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_I8, "", V(-28)},
      {HONE_DTYPE_F32, "", V(0.0511000007)},
      {HONE_DTYPE_I8, "", V(-48)}},
     1,
     {{HONE_DTYPE_I8, "9", V(39, -20, -56, 65, -26, 76, -58, -49, 75)}}},
    {"QLinearLeakyRelu",
     "",
     5,
     {{HONE_DTYPE_I8, "9", V(28, 55, 23, 77, 84, 66, 41, -60, -109)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_I8, "", V(122)},
      {HONE_DTYPE_F32, "", V(0.0511000007)},
      {HONE_DTYPE_I8, "", V(-48)}},
     1,
     {{HONE_DTYPE_I8, "9", V(-49, -49, -49, -49, -48, -49, -49, -50, -51)}}},
    {"QLinearConcat",
     "axis=1",
     8,
     {{HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "2x2", V(74, -39, -65, -128)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "2x3", V(-93, -119, -29, -53, -1, 18)},
      {HONE_DTYPE_F32, "", V(0.109999999)},
      {HONE_DTYPE_I8, "", V(72)}},
     1,
     {{HONE_DTYPE_I8, "2x5", V(74, -39, -128, -128, -128, -65, -128, -128, -128, -127)}}},
    {"QLinearAveragePool",
     "kernel_shape=2,2 pads=0,1,0,1 strides=1,2 count_include_pad=1",
     5,
     {{HONE_DTYPE_I8, "1x2x3x4",
       V(-55, 8, 27, 44, 26, -120, -67, 75, 31, -53, -37, 109, 60, -33, -54, -95, 76, 33, -22, 49, 13, 8, 44,
         67)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_F32, "", V(0.0313000008)},
      {HONE_DTYPE_I8, "", V(-18)}},
     1,
     {{HONE_DTYPE_I8, "1x2x2x3", V(-23, -66, 36, 11, -116, 62, 43, -36, -30, 24, 20, 35)}}},
    {"QLinearGlobalAveragePool",
     "",
     5,
     {{HONE_DTYPE_I8, "1x2x3x3",
       V(65, -103, -52, -34, 37, 94, -41, -1, 63, -79, -30, -79, -89, 49, 96, -90, 48, 49)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_F32, "", V(0.0109999999)},
      {HONE_DTYPE_I8, "", V(-18)}},
     1,
     {{HONE_DTYPE_I8, "1x2x1x1", V(33, -45)}}},
    {"QLinearSoftmax",
     "axis=1 opset=13",
     5,
     {{HONE_DTYPE_I8, "2x3x2", V(-101, 1, 96, 86, -33, 97, -105, 63, 30, -126, -12, -31)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_I8, "", V(-128)}},
     1,
     {{HONE_DTYPE_I8, "2x3x2", V(-128, -127, 127, -35, -128, 33, -128, 126, 100, -128, -100, -126)}}},
    {"QLinearSoftmax",
     "axis=1 opset=12",
     5,
     {{HONE_DTYPE_I8, "2x3x2", V(-19, -62, 90, 83, -93, 67, 29, -81, -23, -57, 7, -95)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_F32, "", V(0.00390625)},
      {HONE_DTYPE_I8, "", V(-128)}},
     1,
     {{HONE_DTYPE_I8, "2x3x2", V(-127, -128, -2, -39, -128, -88, 51, -127, -115, -126, -68, -128)}}},
    {"QLinearWhere",
     "",
     9,
     {{HONE_DTYPE_BOOL, "2x1", V(1, 0)},
      {HONE_DTYPE_I8, "3", V(-1, -99, -94)},
      {HONE_DTYPE_F32, "", V(0.0500000007)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "2x1", V(89, 3)},
      {HONE_DTYPE_F32, "", V(0.0309999995)},
      {HONE_DTYPE_I8, "", V(-28)},
      {HONE_DTYPE_F32, "", V(0.0599999987)},
      {HONE_DTYPE_I8, "", V(-18)}},
     1,
     {{HONE_DTYPE_I8, "2x3", V(-12, -94, -90, -2, -2, -2)}}},
    {"MatMulIntegerToFloat",
     "",
     7,
     {{HONE_DTYPE_I8, "2x3", V(-55, 92, -43, -85, 102, -126)},
      {HONE_DTYPE_I8, "3x2", V(113, -111, 78, -11, -96, 121)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_F32, "2", V(0.0199999996, 0.0109999999)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "2", V(-19, -117)},
      {HONE_DTYPE_F32, "2", V(1, -0.5)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(4.71459961, 0.156039953, 6.75519991, -6.07237959)}}},
    {"QGemm",
     "transA=1 transB=1",
     9,
     {{HONE_DTYPE_I8, "3x2", V(56, 125, -89, 9, 109, -98)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "4x3", V(74, -21, -115, -75, 91, 54, 98, 10, -95, -55, -52, -63)},
      {HONE_DTYPE_F32, "4", V(0.0199999996, 0.0109999999, 0.0130000003, 0.0299999993)},
      {HONE_DTYPE_I8, "4", V(0, 0, 0, 0)},
      {HONE_DTYPE_I32, "4", V(100, -7, 1000, 3)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_I8, "", V(-8)}},
     1,
     {{HONE_DTYPE_I8, "2x4", V(-128, -72, -68, -128, 127, -128, 127, -84)}}},
    {"QGemm",
     "alpha=f:0.5",
     6,
     {{HONE_DTYPE_I8, "2x3", V(-108, 93, -104, 68, 55, -17)},
      {HONE_DTYPE_F32, "", V(0.0299999993)},
      {HONE_DTYPE_I8, "", V(-8)},
      {HONE_DTYPE_I8, "3x2", V(32, -25, 6, 60, -11, 120)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_I8, "", V(3)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(-0.375899971, -0.80249995, 0.755699992, 0.122999996)}}},
    {"DynamicQuantizeMatMul",
     "",
     5,
     {{HONE_DTYPE_F32, "2x3",
       V(-0.943264425, 0.825597286, 1.66604137, -0.0252051037, 1.09179091, -0.263980657)},
      {HONE_DTYPE_I8, "3x2", V(-65, -72, 85, -30, 69, 61)},
      {HONE_DTYPE_F32, "2", V(0.0199999996, 0.0109999999)},
      {HONE_DTYPE_I8, "2", V(49, 28)},
      {HONE_DTYPE_F32, "2", V(1, -0.5)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(4.4103117, 0.612188458, 1.72855914, -1.27260017)}}},
    {"DynamicQuantizeMatMul",
     "",
     3,
     {{HONE_DTYPE_F32, "2x3",
       V(0.302224249, 0.572556257, -0.863407552, -1.47683406, -0.22125417, -0.211060539)},
      {HONE_DTYPE_U8, "3x2", V(76, 104, 237, 190, 173, 93)},
      {HONE_DTYPE_F32, "", V(0.0199999996)}},
     1,
     {{HONE_DTYPE_F32, "2x2", V(0.193526745, 1.20407712, -4.03737926, -4.31963253)}}},
    {"QAttention",
     "num_heads=2",
     8,
     {{HONE_DTYPE_U8, "2x2x2", V(2, 39, 80, 147, 223, 22, 14, 169)},
      {HONE_DTYPE_I8, "2x6", V(-67, 79, 20, 106, -13, -14, 71, -98, -74, 103, -92, 94)},
      {HONE_DTYPE_F32, "6",
       V(-0.620322764, -0.185968101, 0.182313755, 0.378714085, 0.110695884, -0.169020206)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_NONE, NULL, NULL},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)}},
     1,
     {{HONE_DTYPE_F32, "2x2x2",
       V(0.927359521, -0.716739416, 1.18713713, -1.15071106, -0.458210707, -2.26737189, 1.61979282,
         1.0241394)}}},
    {"QAttention",
     "num_heads=1 unidirectional=1",
     9,
     {{HONE_DTYPE_U8, "2x2x2", V(65, 40, 56, 239, 180, 125, 142, 84)},
      {HONE_DTYPE_I8, "2x6", V(12, -85, -113, 24, 15, -26, -11, -96, 88, -120, -6, -28)},
      {HONE_DTYPE_F32, "6",
       V(0.353086382, 0.044592496, 0.0881764665, 0.162239701, -0.317150652, -0.212768063)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_NONE, NULL, NULL},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)},
      {HONE_DTYPE_F32, "2x2x1x1x2",
       V(1.54308057, -1.24976707, 0.503425062, -0.0161755737, -1.19366574, 1.21944964, 0.347887605,
         -1.16679823)}},
     2,
     {{HONE_DTYPE_F32, "2x2x2",
       V(-0.255204588, 0.658654332, -0.797200084, -0.22040239, 0.169096306, -0.990260363, 0.0307621919,
         -0.679927766)},
      {HONE_DTYPE_F32, "2x2x1x3x2",
       V(1.54308057, -1.24976707, 0.0581764653, 1.95323968, 3.57397652, -3.05596018, 0.503425062,
         -0.0161755737, -1.24482346, 0.265239716, -1.02862346, 1.14583969, -1.19366574, 1.21944964,
         -0.251150668, 0.65623188, -0.706950665, -0.60136807, 0.347887605, -1.16679823, -0.208150655,
         -0.617768049, -0.193950653, -0.111568063)}}},
    {"QAttention",
     "num_heads=1",
     8,
     {{HONE_DTYPE_U8, "2x2x2", V(218, 122, 240, 134, 151, 101, 148, 102)},
      {HONE_DTYPE_I8, "2x6", V(17, -118, -112, 76, 91, -66, -124, -121, 71, -9, -60, 55)},
      {HONE_DTYPE_F32, "6",
       V(-0.153887361, -0.474372357, -0.0671525076, -0.111298859, 0.0457195267, -0.34357518)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_I32, "2", V(1, 2)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)}},
     1,
     {{HONE_DTYPE_F32, "2x2x2",
       V(1.7053194, -1.71517515, 1.7053194, -1.71517515, 0.792835355, -0.94683665, 0.792892039,
         -0.946882844)}}},
    {"QAttention",
     "num_heads=1",
     8,
     {{HONE_DTYPE_U8, "2x2x2", V(183, 135, 89, 221, 5, 106, 187, 201)},
      {HONE_DTYPE_I8, "2x6", V(-65, -124, 122, -122, 78, 25, -128, -71, -82, -111, 23, -96)},
      {HONE_DTYPE_F32, "6",
       V(0.490571469, -0.211439222, 0.052349858, 0.873936415, -0.229668424, -0.271150053)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_I32, "4", V(2, 2, 1, 0)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)}},
     1,
     {{HONE_DTYPE_F32, "2x2x2",
       V(-0.318668425, -2.43534994, -0.318668425, -2.43534994, -1.95889747, -0.448417932, 1.04005015,
         -1.63931751)}}},
    {"QAttention",
     "num_heads=2 unidirectional=1",
     8,
     {{HONE_DTYPE_U8, "2x2x2", V(182, 0, 100, 98, 81, 81, 215, 99)},
      {HONE_DTYPE_I8, "2x6", V(26, -115, 68, 13, -34, 31, 66, 63, 91, 117, 67, -38)},
      {HONE_DTYPE_F32, "6",
       V(-0.0426050723, -0.262527168, 0.186678752, -0.0519790426, 0.579808712, 0.279370666)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_I32, "2x2", V(1, 0, 1, 1)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)}},
     1,
     {{HONE_DTYPE_F32, "2x2x2",
       V(-1.39179122, 1.63377059, -1.39179122, 1.63377059, 0.400408715, 0.411970675, -0.0515933931,
         0.494235158)}}},
    {"QAttention",
     "num_heads=2",
     8,
     {{HONE_DTYPE_U8, "2x2x2", V(60, 210, 195, 234, 188, 32, 3, 4)},
      {HONE_DTYPE_I8, "2x6", V(121, -78, 87, -23, 91, 48, -112, -16, 42, 3, -91, 66)},
      {HONE_DTYPE_F32, "6",
       V(-0.237413049, -0.169797689, -0.190814033, -0.837707162, 0.30505386, 0.169943273)},
      {HONE_DTYPE_F32, "", V(0.0199999996)},
      {HONE_DTYPE_F32, "", V(0.00999999978)},
      {HONE_DTYPE_I32, "2x2x2", V(1, 0, 1, 1, 0, 1, 1, 0)},
      {HONE_DTYPE_U8, "", V(120)},
      {HONE_DTYPE_I8, "", V(5)}},
     1,
     {{HONE_DTYPE_F32, "2x2x2",
       V(-2.45494604, 0.751943231, -2.34686232, 1.92946053, 0.51985383, -2.2514565, 3.16425395,
         -0.318856716)}}},
};

static void begin(op_case *c, const answer *a, char *name, size_t room) {
  snprintf(name, room, "com.microsoft.%s", a->op);
  op_begin(c, name, 17);
  for (uint32_t k = 0; k < a->n_in; k++)
    if (a->in[k].dtype == HONE_DTYPE_NONE)
      op_skip(c);
    else
      op_in(c, a->in[k].dtype, a->in[k].dims, a->in[k].values, 1);
  op_attrs(c, a->attrs);
}

static void as_onnxruntime(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    const answer *a = &answers[i];
    char name[64];
    op_case c;
    begin(&c, a, name, sizeof name);
    if (op_run(&c, a->n_out) != HONE_OK) fail_msg("%s (%zu): %s", a->op, i, c.error.what);
    for (uint32_t k = 0; k < a->n_out; k++) {
      const operand *o = &a->out[k];
      const int64_t n = hone_desc_count(&c.out[k].desc);
      int64_t far = 0;
      op_expect(&c, k, o->dtype, o->dims, NULL, 0);
      for (int64_t j = 0; j < n; j++) {
        const double off = op_get(&c.out[k], j) - o->values[j];
        if (off > 1e-5 || off < -1e-5) far++;
        if (off > 1 || off < -1 || (off != 0 && hone_dtype_is_float(o->dtype) && (off > 1e-5 || off < -1e-5)))
          fail_msg("%s (%zu): element %lld is %g, not %g", a->op, i, (long long)j, op_get(&c.out[k], j),
                   o->values[j]);
      }
      if (far * 8 > n)
        fail_msg("%s (%zu): %lld of %lld codes differ", a->op, i, (long long)far, (long long)n);
    }
    op_end(&c);
  }
}

/* Shapes that are not known beforehand flow through, and dtypes come out all the same. */
static void unknown_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
    for (int rank = 0; rank < 2; rank++) {
      const answer *a = &answers[i];
      char name[64];
      op_case c;
      begin(&c, a, name, sizeof name);
      const uint32_t all = (1u << a->n_in) - 1;
      if (op_infer(&c, a->n_out, rank ? 0 : all, rank ? all : 0, 0) != HONE_OK)
        fail_msg("%s (%zu): %s", a->op, i, c.error.what);
      assert_int_equal(c.out[0].desc.dtype, a->out[0].dtype);
      assert_false(hone_desc_known(&c.out[0].desc));
      op_end(&c);
    }
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *op, *attrs;
    uint32_t input; /* which is made a vector of 3 */
    hone_dtype dtype;
  } cases[] = {
      {"QLinearAdd", "", 1, HONE_DTYPE_F32},
      {"QLinearAdd", "", 2, HONE_DTYPE_U8},
      {"QLinearAdd", "", 5, HONE_DTYPE_I8},
      {"QLinearMul", "", 7, HONE_DTYPE_U8},
      {"QLinearConcat", "axis=1", 0, HONE_DTYPE_F32},
      {"QLinearConcat", "axis=1", 5, HONE_DTYPE_U8},
      {"QLinearConcat", "axis=2", OP_CASE_MAX, HONE_DTYPE_NONE},
      {"QLinearSigmoid", "", 3, HONE_DTYPE_F32},
      {"QLinearSoftmax", "axis=3 opset=13", OP_CASE_MAX, HONE_DTYPE_NONE},
      {"QLinearGlobalAveragePool", "", 4, HONE_DTYPE_U8},
      {"MatMulIntegerToFloat", "", 6, HONE_DTYPE_F32},
      {"QGemm", "transA=1 transB=1", 7, HONE_DTYPE_F32},
      {"QAttention", "num_heads=0", OP_CASE_MAX, HONE_DTYPE_NONE},
      {"QAttention", "num_heads=4", OP_CASE_MAX, HONE_DTYPE_NONE},
      {"QAttention", "num_heads=2 do_rotary=1", OP_CASE_MAX, HONE_DTYPE_NONE},
      {"QAttention", "num_heads=2", 2, HONE_DTYPE_F32},
  };
  static const double three[] = {1, 2, 3};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const answer *a = answers;
    while (strcmp(a->op, cases[i].op)) a++;
    char name[64];
    op_case c;
    answer wrong = *a;
    wrong.attrs = cases[i].attrs;
    if (cases[i].input < OP_CASE_MAX) wrong.in[cases[i].input] = (operand){cases[i].dtype, "3", three};
    begin(&c, &wrong, name, sizeof name);
    if (op_infer(&c, a->n_out, 0, 0, 0) == HONE_OK) fail_msg("%s (%zu) is taken", a->op, i);
    assert_null(strstr(c.error.what, "not implemented"));
    op_end(&c);
  }
}

/* A last operand without its scale is an error; without its zero point it is none. */
static void leftover_operand(void **state) {
  (void)state;
  const answer *a = answers;
  while (strcmp(a->op, "QLinearConcat")) a++;
  for (uint32_t n = 5; n <= 8; n++) {
    char name[64];
    op_case c;
    answer part = *a;
    part.n_in = n;
    begin(&c, &part, name, sizeof name);
    const hone_status status = op_infer(&c, a->n_out, 0, 0, 0);
    if ((status == HONE_OK) != (n != 6)) fail_msg("%u inputs: %s", n, c.error.what);
    if (n == 6) assert_non_null(strstr(c.error.what, "input 5"));
    op_end(&c);
  }
}

/* Keys and values of the past are read as the input's sizes say. */
static void refused_past(void **state) {
  (void)state;
  const answer *a = answers;
  while (strcmp(a->op, "QAttention") || a->n_in < 9) a++;
  const operand past[] = {a->in[8],
                          {HONE_DTYPE_F32, "1x2x1x1x2", NULL},
                          {HONE_DTYPE_F32, "2x1x1x1x2", NULL},
                          {HONE_DTYPE_F32, "2x2x2x1x2", NULL},
                          {HONE_DTYPE_F32, "2x2x1x1x1", NULL},
                          {HONE_DTYPE_F32, "2x2x1x2", NULL},
                          {HONE_DTYPE_I8, "2x2x1x1x2", NULL}};
  for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
    answer wrong = *a;
    char name[64];
    op_case c;
    wrong.in[8] = past[i];
    begin(&c, &wrong, name, sizeof name);
    if ((op_infer(&c, a->n_out, 0, 0, 0) == HONE_OK) != (i == 0)) fail_msg("past %zu: %s", i, c.error.what);
    op_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_onnxruntime), cmocka_unit_test(unknown_shapes),
                                     cmocka_unit_test(refused), cmocka_unit_test(leftover_operand),
                                     cmocka_unit_test(refused_past)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
