/* hone quantize: what is quantised for whom, what the methods keep, and what goes wrong. */
#include "samples.h"
#include "temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is(const hone_node *n, const char *op) { return n && strcmp(n->op_type, op) == 0; }

static int64_t number(const hn_value *v) {
  return v->desc.dtype == HONE_DTYPE_I8 ? *(const int8_t *)v->constant->data
                                        : *(const uint8_t *)v->constant->data;
}

/* ---- the graph */

static void test_graph(void **state) {
  (void)state;
  static const struct {
    hone_quantize_target target;
    hone_dtype codes;
  } cases[] = {{HONE_QUANTIZE_HONE, HONE_DTYPE_U8},
               {HONE_QUANTIZE_ORT, HONE_DTYPE_U8},
               {HONE_QUANTIZE_OPENVINO, HONE_DTYPE_U8},
               {HONE_QUANTIZE_TENSORRT, HONE_DTYPE_I8}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const bool trt = cases[c].target == HONE_QUANTIZE_TENSORRT;
    hn_model *m = residual_network(1, 1);
    quantised q =
        quantise(m, &(hone_quantize_options){.calib = "random", .target = cases[c].target, .threads = 1});
    int products = 0, sums = 0;
    for (const hone_node *n = q.model->graph->first; n; n = n->next) {
      if (is(n, "QuantizeLinear")) {
        assert_int_equal(n->in[2]->desc.dtype, cases[c].codes);
        if (trt) assert_int_equal(number(n->in[2]), 0);
        if (trt) assert_false(is(n->in[0]->producer, "Conv"));
      }
      if (is(n, "Relu") && trt) assert_false(is(n->in[0]->producer, "DequantizeLinear"));
      if (is(n, "Conv") || is(n, "Gemm")) {
        products++;
        assert_true(is(n->in[0]->producer, "DequantizeLinear"));
        const hone_node *w = n->in[1]->producer, *b = n->in[2]->producer;
        assert_true(is(w, "DequantizeLinear"));
        assert_int_equal(w->in[0]->desc.dtype, HONE_DTYPE_I8);
        assert_int_equal(hone_desc_count(&w->in[1]->desc),
                         w->in[0]->desc.dim[is(n, "Conv") ? 0 : 1 - (int)hone_node_int(n, "transB", 0)]);
        assert_int_equal(is(b, "DequantizeLinear"), !trt);
      }
      if (is(n, "Add")) {
        sums++;
        const bool first = is(n->in[0]->producer, "DequantizeLinear"),
                   second = is(n->in[1]->producer, "DequantizeLinear");
        assert_true(trt ? first != second : first && second);
      }
    }
    assert_int_equal(products, 5);
    assert_int_equal(sums, 1);
    assert_int_equal(q.report.n_outputs, 1);
    if (!(q.report.output[0].sqnr_db > 20)) fail_msg("%g dB", q.report.output[0].sqnr_db);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* For hone every product, the sum and the average become integer steps. */
static void test_integer_steps(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_error e = {0};
  uint32_t products = 0, sums = 0, averages = 0;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &e), HONE_OK);
  assert_int_equal(hone_plan_create(engine, q.model, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(plan, i, &info));
    products += strncmp(info.what, "QLinearConv", 11) == 0 || strncmp(info.what, "QLinearGemm", 11) == 0;
    sums += strncmp(info.what, "QLinearAdd", 10) == 0;
    averages += strncmp(info.what, "QLinearAveragePool", 18) == 0;
  }
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  assert_int_equal(products, 5);
  assert_int_equal(sums, 1);
  assert_int_equal(averages, 1);
  quantised_free(&q);
  hone_model_release(m);
}

static void test_skip_and_only(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(
      m, &(hone_quantize_options){
             .calib = "random", .skip = (const char *[]){"Gemm", "nothing*"}, .n_skip = 2, .threads = 1});
  assert_false(layer_of(&q, "Gemm", 0)->quantized);
  assert_non_null(strstr(layer_of(&q, "Gemm", 0)->reason, "--skip"));
  assert_true(layer_of(&q, "Conv", 0)->quantized);
  bool told = false;
  for (uint32_t i = 0; i < q.report.n_warnings; i++) told |= strstr(q.report.warning[i], "nothing*") != NULL;
  assert_true(told);
  quantised_free(&q);
  q = quantise(m, &(hone_quantize_options){
                      .calib = "random", .only = (const char *[]){"Conv"}, .n_only = 1, .threads = 1});
  assert_true(layer_of(&q, "Conv", 3)->quantized);
  assert_false(layer_of(&q, "Gemm", 0)->quantized);
  assert_false(layer_of(&q, "Add", 0)->quantized);
  quantised_free(&q);
  hone_model_release(m);
}

