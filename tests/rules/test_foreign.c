/* Profiles of other tools, as their readers bring them: what an expert who knows the seeds' matrix and
 * decision tree would name first was written down before any rule saw them. */
#include "rules/foreign.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* ---- trtexec ---- */

/* The seeds' own sample, in their names: convolution, Scale and Activation stand by themselves. */
static const foreign_row sample[] = {{"conv1", "Convolution", 2123, "FP32", NULL, 0, 0},
                                     {"bn1", "Scale", 345, "FP32", NULL, 0, 0},
                                     {"relu1", "Activation", 234, "FP32", NULL, 0, 0},
                                     {"layer1/block0/conv", "Convolution", 1890, "FP32", NULL, 0, 0},
                                     {"layer1/block0/bn", "Scale", 310, "FP32", NULL, 0, 0},
                                     {"layer1/block0/relu", "Activation", 205, "FP32", NULL, 0, 0},
                                     {"layer1/block1/conv", "Convolution", 1765, "FP32", NULL, 0, 0},
                                     {"layer2/conv", "Convolution", 1692, "FP32", NULL, 0, 0},
                                     {"layer3/conv", "Convolution", 1543, "FP32", NULL, 0, 0},
                                     {"layer4/conv", "Convolution", 1356, "FP32", NULL, 0, 0},
                                     {"pool", "Pooling", 300, "FP32", NULL, 0, 0},
                                     {"fc1", "FullyConnected", 420, "FP32", NULL, 0, 0}};
static void trt_sample(foreign *f) { foreign_trt_profile(f, sample, COUNT(sample)); }

#define RESNET(dtype)                                                                                        \
  {                                                                                                          \
    {"Conv_0 + Relu_1", "Convolution", 520, dtype, NULL, 0, 0},                                              \
        {"MaxPool_2", "Pooling", 60, dtype, NULL, 0, 0},                                                     \
        {"Conv_3 + Relu_4", "Convolution", 210, dtype, NULL, 0, 0},                                          \
        {"Conv_5 + Add_6 + Relu_7", "Convolution", 230, dtype, NULL, 0, 0},                                  \
        {"Conv_8 + Relu_9", "Convolution", 200, dtype, NULL, 0, 0},                                          \
        {"Conv_10 + Add_11 + Relu_12", "Convolution", 240, dtype, NULL, 0, 0}, {                             \
      "Gemm_13", "MatrixMultiply", 60, dtype, NULL, 0, 0                                                     \
    }                                                                                                        \
  }
static const foreign_row resnet_f32[] = RESNET("FP32");
static const foreign_row resnet_int8[] = RESNET("Int8");
static void trt_described(foreign *f, const foreign_row *rows, size_t n) {
  foreign_trt_profile(f, rows, n);
  foreign_trt_layers(f, rows, n);
}
static void trt_f32(foreign *f) { trt_described(f, resnet_f32, COUNT(resnet_f32)); }
static void trt_bare(foreign *f) { foreign_trt_profile(f, resnet_f32, COUNT(resnet_f32)); }
static void trt_int8(foreign *f) { trt_described(f, resnet_int8, COUNT(resnet_int8)); }

static void trt_copies(foreign *f) {
  trt_int8(f);
  foreign_trt_times(f, 1.1, 1.52, 0.7);
}

static void trt_reformats(foreign *f) {
  static const foreign_row rows[] = {
      {"Conv_0 + Relu_1", "Convolution", 300, "Int8", NULL, 0, 0},
      {"Reformatting CopyNode for Input Tensor 0 to Conv_2", "Reformat", 110, "Int8", NULL, 0, 0},
      {"Conv_2", "Convolution", 280, "FP16", NULL, 0, 0},
      {"Reformatting CopyNode for Input Tensor 0 to Conv_3", "Reformat", 120, "FP16", NULL, 0, 0},
      {"Conv_3 + Relu_4", "Convolution", 310, "Int8", NULL, 0, 0},
      {"Reformatting CopyNode for Output Tensor 0 to Conv_3", "Reformat", 40, "Int8", NULL, 0, 0}};
  trt_described(f, rows, COUNT(rows));
}

static void trt_tiny(foreign *f) {
  foreign_row rows[48];
  static char names[48][16];
  for (size_t i = 0; i < COUNT(rows); i++) {
    snprintf(names[i], sizeof names[i], i % 3 ? "Softmax_%zu" : "MatMul_%zu", i);
    rows[i] = (foreign_row){
        names[i], i % 3 ? "SoftMax" : "MatrixMultiply", 4.0 + (double)(i % 3), "FP16", NULL, 0, 0};
  }
  foreign_trt_profile(f, rows, COUNT(rows));
}