/* ---- methods */

/* Squared error of values that a layer's input codes stand for. */
static double squares(const char *path, const hone_quantize_layer *l) {
  hone_data d;
  hone_error e = {0};
  hone_tensor_desc want = {.rank = -1};
  double sum = 0;
  assert_int_equal(hone_data_load(path, NULL, &want, NULL, &d, &e), HONE_OK);
  const float *v = d.tensor.data;
  for (int64_t i = 0, n = hone_desc_count(&d.tensor.desc); i < n; i++) {
    const double x = (double)v[i], code = fmax(0, fmin(255, nearbyint(x / l->scale) + l->zero_point));
    sum += (x - (code - l->zero_point) * l->scale) * (x - (code - l->zero_point) * l->scale);
  }
  hone_data_free(&d);
  return sum;
}

/* Normal values with 100 of a million forty times as large: minmax keeps all; percentile and kl cut them off;
 * mse errs least, here and without outliers. */
static void test_methods(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  for (int outliers = 0; outliers <= 100; outliers += 100) {
    const char *path = write_samples("outliers.npy", 4, (const int64_t[]){64, 3, 12, 12}, 3, outliers, 40);
    double width[HONE_CALIBRATIONS], clipped[HONE_CALIBRATIONS], error[HONE_CALIBRATIONS];
    for (int k = 0; k < HONE_CALIBRATIONS; k++) {
      quantised q =
          quantise(m, &(hone_quantize_options){
                          .calib = path, .method = (hone_calibration)k, .percentile = 99.9, .threads = 1});
      assert_int_equal(q.report.samples, 64);
      const hone_quantize_layer *l = layer_of(&q, "Conv", 0);
      width[k] = l->high - l->low;
      clipped[k] = l->clipped;
      error[k] = squares(path, l);
      if (k == HONE_CALIBRATION_MINMAX) assert_true(fabs(width[k] - (l->most - l->least)) < 2 * l->scale);
      quantised_free(&q);
    }
    const double all = width[HONE_CALIBRATION_MINMAX];
    assert_true(outliers ? all > 40 : all < 12);
    assert_true(clipped[HONE_CALIBRATION_MINMAX] == 0);
    for (int k = 1; k < HONE_CALIBRATIONS; k++) {
      if (!(error[HONE_CALIBRATION_MSE] <= 1.01 * error[k]))
        fail_msg("%g, by %s %g", error[HONE_CALIBRATION_MSE], hone_calibration_name((hone_calibration)k),
                 error[k]);
      assert_true(width[k] > 5 && width[k] < all + 0.1);
      if (outliers && k != HONE_CALIBRATION_MSE) {
        if (!(width[k] < 0.5 * all))
          fail_msg("%s: %g of %g", hone_calibration_name((hone_calibration)k), width[k], all);
        assert_true(clipped[k] > 0 && clipped[k] < 0.01);
      }
    }
    assert_true(error[HONE_CALIBRATION_MSE] < error[HONE_CALIBRATION_MINMAX]);
    /* 0.1 % of the values lie outside, up to a bin. */
    assert_true(clipped[HONE_CALIBRATION_PERCENTILE] < 0.0011);
  }
  hone_model_release(m);
}

/* ---- weights */

/* Channels that differ by up to 2^14: a scale for all of them leaves most with few codes. */
static void test_equalise(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 2);
  double sqnr[2];
  for (int equalise = 0; equalise < 2; equalise++) {
    quantised q =
        quantise(m, &(hone_quantize_options){.calib = "random", .equalize = equalise, .threads = 1});
    sqnr[equalise] = q.report.output[0].sqnr_db;
    assert_int_equal(q.report.equalized, equalise ? 2 : 0);
    quantised_free(&q);
  }
  if (!(sqnr[1] > sqnr[0] + 6)) fail_msg("%g dB, %g without", sqnr[1], sqnr[0]);
  hone_model_release(m);
}

#define PAIR(x, bias, front, between, end)                                                                   \
  "graph g(%x: " x ") -> (%y) {\n  const %v: f32[8x8] = rand(1)\n  const %w: f32[8x8] = rand(2)\n"           \
  "  const %b: " bias " = rand(3)\n  %a = " front "\n  %r = " between "\n  %y = " end "\n}\n"

/* What reads rows as channels, adds a number a row, or pools over channels does not pass a factor on. */
static void test_no_pair(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t pairs;
  } cases[] = {{PAIR("f32[8x8]", "f32[8]", "Gemm(%x, %v, %b)", "Relu(%a)", "Gemm(%r, %w)"), 1},
               {PAIR("f32[8x8]", "f32[8]", "Gemm(%x, %v, %b)", "Relu(%a)", "Gemm(%r, %w) {transA=1}"), 0},
               {PAIR("f32[8x8]", "f32[8x1]", "Gemm(%x, %v, %b)", "Relu(%a)", "Gemm(%r, %w)"), 0},
               {PAIR("f32[1x8x8]", "f32[8]", "MatMul(%x, %v)", "Relu(%a)", "MatMul(%r, %w)"), 1},
               {PAIR("f32[1x8x8]", "f32[8]", "MatMul(%x, %v)", "MaxPool(%a) {kernel_shape=[3], pads=[1, 1]}",
                     "MatMul(%r, %w)"),
                0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hn_model *m = net_parse("pair", cases[i].text);
    quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .equalize = true, .threads = 1});
    assert_int_equal(q.report.equalized, cases[i].pairs);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* The constant added behind a MatMul is its bias: codes of i32, or for TensorRT f32, and nothing is quantised
 * between the two. */
static void test_bias_behind(void **state) {
  (void)state;
  static const hone_quantize_target targets[] = {HONE_QUANTIZE_HONE, HONE_QUANTIZE_ORT,
                                                 HONE_QUANTIZE_OPENVINO, HONE_QUANTIZE_TENSORRT};
  for (size_t i = 0; i < 2 * sizeof targets / sizeof *targets; i++) {
    const bool trt = targets[i / 2] == HONE_QUANTIZE_TENSORRT, correct = i % 2;
    hn_model *m =
        net_parse("bias", "graph g(%x: f32[1x4x8]) -> (%y) {\n  const %v: f32[8x8] = rand(1)\n"
                          "  const %w: f32[8x6] = rand(2)\n  const %b: f32[8] = rand(3)\n"
                          "  const %c: f32[6] = rand(4)\n  %m = MatMul(%x, %v)\n  %a = Add(%b, %m)\n"
                          "  %r = Relu(%a)\n  %n = MatMul(%r, %w)\n  %y = Add(%n, %c)\n}\n");
    quantised q = quantise(
        m, &(hone_quantize_options){
               .calib = "random", .target = targets[i / 2], .bias_correction = correct, .threads = 1});
    assert_int_equal(q.report.quantized, 2);
    int sums = 0, made = 0;
    for (const hone_node *n = q.model->graph->first; n; n = n->next) {
      made += is(n, "QuantizeLinear");
      if (is(n, "QuantizeLinear")) assert_false(is(n->in[0]->producer, "MatMul"));
      if (!is(n, "Add")) continue;
      const bool first = is(n->in[0]->producer, "MatMul");
      const hn_value *b = n->in[first];
      assert_true(is(n->in[!first]->producer, "MatMul"));
      if (trt) assert_non_null(b->constant);
      if (!trt) assert_int_equal(b->producer->in[0]->desc.dtype, HONE_DTYPE_I32);
      sums++;
    }
    assert_int_equal(sums, 2);
    assert_int_equal(made, trt ? 2 : 3);
    if (!(q.report.output[0].sqnr_db > 20)) fail_msg("%g dB", q.report.output[0].sqnr_db);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* No code stands for what is not a number, and no scale for infinity. */
static void test_weights_not_finite(void **state) {
  (void)state;
  const float wrong[] = {1, NAN, INFINITY};
  for (size_t i = 0; i < 3; i++) {
    hn_model *m = net_begin();
    hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){1, 8});
    hn_value *w = net_weights(m, 2, (const int64_t[]){8, 4}, 1),
             *v = net_weights(m, 2, (const int64_t[]){4, 4}, 2);
    ((float *)w->constant->data)[5] = wrong[i];
    net_finish(m, net_op(m, "MatMul", (hn_value *[]){net_op(m, "MatMul", (hn_value *[]){x, w}, 2), v}, 2));
    quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
    assert_int_equal(layer_of(&q, "MatMul", 0)->quantized, i == 0);
    assert_true(layer_of(&q, "MatMul", 1)->quantized);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* Inputs far from zero, so that rounding the weights moves every output: the bias takes that back. */
static void test_bias_correction(void **state) {
  (void)state;
  hn_model *m = net_begin();
  const int64_t n = 1;
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){1, 64});
  hn_value *three = net_constant(m, HONE_DTYPE_F32, 0, NULL, &(float){3});
  hn_value *far = net_op(m, "Relu", (hn_value *[]){net_op(m, "Add", (hn_value *[]){x, three}, 2)}, 1);
  const float zero = 0;
  net_finish(m, net_op(m, "Gemm",
                       (hn_value *[]){far, net_weights(m, 2, (const int64_t[]){64, n}, 3),
                                      net_constant(m, HONE_DTYPE_F32, 1, &n, &zero)},
                       3));
  double mean[2], sqnr[2];
  for (int correct = 0; correct < 2; correct++) {
    quantised q = quantise(
        m, &(hone_quantize_options){
               .calib = "random", .samples = 200, .checks = 200, .bias_correction = correct, .threads = 1});
    mean[correct] = fabs(q.report.output[0].mean_error);
    sqnr[correct] = q.report.output[0].sqnr_db;
    quantised_free(&q);
  }
  assert_true(mean[1] < 0.5 * mean[0]);
  assert_true(sqnr[1] > sqnr[0]);
  hone_model_release(m);
}