/* ---- ONNX Runtime ---- */

static void ort_diverse(foreign *f) {
  static const foreign_row rows[] = {
      {"c", "Conv", 3000, "float", NULL, 0, 0},    {"fc", "Gemm", 2500, "float", NULL, 0, 0},
      {"g0", "Gather", 1100, "float", NULL, 0, 0}, {"g1", "Gather", 900, "float", NULL, 0, 0},
      {"r0", "Reshape", 800, "float", NULL, 0, 0}, {"r1", "Reshape", 700, "float", NULL, 0, 0},
      {"s", "Softmax", 600, "float", NULL, 0, 0},  {"t", "TopK", 400, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void ort_fallback(foreign *f) {
  static const foreign_row rows[] = {
      {"c0", "Conv", 900, "float16", "CUDAExecutionProvider", 0, 0},
      {"m0", "MemcpyToHost", 400, "float16", "CUDAExecutionProvider", 0, 0},
      {"nms", "NonMaxSuppression", 1500, "float", "CPUExecutionProvider", 0, 0},
      {"m1", "MemcpyFromHost", 350, "float16", "CUDAExecutionProvider", 0, 0},
      {"c1", "Conv", 800, "float16", "CUDAExecutionProvider", 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void ort_qdq(foreign *f) {
  static const foreign_row rows[] = {
      {"c0", "QLinearConv", 700, "uint8", NULL, 0, 0}, {"d0", "DequantizeLinear", 300, "uint8", NULL, 0, 0},
      {"s0", "Sigmoid", 200, "float", NULL, 0, 0},     {"q0", "QuantizeLinear", 350, "float", NULL, 0, 0},
      {"c1", "QLinearConv", 800, "uint8", NULL, 0, 0}, {"d1", "DequantizeLinear", 280, "uint8", NULL, 0, 0},
      {"s1", "Softmax", 180, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void ort_conv_bn(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Conv", 1500, "float", NULL, 0, 0},
                                     {"b0", "BatchNormalization", 300, "float", NULL, 0, 0},
                                     {"a0", "Relu", 250, "float", NULL, 0, 0},
                                     {"c1", "Conv", 1400, "float", NULL, 0, 0},
                                     {"b1", "BatchNormalization", 280, "float", NULL, 0, 0},
                                     {"a1", "Relu", 260, "float", NULL, 0, 0},
                                     {"fc", "Gemm", 300, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void ort_gaps(foreign *f) {
  static const foreign_row rows[] = {{"c0", "FusedConv", 300, "float", NULL, 0, 0},
                                     {"c1", "FusedConv", 320, "float", NULL, 0, 0},
                                     {"c2", "FusedConv", 280, "float", NULL, 0, 0},
                                     {"c3", "FusedConv", 310, "float", NULL, 0, 0},
                                     {"fc", "Gemm", 100, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 110);
}

/* ---- traces ---- */

static const foreign_row convolutions[] = {
    {"Memcpy HtoD (Pinned -> Device)", "aten::to", 30, NULL, "copy", 0, 0},
    {"ampere_scudnn_128x64_relu_xregs_large_nn_v1", "aten::cudnn_convolution", 900, NULL, NULL, 0, 0},
    {"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128", "aten::cudnn_convolution",
     800, NULL, NULL, 0, 0},
    {"void cudnn::ops::max_pool_fw_4d_kernel<float>", "aten::max_pool2d", 60, NULL, NULL, 0, 0},
    {"ampere_sgemm_32x32_sliced1x4_tn", "aten::addmm", 300, NULL, NULL, 0, 0}};
/* Most of the recorded time is set-up and pauses. */
static void kineto_window(foreign *f) { foreign_kineto(f, convolutions, COUNT(convolutions), false, 20000); }
static void kineto_f32(foreign *f) { foreign_kineto(f, convolutions, COUNT(convolutions), true, 0); }

static void kineto_post(foreign *f) {
  static const foreign_row rows[] = {
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "aten::cudnn_convolution", 900, NULL,
       NULL, 0, 0},
      {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", "aten::addmm", 500, NULL, NULL, 0, 0},
      {"postprocess", NULL, 1100, NULL, "host", 0, 0}};
  foreign_kineto(f, rows, COUNT(rows), true, 0);
}

static void kineto_pageable(foreign *f) {
  static const foreign_row rows[] = {
      {"Memcpy HtoD (Pageable -> Device)", "aten::to", 900, NULL, "copy", 0, 0},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "aten::cudnn_convolution", 800, NULL,
       NULL, 0, 0},
      {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", "aten::addmm", 200, NULL, NULL, 0, 0}};
  foreign_kineto(f, rows, COUNT(rows), true, 0);
}

static const foreign_row products[] = {{"ampere_sgemm_128x64_nn", NULL, 1200, NULL, NULL, 0, 0},
                                       {"ampere_sgemm_64x64_tn", NULL, 700, NULL, NULL, 0, 0},
                                       {"softmax_warp_forward<float>", NULL, 60, NULL, NULL, 0, 0}};
static void nsys_window(foreign *f) { foreign_nsys(f, products, COUNT(products), false, 30000); }

static void nsys_waits(foreign *f) {
  static const foreign_row rows[] = {
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32", NULL, 500, NULL, NULL, 0, 0},
      {"sync", NULL, 300, NULL, "wait", 0, 0},
      {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n", NULL, 400, NULL, NULL, 0, 0},
      {"sync", NULL, 320, NULL, "wait", 0, 0}};
  foreign_nsys(f, rows, COUNT(rows), true, 0);
}

static void nsys_copies(foreign *f) {
  static const foreign_row rows[] = {
      {"copy", NULL, 700, NULL, "copy", 0, 0},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32", NULL, 500, NULL, NULL, 0, 0},
      {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n", NULL, 400, NULL, NULL, 0, 0}};
  foreign_nsys(f, rows, COUNT(rows), true, 0);
}

/* ---- counters ---- */

static void ncu_idle(foreign *f) {
  static const foreign_row rows[] = {{"decode_boxes(float*, int)", NULL, 300, NULL, NULL, 9, 14},
                                     {"gather_rows(float*, int)", NULL, 250, NULL, NULL, 6, 22},
                                     {"sgemm_128x64", NULL, 200, NULL, NULL, 82, 35}};
  foreign_ncu(f, rows, COUNT(rows));
}

static void ncu_memory(foreign *f) {
  static const foreign_row rows[] = {{"layer_norm(float*)", NULL, 400, NULL, NULL, 14, 91},
                                     {"bias_gelu(float*)", NULL, 350, NULL, NULL, 20, 88},
                                     {"sgemm_128x64", NULL, 300, NULL, NULL, 82, 35}};
  foreign_ncu(f, rows, COUNT(rows));
}

/* ---- Ascend ---- */

static void ascend_layout(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Conv2D", 300, "FLOAT16", NULL, 0, 0},
                                     {"t0", "TransData", 110, "FLOAT16", "AI_VECTOR_CORE", 0, 0},
                                     {"c1", "Conv2D", 280, "FLOAT16", NULL, 0, 0},
                                     {"t1", "TransData", 120, "FLOAT16", "AI_VECTOR_CORE", 0, 0},
                                     {"m", "MatMulV2", 200, "FLOAT16", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 6, 1);
}

static void ascend_aicpu(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Conv2D", 300, "FLOAT16", NULL, 0, 0},
                                     {"nms", "NonMaxSuppressionV6", 400, "FLOAT", "AI_CPU", 0, 0},
                                     {"c1", "Conv2D", 280, "FLOAT16", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 6, 1);
}

/* Products alone, some in parallel on several cores, between long pauses of the program. */
static void ascend_products(foreign *f) {
  static const foreign_row rows[] = {{"aclnnMatmul_MatMulV3", "MatMulV3", 500, "FLOAT", NULL, 0, 0},
                                     {"aclnnMatmul_MatMulV2", "MatMulV2", 300, "FLOAT", NULL, 0, 0},
                                     {"aclnnMatmul_MatMulV3", "MatMulV3", 450, "FLOAT", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 1, 90000);
}

/* ---- OpenVINO, oneDNN ---- */

static void openvino_reorders(foreign *f) {
  static const foreign_row rows[] = {{"in", "Parameter", 1, NULL, "unknown_f32", 0, 0},
                                     {"c0", "Convolution", 900, NULL, "brgconv_avx512_f32", 0, 0},
                                     {"c0_abcd_acdb_c1", "Reorder", 300, NULL, "jit_uni_f32", 0, 0},
                                     {"c1", "Convolution", 850, NULL, "brgconv_avx512_f32", 0, 0},
                                     {"c1_acdb_abcd_r", "Reorder", 280, NULL, "jit_uni_f32", 0, 0},
                                     {"fc", "FullyConnected", 200, NULL, "brgemm_avx512_f32", 0, 0}};
  foreign_openvino(f, rows, COUNT(rows));
}

static void openvino_convolutions(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Convolution", 900, NULL, "brgconv_avx512_f32", 0, 0},
                                     {"c1", "Convolution", 850, NULL, "brgconv_avx512_f32", 0, 0},
                                     {"c2", "Convolution", 870, NULL, "brgconv_avx512_f32", 0, 0},
                                     {"pool", "Pooling", 90, NULL, "jit_avx512_f32", 0, 0},
                                     {"fc", "FullyConnected", 200, NULL, "brgemm_avx512_f32", 0, 0}};
  foreign_openvino(f, rows, COUNT(rows));
}

static void onednn_reference(foreign *f) {
  static const foreign_row rows[] = {
      {"mb1_ic64oc64_ih56oh56kh3sh1dh0ph1_iw56ow56kw3sw1dw0pw1", "convolution", 900, "f32", "brg:avx512_core",
       0, 0},
      {"mb1_ic64oc64_id8od8kd3sd1dd0pd1_ih56oh56kh3sh1dh0ph1_iw56ow56kw3sw1dw0pw1", "convolution", 2400,
       "f32", "ref:any", 0, 0},
      {"64x16", "softmax", 100, "f32", "jit:avx512", 0, 0}};
  foreign_onednn(f, rows, COUNT(rows));
}

/* ---- written after the rules, expected before they were asked ---- */

static void trt_diverse(foreign *f) {
  static const foreign_row rows[] = {
      {"Conv_0", "", 300, "", NULL, 0, 0},   {"Gemm_1", "", 250, "", NULL, 0, 0},
      {"Gather_2", "", 110, "", NULL, 0, 0}, {"Gather_3", "", 90, "", NULL, 0, 0},
      {"Reshape_4", "", 80, "", NULL, 0, 0}, {"Reshape_5", "", 70, "", NULL, 0, 0},
      {"Softmax_6", "", 100, "", NULL, 0, 0}};
  foreign_trt_profile(f, rows, COUNT(rows));
}

static void ascend_diverse(foreign *f) {
  static const foreign_row rows[] = {{"c", "Conv2D", 300, "FLOAT16", NULL, 0, 0},
                                     {"m", "MatMulV2", 250, "FLOAT16", NULL, 0, 0},
                                     {"g", "GatherV2", 200, "FLOAT16", NULL, 0, 0},
                                     {"s", "StridedSliceD", 150, "FLOAT16", NULL, 0, 0},
                                     {"t", "TopKV2", 100, "FLOAT16", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 6, 1);
}

static void ascend_gaps(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Conv2D", 300, "FLOAT16", NULL, 0, 0},
                                     {"c1", "Conv2D", 280, "FLOAT16", NULL, 0, 0},
                                     {"m", "MatMulV2", 260, "FLOAT16", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 6, 110);
}

static void kineto_launches(foreign *f) {
  foreign_row rows[40];
  for (size_t i = 0; i < COUNT(rows); i++)
    rows[i] = (foreign_row){i % 2 ? "softmax_warp_forward" : "gemv_kernel_fp16",
                            i % 2 ? "aten::softmax" : "aten::mm",
                            4 + (double)(i % 4),
                            NULL,
                            NULL,
                            0,
                            0};
  foreign_kineto(f, rows, COUNT(rows), true, 0);
}

static void onednn_reorders(foreign *f) {
  static const foreign_row rows[] = {{"mb1_ic64oc64_ih56oh56kh3sh1dh0ph1_iw56ow56kw3sw1dw0pw1", "convolution",
                                      900, "f32", "brg:avx512_core", 0, 0},
                                     {"1x64x56x56", "reorder", 350, "f32", "jit:uni", 0, 0},
                                     {"mb1_ic64oc64_ih56oh56kh1sh1dh0ph0_iw56ow56kw1sw1dw0pw0", "convolution",
                                      500, "f32", "jit:avx512_core", 0, 0},
                                     {"1x64x3136", "reorder", 300, "f32", "jit:uni", 0, 0},
                                     {"64x16:16x64", "matmul", 200, "f32", "brg:avx512_core", 0, 0}};
  foreign_onednn(f, rows, COUNT(rows));
}

static void ncu_products(foreign *f) {
  static const foreign_row rows[] = {
      {"ampere_sgemm_128x64_nn", NULL, 900, NULL, NULL, 84, 40},
      {"ampere_scudnn_128x128_relu_medium_nn_v1", NULL, 700, NULL, NULL, 79, 45},
      {"softmax_warp_forward", NULL, 60, NULL, NULL, 20, 70}};
  foreign_ncu(f, rows, COUNT(rows));
}

static void trt_d2h(foreign *f) {
  trt_int8(f);
  foreign_trt_times(f, 0.05, 1.52, 1.1);
}

static void trt_pointwise(foreign *f) {
  static const foreign_row rows[] = {{"Conv_0", "Convolution", 400, "FP16", NULL, 0, 0},
                                     {"PWN(Relu_1)", "PointWise", 120, "FP16", NULL, 0, 0},
                                     {"Conv_2", "Convolution", 420, "FP16", NULL, 0, 0},
                                     {"PWN(Sigmoid_3, Mul_4)", "PointWise", 140, "FP16", NULL, 0, 0}};
  trt_described(f, rows, COUNT(rows));
}

static void ort_swish(foreign *f) {
  static const foreign_row rows[] = {
      {"fc0", "Gemm", 900, "float", NULL, 0, 0},   {"s0", "Sigmoid", 250, "float", NULL, 0, 0},
      {"m0", "Mul", 220, "float", NULL, 0, 0},     {"fc1", "Gemm", 800, "float", NULL, 0, 0},
      {"s1", "Sigmoid", 240, "float", NULL, 0, 0}, {"m1", "Mul", 210, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void ort_lone(foreign *f) {
  static const foreign_row rows[] = {
      {"c0", "FusedConv", 900, "float", NULL, 0, 0}, {"c1", "FusedConv", 950, "float", NULL, 0, 0},
      {"p", "MaxPool", 100, "float", NULL, 0, 0},    {"c2", "FusedConv", 700, "float", NULL, 0, 0},
      {"fc", "FusedGemm", 200, "float", NULL, 0, 0}, {"nms", "NonMaxSuppression", 5000, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

static void kineto_collectives(foreign *f) {
  static const foreign_row rows[] = {
      {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", "aten::addmm", 900, NULL, NULL, 0, 0},
      {"ncclDevKernel_AllReduce_Sum_f16_RING_LL", "record_param_comms", 700, NULL, NULL, 0, 0},
      {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "aten::mm", 600, NULL, NULL, 0, 0}};
  foreign_kineto(f, rows, COUNT(rows), true, 0);
}

static const foreign_row resnet_f16[] = RESNET("FP16");
static void trt_f16(foreign *f) {
  trt_described(f, resnet_f16, COUNT(resnet_f16));
  foreign_trt_times(f, 0.05, 1.5, 0.02);
}
static void trt_one_region(foreign *f) {
  static const foreign_row rows[] = {{"{ForeignNode[/embed/Gather.../head/Add]}", "", 1900, "", NULL, 0, 0},
                                     {"Reformatting CopyNode for Input Tensor 0", "", 20, "", NULL, 0, 0}};
  foreign_trt_profile(f, rows, COUNT(rows));
}
static void kineto_f16(foreign *f) {
  static const foreign_row rows[] = {
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "aten::cudnn_convolution", 900, NULL,
       NULL, 0, 0},
      {"void cudnn::bn_fw_inf_1C11_kernel_NHWC<__half>", "aten::max_pool2d", 60, NULL, NULL, 0, 0},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_b", "aten::cudnn_convolution", 700,
       NULL, NULL, 0, 0},
      {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", "aten::addmm", 300, NULL, NULL, 0, 0}};
  foreign_kineto(f, rows, COUNT(rows), true, 0);
}
static void ascend_f16(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Conv2D", 300, "FLOAT16", NULL, 0, 0},
                                     {"c1", "Conv2D", 280, "FLOAT16", NULL, 0, 0},
                                     {"p", "MaxPoolV3", 40, "FLOAT16", "AI_VECTOR_CORE", 0, 0},
                                     {"m", "MatMulV2", 200, "FLOAT16", NULL, 0, 0}};
  foreign_ascend(f, rows, COUNT(rows), 6, 1);
}
static void openvino_int8(foreign *f) {
  static const foreign_row rows[] = {{"c0", "Convolution", 300, NULL, "brgconv_avx512_amx_i8", 0, 0},
                                     {"c1", "Convolution", 350, NULL, "brgconv_avx512_amx_i8", 0, 0},
                                     {"pool", "Pooling", 30, NULL, "jit_avx512_i8", 0, 0},
                                     {"fc", "FullyConnected", 60, NULL, "brgemm_avx512_amx_i8", 0, 0}};
  foreign_openvino(f, rows, COUNT(rows));
}
static void ort_fused(foreign *f) {
  static const foreign_row rows[] = {{"c0", "FusedConv", 900, "float", NULL, 0, 0},
                                     {"c1", "FusedConv", 950, "float", NULL, 0, 0},
                                     {"p", "MaxPool", 100, "float", NULL, 0, 0},
                                     {"fc", "FusedGemm", 200, "float", NULL, 0, 0}};
  foreign_ort(f, rows, COUNT(rows), 2);
}

/* What an expert names first; several where the seeds name the same thing twice ("a|b"). */
static const struct {
  const char *name;
  void (*write)(foreign *f);
  const char *first, *why;
} cases[] = {
    {"trt_sample", trt_sample, "unfused_pattern",
     "convolutions 85 %, BN and activation beside them: fuse (tree, first branch)"},
    {"trt_f32", trt_f32, "reduced_precision:fp16",
     "fused already, FP32 on a GPU: FP16 is the next level, before INT8 (no calibration)"},
    {"trt_bare", trt_bare, "reduced_precision:fp16",
     "the same, though the export does not say in what numbers"},
    {"trt_copies", trt_copies, "copy_dominated", "H2D 33 %, D2H 21 %: the seeds' memory pattern"},
    {"trt_reformats", trt_reformats, "layout_conversions", "INT8 and FP16 alternate, reformats between them"},
    {"trt_tiny", trt_tiny, "launch_bound", "48 operators of 5 us: launches, not arithmetic"},
    {"ort_diverse", ort_diverse, "operator_diverse",
     "the seeds' pattern 3: Conv 30, FC 25, Gather 20, Reshape 15"},
    {"ort_fallback", ort_fallback, "host_fallback", "NMS on the host with copies there and back"},
    {"ort_qdq", ort_qdq, "quantisation_without_gain", "Q/DQ a third of an INT8 network"},
    {"ort_conv_bn", ort_conv_bn, "unfused_pattern", "Conv, BN, Relu are three operators each"},
    {"ort_gaps", ort_gaps, "scheduling_gaps", "idle 28 % between steps"},
    {"kineto_window", kineto_window, "reduced_precision:fp16",
     "f32 convolutions and GEMMs are all that the device does"},
    {"kineto_f32", kineto_f32, "reduced_precision:fp16", "the same in marked iterations"},
    {"kineto_post", kineto_post, "slow_post", "post-processing 43 %"},
    {"kineto_pageable", kineto_pageable, "pageable_copies", "H2D 47 % from pageable memory: pin it"},
    {"nsys_window", nsys_window, "reduced_precision:fp16", "sgemm is 97 % of the device's work"},
    {"nsys_waits", nsys_waits, "sync_heavy", "the host waits 40 % of the time with the device idle"},
    {"nsys_copies", nsys_copies, "pageable_copies", "H2D 43 % from pageable memory"},
    {"ncu_idle", ncu_idle, "latency_bound", "73 % in kernels under 40 % of both"},
    {"ncu_memory", ncu_memory, "memory_bound", "71 % in kernels at 90 % of the memory"},
    {"ascend_layout", ascend_layout, "layout_conversions", "TransData 23 %"},
    {"ascend_aicpu", ascend_aicpu, "host_fallback|reference_fallback", "an operator on AI CPU takes 41 %"},
    {"ascend_products", ascend_products, "reduced_precision:fp16",
     "FLOAT products on a cube unit made for FP16"},
    {"openvino_reorders", openvino_reorders, "layout_conversions", "reorders 23 % inside the network"},
    {"openvino_convolutions", openvino_convolutions, "reduced_precision|conv_dominated",
     "f32 convolutions 90 %: narrower numbers"},
    {"onednn_reference", onednn_reference, "reference_fallback", "ref:any takes 70 %"},
    {"trt_diverse", trt_diverse, "operator_diverse", "pattern 3 by names alone"},
    {"ascend_diverse", ascend_diverse, "operator_diverse", "pattern 3 on an NPU"},
    {"ascend_gaps", ascend_gaps, "scheduling_gaps", "idle 28 % between tasks"},
    {"kineto_launches", kineto_launches, "launch_bound",
     "40 kernels of 5 us an iteration, the host is as slow"},
    {"onednn_reorders", onednn_reorders, "layout_conversions", "reorders 29 % between primitives"},
    {"ncu_products", ncu_products, "reduced_precision:fp16",
     "f32 products at their roof: only narrower numbers help"},
    {"trt_d2h", trt_d2h, "slow_d2h|copy_dominated", "D2H 41 %"},
    {"trt_pointwise", trt_pointwise, "unfused_pattern", "PWN layers behind convolutions take 24 %"},
    {"ort_lone", ort_lone, "outlier_operator", "suppression takes two thirds behind a fused network"},
    {"kineto_collectives", kineto_collectives, "communication", "all-reduce 32 %, nothing beside it"},
    {"ort_swish", ort_swish, "unfused_pattern", "Sigmoid and Mul behind each Gemm take 35 %"},
};

/* Nothing is wrong with these: only a trade or a note may be said of them. */
static const struct {
  const char *name;
  void (*write)(foreign *f);
} healthy[] = {{"trt_int8", trt_int8},     {"trt_f16", trt_f16},       {"trt_one_region", trt_one_region},
               {"kineto_f16", kineto_f16}, {"ascend_f16", ascend_f16}, {"openvino_int8", openvino_int8},
               {"ort_fused", ort_fused}};

static bool of_rule(const char *id, const char *rule, size_t n) {
  return strncmp(id, rule, n) == 0 && (id[n] == 0 || id[n] == ':');
}

static bool is_one_of(const char *id, const char *rules) {
  for (size_t n;; rules += n + 1) {
    n = strcspn(rules, "|");
    if (of_rule(id, rules, n)) return true;
    if (!rules[n]) return false;
  }
}

/* Writes, imports and diagnoses; foreign_end is the caller's. */
static void diagnose(foreign *f, void (*write)(foreign *f)) {
  foreign_begin(f);
  write(f);
  foreign_diagnose(f, HONE_LANGUAGE_EN);
}

static void the_first_finding_is_the_experts(void **unused) {
  (void)unused;
  size_t missed = 0;
  for (size_t i = 0; i < COUNT(cases); i++) {
    foreign f;
    diagnose(&f, cases[i].write);
    const char *first = f.findings->count ? f.findings->items[0].id : "nothing";
    if (!is_one_of(first, cases[i].first)) {
      print_message("%s: %s, not %s (%s)\n", cases[i].name, first, cases[i].first, cases[i].why);
      missed++;
    }
    foreign_end(&f);
  }
  if (missed) fail_msg("%zu of %zu", missed, COUNT(cases));
}

static void the_healthy_are_not_blamed(void **unused) {
  (void)unused;
  for (size_t i = 0; i < COUNT(healthy); i++) {
    foreign f;
    diagnose(&f, healthy[i].write);
    for (size_t k = 0; k < f.findings->count; k++)
      if (f.findings->items[k].category < HONE_CATEGORY_TRADE)
        fail_msg("%s: %s", healthy[i].name, f.findings->items[k].title);
    foreign_end(&f);
  }
}

/* The evidence of that name; NAN: there is none. */
static double evidence(const hone_findings *findings, const char *rule, const char *name) {
  for (size_t i = 0; i < findings->count; i++)
    for (size_t k = 0; is_one_of(findings->items[i].id, rule) && k < findings->items[i].evidence_count; k++)
      if (strcmp(findings->items[i].evidence[k].name, name) == 0) return findings->items[i].evidence[k].value;
  return NAN;
}

static void trt_qat_names(foreign *f) {
  static const foreign_row rows[] = {
      {"QuantizeLinear_2", "", 200, "", NULL, 0, 0},
      {"w0 + QuantizeLinear_8 + Conv_12 + PWN(Clip_16)", "", 400, "", NULL, 0, 0},
      {"QuantizeLinear_98", "", 180, "", NULL, 0, 0},
      {"w1 + QuantizeLinear_104 + Conv_108", "", 350, "", NULL, 0, 0}};
  foreign_trt_profile(f, rows, COUNT(rows));
}

static void trt_plain_names(foreign *f) {
  static const foreign_row rows[] = {{"QuantizeLinear_2", "", 200, "", NULL, 0, 0},
                                     {"Conv_12 + PWN(Clip_16)", "", 400, "", NULL, 0, 0},
                                     {"QuantizeLinear_98", "", 180, "", NULL, 0, 0},
                                     {"Conv_108", "", 350, "", NULL, 0, 0}};
  foreign_trt_profile(f, rows, COUNT(rows));
}

/* A profile of times alone: names tell which products are int8, or nothing does and no count is claimed. */
static void int8_is_told_by_names_or_not_at_all(void **unused) {
  (void)unused;
  foreign f;
  diagnose(&f, trt_qat_names);
  assert_float_equal(evidence(f.findings, "quantisation_without_gain", "int8 operators"), 2, 0);
  foreign_end(&f);
  diagnose(&f, trt_plain_names);
  assert_true(evidence(f.findings, "quantisation_without_gain", "quantise and dequantise") > 0);
  assert_true(isnan(evidence(f.findings, "quantisation_without_gain", "int8 operators")));
  bool said = false;
  for (size_t i = 0; i < f.findings->count; i++)
    said = said || strstr(f.findings->items[i].cause, "not recorded");
  assert_true(said);
  foreign_end(&f);
}

/* Three runs, of which something disturbed the second (one operator) and the third (a pause). */
static void disturbed_runs_decide_nothing(void **unused) {
  (void)unused;
  static const int us[3][2] = {{300, 600}, {9000, 600}, {310, 620}}, pause[3] = {4, 4, 4000};
  char text[4096];
  int n = snprintf(text, sizeof text, "["), ts = 1000;
  for (int run = 0; run < 3; run++) {
    const int begin = ts;
    for (int i = 0; i < 2; i++) {
      n += snprintf(
          text + n, sizeof text - (size_t)n,
          "{\"cat\":\"Node\",\"pid\":1,\"tid\":1,\"dur\":%d,\"ts\":%d,\"ph\":\"X\",\"name\":\"c%d_kernel_"
          "time\",\"args\":{\"op_name\":\"Conv\",\"provider\":\"CPUExecutionProvider\",\"node_index\":\"%d\"}"
          "},",
          us[run][i], ts, i, i);
      ts += us[run][i] + pause[run];
    }
    n += snprintf(
        text + n, sizeof text - (size_t)n,
        "{\"cat\":\"Session\",\"pid\":1,\"tid\":1,\"dur\":%d,\"ts\":%d,\"ph\":\"X\",\"name\":\"model_run\","
        "\"args\":{}}%s",
        ts - begin, begin, run < 2 ? "," : "]");
    ts += 100;
  }
  foreign f = {0};
  hone_error error = {0};
  if (hone_import_memory("profile.json", text, (size_t)n, NULL, &f.facts, &error)) fail_msg("%s", error.what);
  assert_int_equal(hone_profile_create(f.facts, NULL, &f.profile, &error), HONE_OK);
  assert_string_equal(f.profile->layers[f.profile->by_time[0]].name, "c1");
  assert_true(f.profile->closure.gaps_ms > 2 && f.profile->closure.typical_gaps_ms < 0.02);
  assert_int_equal(hone_diagnose(f.profile, NULL, &f.findings, &error), HONE_OK);
  for (size_t i = 0; i < f.findings->count; i++)
    if (f.findings->items[i].category < HONE_CATEGORY_TRADE) fail_msg("%s", f.findings->items[i].title);
  foreign_end(&f);
}

/* Tables that were put together tell a task twice; that is no contradiction, and no time. */
static void repeated_rows_count_once(void **unused) {
  (void)unused;
  static const char table[] = "Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
                              "2,m,MatMulV3,AI_CORE,1000,50\n2,m,MatMulV3,AI_CORE,1000,50\n2,m,MatMulV3,AI_"
                              "CORE,1100,50\n2,m,MatMulV3,AI_CORE,1000,50\n"
                              "2,a,Add,AI_VECTOR_CORE,1160,10\n";
  hone_facts *facts = NULL;
  hone_profile *p = NULL;
  hone_error error = {0};
  if (hone_import_memory("kernel_details.csv", table, sizeof table - 1, NULL, &facts, &error))
    fail_msg("%s", error.what);
  assert_int_equal(hone_profile_create(facts, NULL, &p, &error), HONE_OK);
  assert_null(p->doubt);
  assert_int_equal(p->layer_count, 2);
  assert_true(p->layers[0].calls == 2 && p->closure.layers_ms > 0.109 && p->closure.layers_ms < 0.111);
  size_t n, told = 0;
  const hone_note *notes = hone_facts_unmeasured(facts, &n);
  for (size_t i = 0; i < n; i++) told += strcmp(notes[i].what, "rows told twice") == 0;
  assert_int_equal(told, 1);
  hone_profile_destroy(p);
  hone_facts_destroy(facts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_finding_is_the_experts),
      cmocka_unit_test(the_healthy_are_not_blamed),
      cmocka_unit_test(repeated_rows_count_once),
      cmocka_unit_test(int8_is_told_by_names_or_not_at_all),
      cmocka_unit_test(disturbed_runs_decide_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