/* ---- 16 bits */

static uint64_t constant_bytes(const hn_model *m) {
  uint64_t sum = 0;
  for (size_t i = 0; i < m->graph->values.len; i++) {
    const hn_value *v = m->graph->values.ptr[i];
    if (v->constant && !v->producer && hn_value_needed(v))
      sum += (uint64_t)hone_desc_bytes(&v->constant->desc);
  }
  return sum;
}

static void test_halves(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  for (int k = 0; k < 4; k++) {
    const bool bf16 = k == 1, io = k == 2, skip = k == 3;
    const hone_dtype narrow = bf16 ? HONE_DTYPE_BF16 : HONE_DTYPE_F16;
    quantised q = quantise(m, &(hone_quantize_options){.calib = "random",
                                                       .to = bf16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16,
                                                       .narrow_io = io,
                                                       .skip = (const char *[]){"Gemm"},
                                                       .n_skip = skip,
                                                       .threads = 1});
    const hn_graph *g = q.model->graph;
    assert_int_equal(g->inputs.ptr[0]->desc.dtype, io ? narrow : HONE_DTYPE_F32);
    assert_int_equal(g->outputs.ptr[0]->desc.dtype, io ? narrow : HONE_DTYPE_F32);
    assert_string_equal(g->outputs.ptr[0]->name, m->graph->outputs.ptr[0]->name);
    uint32_t casts = 0;
    for (const hone_node *n = g->first; n; n = n->next) {
      casts += is(n, "Cast");
      if (is(n, "Conv")) assert_int_equal(n->in[1]->desc.dtype, narrow);
      if (is(n, "Gemm")) assert_int_equal(n->in[1]->desc.dtype, skip ? HONE_DTYPE_F32 : narrow);
    }
    assert_int_equal(casts, io ? 0 : 2);
    if (!skip) assert_true(2 * constant_bytes(q.model) <= constant_bytes(m) + 64);
    assert_int_equal(layer_of(&q, "Gemm", 0)->quantized, !skip);
    if (!io && !(q.report.output[0].sqnr_db > (bf16 ? 35 : 55)))
      fail_msg("%g dB", q.report.output[0].sqnr_db);
    quantised_free(&q);
  }
  hone_model_release(m);
}

/* A mask of -1e9 and a power stay f32 in f16, and not in bf16. */
static void test_overflow(void **state) {
  (void)state;
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){1, 8});
  hn_value *mask = net_constant(m, HONE_DTYPE_F32, 0, NULL, &(float){-1e9f});
  hn_value *two = net_constant(m, HONE_DTYPE_F32, 0, NULL, &(float){2});
  hn_value *y = net_op(m, "Max", (hn_value *[]){net_op(m, "Pow", (hn_value *[]){x, two}, 2), mask}, 2);
  net_finish(m, net_op(m, "MatMul", (hn_value *[]){y, net_weights(m, 2, (const int64_t[]){8, 4}, 1)}, 2));
  for (int bf16 = 0; bf16 < 2; bf16++) {
    quantised q = quantise(m, &(hone_quantize_options){.to = bf16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16});
    assert_int_equal(layer_of(&q, "Pow", 0)->quantized, bf16);
    assert_int_equal(layer_of(&q, "Max", 0)->quantized, bf16);
    assert_true(layer_of(&q, "MatMul", 0)->quantized);
    quantised_free(&q);
  }
  hone_model_release(m);
}

/* An epsilon that f16 makes 0, and the root of the sum with it, stay f32; one that f16 has does not. */
static void test_vanishing(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    hn_model *m = net_parse(
        "small", i == 1 ? "graph g(%x: f32[1x8]) -> (%y) {\n  %m = Abs(%x)\n  %a = Add(%m, f32 1e-5)\n"
                          "  %s = Sqrt(%a)\n  %y = Div(%x, %s)\n}\n"
                        : "graph g(%x: f32[1x8]) -> (%y) {\n  %m = Abs(%x)\n  %a = Add(%m, f32 1e-12)\n"
                          "  %s = Sqrt(%a)\n  %y = Div(%x, %s)\n}\n");
    quantised q =
        quantise(m, &(hone_quantize_options){.to = i == 2 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16});
    assert_int_equal(layer_of(&q, "Add", 0)->quantized, i != 0);
    assert_int_equal(layer_of(&q, "Sqrt", 0)->quantized, i != 0);
    assert_true(layer_of(&q, "Div", 0)->quantized);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* What is no f32 is left as it is: indices, and what the file has in 16 bits. */
static void test_other_types(void **state) {
  (void)state;
  hn_model *m = net_parse("mixed", "opset 13\ngraph g(%x: f32[2x8], %h: f16[2x8]) -> (%y, %i, %r, %s) {\n"
                                   "  %a = Abs(%x)\n  %y, %i = TopK(%a, i64[1]{2})\n  %r = Relu(%h)\n"
                                   "  %e = Neg(%r)\n  %s = Exp(%e)\n}\n");
  static const hone_dtype want[] = {HONE_DTYPE_F32, HONE_DTYPE_I64, HONE_DTYPE_F16, HONE_DTYPE_F16};
  for (int bf16 = 0; bf16 < 2; bf16++) {
    quantised q = quantise(m, &(hone_quantize_options){.to = bf16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16});
    for (int i = 0; i < 4; i++) {
      const hn_value *v = q.model->graph->outputs.ptr[i];
      assert_int_equal(v->desc.dtype, want[i]);
      assert_int_equal(is(v->producer, "Cast"), i == 0);
    }
    quantised_free(&q);
  }
  hone_model_release(m);
}

/* bf16 goes where ONNX has it: exponents of Pow and Shrink keep f32. */
static void test_lacks_bf16(void **state) {
  (void)state;
  hn_model *m = net_parse("types", "opset 13\ngraph g(%x: f32[2x8]) -> (%y) {\n  %a = Pow(%x, f32{3})\n"
                                   "  %b = Shrink(%a)\n  %y = Neg(%b)\n}\n");
  quantised q = quantise(m, &(hone_quantize_options){.to = HONE_QUANTIZE_BF16});
  for (const hone_node *n = q.model->graph->first; n; n = n->next) {
    if (is(n, "Pow")) assert_int_equal(n->in[0]->desc.dtype, HONE_DTYPE_BF16);
    if (is(n, "Pow")) assert_int_equal(n->in[1]->desc.dtype, HONE_DTYPE_F32);
    if (is(n, "Shrink")) assert_int_equal(n->in[0]->desc.dtype, HONE_DTYPE_F32);
  }
  quantised_free(&q);
  hone_model_release(m);
}

/* What is computed for them in 16 bits is cast back: scales of Resize, exponents of Pow. */
static void test_own_types(void **state) {
  (void)state;
  static const char *const nets[] = {
      "opset 13\ngraph g(%x: f32[1x2x4x4], %s: f32[4]) -> (%y) {\n  %a = Abs(%s)\n"
      "  %y = Resize(%x, _, %a)\n}\n",
      "opset 13\ngraph g(%x: f32[2x8]) -> (%y) {\n  %a = Abs(%x)\n"
      "  %y = Pow(%x, %a)\n}\n"};
  for (int i = 0; i < 4; i++) {
    const bool power = i % 2, bf16 = i > 1;
    hn_model *m = net_parse("own", nets[i % 2]);
    quantised q = quantise(m, &(hone_quantize_options){.to = bf16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16});
    const hone_dtype type = bf16 ? HONE_DTYPE_BF16 : HONE_DTYPE_F16;
    for (const hone_node *n = q.model->graph->first; n; n = n->next) {
      if (is(n, "Abs")) assert_int_equal(n->out[0]->desc.dtype, type);
      if (is(n, "Resize")) assert_int_equal(n->in[2]->desc.dtype, HONE_DTYPE_F32);
      if (is(n, "Pow")) assert_int_equal(n->in[1]->desc.dtype, HONE_DTYPE_F32);
      if ((is(n, "Resize") || is(n, "Pow")) && (bf16 || !power)) assert_int_equal(n->in[0]->desc.dtype, type);
    }
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* Exponents of Pow are f32 where ONNX has no bf16 for them, and nowhere else: before opset 12 both operands
 * are of one type. */
static void test_exponents(void **state) {
  (void)state;
  static const int opsets[] = {9, 12, 13, 15};
  for (int i = 0; i < 8; i++) {
    const bool bf16 = i >= 4;
    char text[200];
    snprintf(text, sizeof text,
             "opset %d\ngraph g(%%x: f32[2x8], %%e: f32[8]) -> (%%y) {\n  %%y = Pow(%%x, %%e)\n}\n",
             opsets[i % 4]);
    hn_model *m = net_parse("powers", text);
    quantised q = quantise(m, &(hone_quantize_options){.to = bf16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16,
                                                       .only = (const char *const[]){"Pow"},
                                                       .n_only = 1});
    const hone_dtype type = bf16 ? HONE_DTYPE_BF16 : HONE_DTYPE_F16;
    for (const hone_node *n = q.model->graph->first; n; n = n->next) {
      if (!is(n, "Pow")) continue;
      assert_int_equal(n->in[0]->desc.dtype, type);
      assert_int_equal(n->in[1]->desc.dtype, bf16 && n->opset < 15 ? HONE_DTYPE_F32 : type);
    }
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* ---- the file of ranges */

static uint32_t runs;
static bool count_runs(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total) {
  (void)arg, (void)done, (void)total;
  runs += stage == HONE_QUANTIZE_CALIBRATES;
  return true;
}

static void test_ranges_file(void **state) {
  (void)state;
  char path[600];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/kept.json", folder && *folder ? folder : "/tmp");
  const char *samples = write_samples("kept.npy", 4, (const int64_t[]){8, 3, 12, 12}, 3, 0, 1);
  hn_model *m = residual_network(1, 1), *other = residual_network(1, 2);
  hone_quantize_options o = {
      .calib = samples, .ranges = path, .bias_correction = true, .threads = 1, .progress = count_runs};
  quantised first = quantise(m, &o);
  assert_int_equal(runs, 8);
  assert_false(first.report.ranges_read);
  quantised second = quantise(m, &o); /* no run, and the same result */
  assert_int_equal(runs, 8);
  assert_true(second.report.ranges_read);
  assert_int_equal(second.report.samples, 8);
  for (uint32_t i = 0; i < first.report.n_layers; i++)
    assert_true(first.report.layer[i].scale == second.report.layer[i].scale &&
                first.report.layer[i].clipped == second.report.layer[i].clipped);
  assert_true(first.report.output[0].sqnr_db == second.report.output[0].sqnr_db);
  quantised_free(&second);
  o.method = HONE_CALIBRATION_MSE; /* another method */
  second = quantise(m, &o);
  assert_int_equal(runs, 8);
  quantised_free(&second);
  o.calib = NULL; /* without samples: nothing to check on */
  second = quantise(m, &o);
  assert_int_equal(second.report.checks, 0);
  quantised_free(&second);
  hone_model *out = NULL;
  hone_quantize_report report;
  hone_error e = {0};
  assert_int_equal(hone_quantize(other, &o, &out, &report, &e), HONE_ERROR_USAGE); /* another model */
  hone_quantize_report_free(&report);
  o.calib = samples;
  second = quantise(other, &o);
  assert_int_equal(runs, 16);
  quantised_free(&second);
  samples = write_samples("kept.npy", 4, (const int64_t[]){9, 3, 12, 12}, 3, 0, 1); /* other samples */
  second = quantise(other, &o);
  assert_int_equal(runs, 25);
  quantised_free(&second);
  o.ranges = samples; /* what is no file of ranges is not written over */
  assert_int_equal(hone_quantize(m, &o, &out, &report, &e), HONE_ERROR_INPUT);
  hone_quantize_report_free(&report);
  quantised_free(&first);
  hone_model_release(other);
  hone_model_release(m);
}

/* The file with the number behind the n-th "key": changed. */
static void change_number(const char *path, const char *key, const char *to) {
  static char text[1 << 20];
  char tail[32];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  const size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  assert_true(n + 1 < sizeof text);
  snprintf(tail, sizeof tail, "\"%s\":", key);
  char *at = strstr(text, tail);
  assert_non_null(at);
  at += strlen(tail);
  assert_non_null(f = fopen(path, "w"));
  fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strcspn(at, ",}"));
  fclose(f);
}

/* Numbers that no activation of f32 can have had are an error, whether samples are there or not, and --again
 * writes the file anew. */
static void test_damaged_ranges(void **state) {
  (void)state;
  static const char *const wrong[][2] = {{"most", "1e300"},        {"least", "-1e300"}, {"most", "-1e30"},
                                         {"early_most", "3.5e38"}, {"reach", "1e300"},  {"reach", "-1.5"}};
  char path[600];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/damaged.json", folder && *folder ? folder : "/tmp");
  hn_model *m = residual_network(1, 1);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    hone_quantize_options o = {.calib = "random", .samples = 4, .ranges = path, .again = true, .threads = 1};
    quantised good = quantise(m, &o);
    quantised_free(&good);
    change_number(path, wrong[i][0], wrong[i][1]);
    o.again = false;
    for (int with = 0; with < 2; with++) {
      hone_model *out = NULL;
      hone_quantize_report report;
      hone_error e = {0};
      o.calib = with ? "random" : NULL;
      assert_int_equal(hone_quantize(m, &o, &out, &report, &e), HONE_ERROR_INPUT);
      hone_quantize_report_free(&report);
      if (!strstr(e.what, "damaged") || !strstr(e.where, "damaged.json"))
        fail_msg("%s %s: %s", wrong[i][0], wrong[i][1], e.what);
    }
  }
  unlink(path);
  hone_model_release(m);
}

/* ---- what is quantised already */

static void test_quantised_already(void **state) {
  (void)state;
  static const char *const texts[] = {
      "opset 17\ngraph g(%x: f32[2x3]) -> (%y: f32[2x4]) {\n  const %w: i8[3x4] = {1, 2, 3, 4, 5, 6, 7, 8, "
      "9, 1, "
      "2, 3}\n  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = MatMulInteger(%q, %w, %z)\n  %f = Cast(%i) "
      "{to=1}\n"
      "  %y = Mul(%f, %s)\n}\n",
      "opset 17\ngraph g(%x: u8[2x3]) -> (%y: u8[2x4]) {\n  const %w: i8[3x4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, "
      "1, 2, "
      "3}\n  %y = QLinearMatMul(%x, f32 0.1, u8 3, %w, f32 0.2, i8 0, f32 0.3, u8 9)\n}\n"};
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hone_model *cases[] = {q.model, net_parse("integer", texts[0]), net_parse("qlinear", texts[1])};
  for (int i = 0; i < 3; i++) {
    hone_model *out = NULL;
    hone_quantize_report report;
    hone_error e = {0};
    assert_int_equal(
        hone_quantize(cases[i], &(hone_quantize_options){.calib = "random", .threads = 1}, &out, &report, &e),
        HONE_ERROR_INPUT);
    if (!strstr(e.what, "already quantised") || !strstr(e.hint, "float")) fail_msg("%d: %s", i, e.what);
    hone_quantize_report_free(&report);
  }
  /* In 16 bits what is left of floats becomes narrow. */
  quantised half = quantise(q.model, &(hone_quantize_options){.to = HONE_QUANTIZE_BF16, .threads = 1});
  quantised_free(&half);
  hone_model_release(cases[1]);
  hone_model_release(cases[2]);
  quantised_free(&q);
  hone_model_release(m);
}

/* ---- samples */

typedef struct stop {
  uint32_t after;
} stop;

static bool stop_after(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total) {
  (void)total;
  return stage != HONE_QUANTIZE_CALIBRATES || done < ((stop *)arg)->after;
}

static void test_stopped(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random",
                                                     .samples = 10,
                                                     .threads = 1,
                                                     .progress = stop_after,
                                                     .progress_arg = &(stop){3}});
  assert_true(q.report.stopped);
  assert_int_equal(q.report.samples, 3);
  assert_int_equal(q.report.samples_wanted, 10);
  bool told = false;
  for (uint32_t i = 0; i < q.report.n_warnings; i++) told |= strstr(q.report.warning[i], "3 of 10") != NULL;
  assert_true(told);
  assert_true(layer_of(&q, "Conv", 0)->quantized);
  quantised_free(&q);
  hone_model_release(m);
}

/* A set of 600 MB, of which a run has 1.7 KB at a time: memory does not follow. The process grows to its peak
 * but once, so that earlier tests cannot hide this one's. */
static void test_memory(void **state) {
  (void)state;
  enum { ROWS = 350000, ROW = 3 * 12 * 12 * (int)sizeof(float), ALLOWED_KB = 200 << 10 };
  static const char head[] =
      "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (350000, 3, 12, 12), }";
  char path[300], begin[128];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/many.npy", folder ? folder : "/tmp");
  memset(begin, ' ', sizeof begin);
  memcpy(begin, head, sizeof head - 1);
  begin[sizeof begin - 1] = '\n';
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(begin, 1, sizeof begin, f), sizeof begin);
  assert_int_equal(fflush(f), 0);
  assert_int_equal(ftruncate(fileno(f), (off_t)sizeof begin + (off_t)ROWS * ROW),
                   0); /* zeros: no disk is filled */
  assert_int_equal(fclose(f), 0);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  hone_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = path, .samples = 3000, .threads = 1});
  assert_int_equal(q.report.samples, 3000);
  getrusage(RUSAGE_SELF, &after);
  assert_true(after.ru_maxrss - before.ru_maxrss < ALLOWED_KB);
  quantised_free(&q);
  hone_model_release(m);
  remove(path);
}

static void refused(hn_model *m, const char *calib, hone_status status, const char *says) {
  hone_model *out = NULL;
  hone_quantize_report report;
  hone_error e = {0};
  char line[1200];
  assert_int_equal(
      hone_quantize(m, &(hone_quantize_options){.calib = calib, .threads = 1}, &out, &report, &e), status);
  assert_null(out);
  hone_error_format(&e, line, sizeof line);
  if (!strstr(line, says)) fail_msg("\"%s\" lacks \"%s\"", line, says);
  hone_quantize_report_free(&report);
}

static void test_bad_samples(void **state) {
  (void)state;
  char path[600];
  const char *folder = getenv("TMPDIR");
  hn_model *m = residual_network(1, 1);
  refused(m, "/nowhere/at/all", HONE_ERROR_INPUT, "/nowhere/at/all");
  refused(m, write_samples("narrow.npy", 4, (const int64_t[]){5, 3, 12, 11}, 1, 0, 1), HONE_ERROR_INPUT,
          "f32[5x3x12x11]");
  snprintf(path, sizeof path, "%s/empty", folder && *folder ? folder : "/tmp");
  assert_int_equal(temporary_remove(path), 0); /* of a run before this one */
  assert_int_equal(mkdir(path, 0755), 0);
  refused(m, path, HONE_ERROR_INPUT, "holds no samples");
  write_samples("empty/a.npy", 4, (const int64_t[]){1, 3, 12, 12}, 1, 0, 1);
  const char *cut = write_samples("empty/b.npy", 4, (const int64_t[]){1, 3, 12, 12}, 2, 0, 1);
  assert_int_equal(truncate(cut, 1000), 0);
  refused(m, path, HONE_ERROR_INPUT, "b.npy");
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph),
                                     cmocka_unit_test(test_integer_steps),
                                     cmocka_unit_test(test_skip_and_only),
                                     cmocka_unit_test(test_methods),
                                     cmocka_unit_test(test_equalise),
                                     cmocka_unit_test(test_bias_correction),
                                     cmocka_unit_test(test_no_pair),
                                     cmocka_unit_test(test_bias_behind),
                                     cmocka_unit_test(test_weights_not_finite),
                                     cmocka_unit_test(test_ranges_file),
                                     cmocka_unit_test(test_damaged_ranges),
                                     cmocka_unit_test(test_quantised_already),
                                     cmocka_unit_test(test_halves),
                                     cmocka_unit_test(test_overflow),
                                     cmocka_unit_test(test_vanishing),
                                     cmocka_unit_test(test_other_types),
                                     cmocka_unit_test(test_lacks_bf16),
                                     cmocka_unit_test(test_own_types),
                                     cmocka_unit_test(test_exponents),
                                     cmocka_unit_test(test_stopped),
                                     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_bad_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
