/* Quantised models end in exact integers: what plans of level 2 make of operators between DequantizeLinear
 * and QuantizeLinear, element for element against sums of 64-bit integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "base/mem.h"
#include "model/ir/graph.h"

#include <hone/session.h>
#include <math.h>
#include <string.h>

enum { C = 6, H = 7, W = 5, M = 8, P = H * W, K = 20, N = 9 };

static const float x_scale = 0.021f, y_scale = 0.173f, p_scale = 0.09f, g_scale = 0.4f, r_scale = 0.31f,
                   s_scale = 0.07f;
static const uint8_t x_zero = 117, y_zero = 0, p_zero = 12, g_zero = 101;
static const int8_t r_zero = -7, none = 0;
static float w_scale[M], b_scale[M];
static int8_t w[M][C][3][3], v[N][K], t[K][N];
static int32_t bias[M], g_bias[N];
static const float v_scale = 0.011f, t_scale = 0.02f;
static unsigned seed = 7;

static int64_t next(int64_t below) { return (int64_t)((seed = seed * 1664525u + 1013904223u) >> 8) % below; }

static hn_value *number(hn_model *m, float f) { return net_constant(m, HONE_DTYPE_F32, 0, NULL, &f); }

static hn_value *op(hn_model *m, const char *type, hn_value *a, hn_value *b, hn_value *c) {
  return net_op(m, type, (hn_value *[]){a, b, c}, c ? 3 : b ? 2 : 1);
}

/* x -> Conv + bias -> Relu -> y; y -> GlobalAveragePool -> p; y -> Conv without a QuantizeLinear -> f;
 * g -> Gemm + bias -> q and MatMul -> r. */
static hn_model *build(void) {
  hn_model *m = net_begin();
  const int64_t m1 = M, n1 = N;
  hn_value *u8_x = net_constant(m, HONE_DTYPE_U8, 0, NULL, &x_zero),
           *u8_y = net_constant(m, HONE_DTYPE_U8, 0, NULL, &y_zero),
           *u8_p = net_constant(m, HONE_DTYPE_U8, 0, NULL, &p_zero),
           *u8_g = net_constant(m, HONE_DTYPE_U8, 0, NULL, &g_zero),
           *i8_r = net_constant(m, HONE_DTYPE_I8, 0, NULL, &r_zero),
           *i8_0 = net_constant(m, HONE_DTYPE_I8, 0, NULL, &none);
  for (int i = 0; i < M; i++)
    w_scale[i] = 0.004f + 0.001f * (float)i, b_scale[i] = x_scale * w_scale[i],
    bias[i] = (int32_t)next(9000) - 4000;
  for (int8_t *k = &w[0][0][0][0]; k < &w[0][0][0][0] + sizeof w; k++) *k = (int8_t)(next(255) - 127);
  for (int8_t *k = &v[0][0]; k < &v[0][0] + sizeof v; k++) *k = (int8_t)(next(255) - 127);
  for (int8_t *k = &t[0][0]; k < &t[0][0] + sizeof t; k++) *k = (int8_t)(next(255) - 127);
  for (int i = 0; i < N; i++) g_bias[i] = (int32_t)next(20000) - 10000;

  hn_value *x = op(m, "DequantizeLinear", net_input(m, "x", HONE_DTYPE_U8, 4, (const int64_t[]){1, C, H, W}),
                   number(m, x_scale), u8_x);
  hn_value *rw =
      op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I8, 4, (const int64_t[]){M, C, 3, 3}, w),
         net_constant(m, HONE_DTYPE_F32, 1, &m1, w_scale), NULL);
  assert_true(hn_node_set_int(rw->producer, "axis", 0));
  hn_value *rb = op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I32, 1, &m1, bias),
                    net_constant(m, HONE_DTYPE_F32, 1, &m1, b_scale), NULL);
  assert_true(hn_node_set_int(rb->producer, "axis", 0));
  hn_value *c = op(m, "Conv", x, rw, rb);
  assert_true(hn_node_set_ints(c->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  hn_value *y =
      net_output(m, op(m, "QuantizeLinear", op(m, "Relu", c, NULL, NULL), number(m, y_scale), u8_y));
  hn_value *ry = op(m, "DequantizeLinear", y, number(m, y_scale), u8_y);
  net_output(m,
             op(m, "QuantizeLinear", op(m, "GlobalAveragePool", ry, NULL, NULL), number(m, p_scale), u8_p));
  hn_value *rw2 =
      op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I8, 4, (const int64_t[]){3, M, 1, 1}, w),
         number(m, 0.01f), i8_0);
  net_output(m, op(m, "Conv", ry, rw2, NULL));

  hn_value *twice = op(
      m, "Relu", op(m, "Add", ry, op(m, "DequantizeLinear", y, number(m, s_scale), u8_p), NULL), NULL, NULL);
  net_output(m, op(m, "QuantizeLinear", twice, number(m, p_scale), u8_y));

  hn_value *pool = op(m, "MaxPool", ry, NULL, NULL);
  assert_true(hn_node_set_ints(pool->producer, "kernel_shape", (const int64_t[]){3, 2}, 2));
  assert_true(hn_node_set_ints(pool->producer, "pads", (const int64_t[]){1, 0, 1, 0}, 4));
  net_output(m, op(m, "QuantizeLinear", pool, number(m, y_scale), u8_y));

  hn_value *g = op(m, "DequantizeLinear", net_input(m, "g", HONE_DTYPE_U8, 2, (const int64_t[]){3, K}),
                   number(m, x_scale), u8_x);
  hn_value *rv = op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I8, 2, (const int64_t[]){N, K}, v),
                    number(m, v_scale), i8_0);
  hn_value *gb = op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I32, 1, &n1, g_bias),
                    number(m, x_scale * v_scale), NULL);
  hn_value *q = op(m, "Gemm", g, rv, gb);
  assert_true(hn_node_set_int(q->producer, "transB", 1));
  net_output(m, op(m, "QuantizeLinear", q, number(m, g_scale), u8_g));
  hn_value *rt = op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I8, 2, (const int64_t[]){K, N}, t),
                    number(m, t_scale), i8_0);
  net_finish(m, op(m, "QuantizeLinear", op(m, "MatMul", g, rt, NULL), number(m, r_scale), i8_r));
  return m;
}

static int64_t code(int64_t sum, float scale, int64_t zero, int64_t lo, int64_t hi) {
  const int64_t q = (int64_t)rintf((float)sum * scale) + zero;
  return q < lo ? lo : q > hi ? hi : q;
}

static int64_t conv_sum(const uint8_t *x, int o, int y0, int x0) {
  int64_t sum = bias[o];
  for (int c = 0; c < C; c++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        const int yy = y0 + i - 1, xx = x0 + j - 1;
        if (yy >= 0 && yy < H && xx >= 0 && xx < W)
          sum += ((int64_t)x[(c * H + yy) * W + xx] - x_zero) * w[o][c][i][j];
      }
  return sum;
}

static uint32_t steps_of(const hone_plan *plan, const char *tactic) {
  uint32_t n = 0;
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++)
    n += hone_plan_step(plan, i, &info) && strcmp(info.tactic, tactic) == 0;
  return n;
}

static void integers_are_exact(void **state) {
  (void)state;
  hn_model *m = build();
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_error e = {0};
  uint8_t x[C * P], g[3 * K];
  for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)next(256);
  for (size_t i = 0; i < sizeof g; i++) g[i] = (uint8_t)next(256);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2}, &engine, &e), HONE_OK);
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(steps_of(plan, "qlinear_conv") + steps_of(plan, "int8_conv"), 1);
  assert_int_equal(steps_of(plan, "qlinear_average"), 1);
  assert_int_equal(steps_of(plan, "qlinear_add"), 1);
  assert_int_equal(steps_of(plan, "qlinear_max_pool"), 1);
  assert_int_equal(steps_of(plan, "qlinear_gemm") + steps_of(plan, "int8_gemm"), 1);
  assert_int_equal(steps_of(plan, "qlinear_matmul") + steps_of(plan, "int8_matmul"), 1);
  assert_int_equal(steps_of(plan, "integer_conv"), 1); /* that nobody quantises */
  assert_int_equal(steps_of(plan, "dequantize_linear"), 0);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  const hone_tensor in[] = {{hone_desc(HONE_DTYPE_U8, 4, (const int64_t[]){1, C, H, W}), x},
                            {hone_desc(HONE_DTYPE_U8, 2, (const int64_t[]){3, K}), g}};
  const hone_tensor *const ins[] = {&in[0], &in[1]};
  assert_int_equal(hone_context_run(context, ins, NULL, &e), HONE_OK);
  const uint8_t *y = hone_context_output(context, 0)->data, *p = hone_context_output(context, 1)->data,
                *q = hone_context_output(context, 5)->data, *s = hone_context_output(context, 3)->data,
                *most = hone_context_output(context, 4)->data;
  const float *f = hone_context_output(context, 2)->data;
  const int8_t *r = hone_context_output(context, 6)->data;
  for (int i = 0; i < M * P; i++) {
    const float a = ((float)y[i] - (float)y_zero) * y_scale, b = ((float)y[i] - (float)p_zero) * s_scale;
    const float sum = rintf((a + b) / p_scale) + (float)y_zero;
    assert_int_equal(s[i], sum < 0 ? 0 : sum > 255 ? 255 : (int)sum);
  }
  for (int o = 0; o < M; o++) {
    int64_t sum = 0;
    for (int i = 0; i < P; i++) {
      assert_int_equal(y[o * P + i],
                       code(conv_sum(x, o, i / W, i % W), x_scale * w_scale[o] / y_scale, y_zero, 0, 255));
      sum += y[o * P + i] - y_zero;
    }
    assert_int_equal(p[o], code(sum, y_scale / (p_scale * (float)P), p_zero, 0, 255));
  }
  for (int i = 0; i < M * H * (W - 1); i++) {
    const int v0 = i / (W - 1) % H, u = i % (W - 1), o = i / (W - 1) / H;
    int best = 0;
    for (int v = v0 ? v0 - 1 : 0; v <= v0 + 1 && v < H; v++)
      for (int k = 0; k < 2; k++)
        if (y[o * P + v * W + u + k] > best) best = y[o * P + v * W + u + k];
    assert_int_equal(most[i], best);
  }
  for (int o = 0; o < 3; o++)
    for (int i = 0; i < P; i++) {
      double sum = 0, size = 0;
      for (int c = 0; c < M; c++) {
        const double a = (double)(y[c * P + i] - y_zero) * (double)y_scale *
                         (double)(&w[0][0][0][0])[o * M + c] * (double)0.01f;
        sum += a, size += fabs(a);
      }
      /* f32, or products of operands split into two bf16 parts: what each split loses, and the dropped low x
       * low */
      assert_true(fabs((double)f[o * P + i] - sum) <= (2e-6 + 3 * 0x1p-18) * size);
    }
  for (int i = 0; i < 3; i++)
    for (int n = 0; n < N; n++) {
      int64_t gemm = g_bias[n], mul = 0;
      for (int k = 0; k < K; k++) {
        gemm += ((int64_t)g[i * K + k] - x_zero) * v[n][k];
        mul += ((int64_t)g[i * K + k] - x_zero) * t[k][n];
      }
      assert_int_equal(q[i * N + n], code(gemm, x_scale * v_scale / g_scale, g_zero, 0, 255));
      assert_int_equal(r[i * N + n], code(mul, x_scale * t_scale / r_scale, r_zero, -128, 127));
    }
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
}

/* Codes of weights and their zero points, of either type. */
typedef struct weights {
  bool is_u8, a_channel;
  uint8_t w[M * C * 9], zero[M];
} weights;

static int64_t code_of(bool is_u8, uint8_t byte) { return is_u8 ? byte : (int8_t)byte; }

static int64_t weight(const weights *k, int64_t channel, int64_t i) {
  return code_of(k->is_u8, k->w[i]) - code_of(k->is_u8, k->zero[k->a_channel ? channel : 0]);
}

/* Zero points of all kinds, the outermost among them. */
static void fill(weights *k, bool is_u8, bool a_channel) {
  k->is_u8 = is_u8, k->a_channel = a_channel;
  for (size_t i = 0; i < sizeof k->w; i++) k->w[i] = (uint8_t)next(256);
  for (int i = 0; i < M; i++) k->zero[i] = i == 1 ? 255 : i == 2 ? 127 : i == 3 ? 128 : (uint8_t)next(256);
}

static hn_value *dequantised(hn_model *m, const weights *k, int32_t rank, const int64_t *dims, int64_t axis) {
  static float scales[M];
  for (int i = 0; i < M; i++) scales[i] = v_scale;
  const hone_dtype type = k->is_u8 ? HONE_DTYPE_U8 : HONE_DTYPE_I8;
  const int32_t of = k->a_channel ? 1 : 0;
  hn_value *r = op(m, "DequantizeLinear", net_constant(m, type, rank, dims, k->w),
                   net_constant(m, HONE_DTYPE_F32, of, &dims[axis], scales),
                   net_constant(m, type, of, &dims[axis], k->zero));
  assert_true(hn_node_set_int(r->producer, "axis", axis));
  return r;
}

/* Weights whose zero points differ from 0 (i8) and 128 (u8), of a convolution, a depthwise one, and two
 * matrices. */
static void weights_may_have_zero_points(void **state) {
  (void)state;
  /* Not on the float tactics, which a processor without vectors of integers would choose. */
  const hone_engine_options options = {.threads = 2, .tactics = "-qlinear_*"};
  for (int kind = 0; kind < 4; kind++) {
    weights conv, deep, gemm, mul;
    fill(&conv, kind & 1, kind & 2), fill(&deep, kind & 1, kind & 2);
    fill(&gemm, kind & 1, kind & 2), fill(&mul, kind & 1, kind & 2);
    hn_model *m = net_begin();
    hn_value *u8_x = net_constant(m, HONE_DTYPE_U8, 0, NULL, &x_zero),
             *u8_p = net_constant(m, HONE_DTYPE_U8, 0, NULL, &p_zero);
    hn_value *x =
        op(m, "DequantizeLinear", net_input(m, "x", HONE_DTYPE_U8, 4, (const int64_t[]){1, C, H, W}),
           number(m, x_scale), u8_x);
    hn_value *c = op(m, "Conv", x, dequantised(m, &conv, 4, (const int64_t[]){M, C, 3, 3}, 0), NULL);
    assert_true(hn_node_set_ints(c->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
    net_output(m, op(m, "QuantizeLinear", c, number(m, p_scale), u8_p));
    hn_value *d = op(m, "Conv", x, dequantised(m, &deep, 4, (const int64_t[]){C, 1, 3, 3}, 0), NULL);
    assert_true(hn_node_set_ints(d->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
    assert_true(hn_node_set_int(d->producer, "group", C));
    net_output(m, op(m, "QuantizeLinear", d, number(m, p_scale), u8_p));
    hn_value *g = op(m, "DequantizeLinear", net_input(m, "g", HONE_DTYPE_U8, 2, (const int64_t[]){3, K}),
                     number(m, x_scale), u8_x);
    hn_value *q = op(m, "Gemm", g, dequantised(m, &gemm, 2, (const int64_t[]){M, K}, 0), NULL);
    assert_true(hn_node_set_int(q->producer, "transB", 1));
    net_output(m, op(m, "QuantizeLinear", q, number(m, p_scale), u8_p));
    hn_value *r = op(m, "MatMul", g, dequantised(m, &mul, 2, (const int64_t[]){K, M}, 1), NULL);
    net_finish(m, op(m, "QuantizeLinear", r, number(m, p_scale), u8_p));
    hone_error e = {0};
    hone_engine *engine;
    hone_plan *plan;
    hone_context *context;
    uint8_t codes[C][H][W], rows[3][K];
    for (uint8_t *k = &codes[0][0][0]; k < &codes[0][0][0] + sizeof codes; k++) *k = (uint8_t)next(256);
    for (uint8_t *k = &rows[0][0]; k < &rows[0][0] + sizeof rows; k++) *k = (uint8_t)next(256);
    assert_int_equal(hone_engine_create(&options, &engine, &e), HONE_OK);
    assert_int_equal(hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
    assert_int_equal(steps_of(plan, "dequantize_linear") + steps_of(plan, "quantize_linear"), 0);
    assert_int_equal(steps_of(plan, "int8_conv") + steps_of(plan, "int8_depthwise"), 2);
    assert_int_equal(steps_of(plan, "int8_gemm"), 1);
    assert_int_equal(steps_of(plan, "int8_matmul"), 1);
    assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
    const hone_tensor in[] = {{hone_desc(HONE_DTYPE_U8, 4, (const int64_t[]){1, C, H, W}), codes},
                              {hone_desc(HONE_DTYPE_U8, 2, (const int64_t[]){3, K}), rows}};
    const hone_tensor *const ins[] = {&in[0], &in[1]};
    assert_int_equal(hone_context_run(context, ins, NULL, &e), HONE_OK);
    const uint8_t *whole = hone_context_output(context, 0)->data,
                  *each = hone_context_output(context, 1)->data,
                  *left = hone_context_output(context, 2)->data,
                  *right = hone_context_output(context, 3)->data;
    const float scale = x_scale * v_scale / p_scale;
    for (int i = 0; i < M * P; i++) {
      int64_t sum = 0, own = 0;
      for (int k = 0; k < C * 9; k++) {
        const int y = i / W % H + k / 3 % 3 - 1, u = i % W + k % 3 - 1;
        if (y < 0 || y >= H || u < 0 || u >= W) continue;
        sum += ((int64_t)codes[k / 9][y][u] - x_zero) * weight(&conv, i / P, i / P * C * 9 + k);
        if (k / 9 == i / P) own += ((int64_t)codes[k / 9][y][u] - x_zero) * weight(&deep, k / 9, k);
      }
      assert_int_equal(whole[i], code(sum, scale, p_zero, 0, 255));
      if (i < C * P) assert_int_equal(each[i], code(own, scale, p_zero, 0, 255));
    }
    for (int i = 0; i < 3 * M; i++) {
      int64_t a = 0, b = 0;
      for (int k = 0; k < K; k++) {
        a += ((int64_t)rows[i / M][k] - x_zero) * weight(&gemm, i % M, i % M * K + k);
        b += ((int64_t)rows[i / M][k] - x_zero) * weight(&mul, i % M, k * M + i % M);
      }
      assert_int_equal(left[i], code(a, scale, p_zero, 0, 255));
      assert_int_equal(right[i], code(b, scale, p_zero, 0, 255));
    }
    hone_context_destroy(context);
    hone_plan_destroy(plan);
    hone_engine_destroy(engine);
    hone_model_release(m);
  }
}

/* A matrix of weights for each matrix of the input: no tactic packs those. */
static void weights_may_be_a_batch(void **state) {
  (void)state;
  hn_model *m = net_begin();
  static int8_t batch[2][K][N];
  for (int8_t *k = &batch[0][0][0]; k < &batch[0][0][0] + sizeof batch; k++) *k = (int8_t)(next(255) - 127);
  hn_value *u8_x = net_constant(m, HONE_DTYPE_U8, 0, NULL, &x_zero),
           *i8_r = net_constant(m, HONE_DTYPE_I8, 0, NULL, &r_zero),
           *i8_0 = net_constant(m, HONE_DTYPE_I8, 0, NULL, &none);
  hn_value *g = op(m, "DequantizeLinear", net_input(m, "g", HONE_DTYPE_U8, 3, (const int64_t[]){2, 3, K}),
                   number(m, x_scale), u8_x);
  hn_value *rw =
      op(m, "DequantizeLinear", net_constant(m, HONE_DTYPE_I8, 3, (const int64_t[]){2, K, N}, batch),
         number(m, t_scale), i8_0);
  net_finish(m, op(m, "QuantizeLinear", op(m, "MatMul", g, rw, NULL), number(m, r_scale), i8_r));
  hone_error e = {0};
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  uint8_t x[2][3][K];
  for (uint8_t *k = &x[0][0][0]; k < &x[0][0][0] + sizeof x; k++) *k = (uint8_t)next(256);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2}, &engine, &e), HONE_OK);
  assert_int_equal(hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  const hone_tensor in = {hone_desc(HONE_DTYPE_U8, 3, (const int64_t[]){2, 3, K}), x};
  const hone_tensor *const ins[] = {&in};
  assert_int_equal(hone_context_run(context, ins, NULL, &e), HONE_OK);
  const int8_t *r = hone_context_output(context, 0)->data;
  for (int i = 0; i < 2 * 3 * N; i++) {
    int64_t sum = 0;
    for (int k = 0; k < K; k++)
      sum += ((int64_t)x[i / N / 3][i / N % 3][k] - x_zero) * batch[i / N / 3][k][i % N];
    assert_in_range(r[i] - code(sum, x_scale * t_scale / r_scale, r_zero, -128, 127) + 1, 0, 2);
  }
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
}

/* A function of one operand between codes: every code, and a Flatten that changes none of them. */
static void functions_are_tables(void **state) {
  (void)state;
  hn_model *m = net_begin();
  hn_value *u8_x = net_constant(m, HONE_DTYPE_U8, 0, NULL, &x_zero),
           *i8_r = net_constant(m, HONE_DTYPE_I8, 0, NULL, &r_zero);
  hn_value *x =
      op(m, "DequantizeLinear", net_input(m, "x", HONE_DTYPE_U8, 4, (const int64_t[]){2, 128, 1, 1}),
         number(m, x_scale), u8_x);
  hn_value *leaky = op(m, "LeakyRelu", x, NULL, NULL);
  assert_true(hn_node_set_float(leaky->producer, "alpha", 0.125f));
  hn_value *q = op(m, "QuantizeLinear", leaky, number(m, p_scale), i8_r);
  hn_value *flat = op(m, "Flatten", op(m, "DequantizeLinear", q, number(m, p_scale), i8_r), NULL, NULL);
  hn_value *again = op(m, "QuantizeLinear", flat, number(m, p_scale), i8_r);
  net_finish(m, op(m, "DequantizeLinear", again, number(m, p_scale), i8_r));
  hone_error e = {0};
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  uint8_t codes[256];
  for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2}, &engine, &e), HONE_OK);
  assert_int_equal(hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  assert_int_equal(steps_of(plan, "code_table"), 1);
  assert_int_equal(steps_of(plan, "dequantize_linear"), 1); /* of the result alone */
  assert_int_equal(steps_of(plan, "quantize_linear"), 0);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  const hone_tensor in = {hone_desc(HONE_DTYPE_U8, 4, (const int64_t[]){2, 128, 1, 1}), codes};
  const hone_tensor *const ins[] = {&in};
  assert_int_equal(hone_context_run(context, ins, NULL, &e), HONE_OK);
  const float *y = hone_context_output(context, 0)->data;
  for (int i = 0; i < 256; i++) {
    const float a = ((float)i - (float)x_zero) * x_scale, f = a < 0 ? 0.125f * a : a;
    const float c = rintf(f / p_scale) + (float)r_zero;
    assert_true(y[i] == ((c < -128 ? -128 : c > 127 ? 127 : c) - (float)r_zero) * p_scale);
  }
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
}

#ifndef __SANITIZE_THREAD__ /* one thread, thousands of plans */
/* Each allocation of making and running a plan fails once: memory is named as the reason, nothing leaks or
 * crashes. Where ASan makes it slow, each fifth: there every place that allocates fails in
 * faults_plan_quantised. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 5 };
#else
enum { STEP = 1 };
#endif
static void every_allocation_may_fail(void **state) {
  (void)state;
  hn_model *m = build();
  uint8_t x[C * P] = {0}, g[3 * K] = {0};
  const hone_tensor in[] = {{hone_desc(HONE_DTYPE_U8, 4, (const int64_t[]){1, C, H, W}), x},
                            {hone_desc(HONE_DTYPE_U8, 2, (const int64_t[]){3, K}), g}};
  const hone_tensor *const ins[] = {&in[0], &in[1]};
  bool reached = true;
  for (uint64_t k = 1; reached; k += STEP) {
    hone_engine *engine = NULL;
    hone_plan *plan = NULL;
    hone_context *context = NULL;
    hone_error e = {0};
    hn_mem_fail_after(k);
    hone_status s = hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &e);
    if (s == HONE_OK) s = hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e);
    if (s == HONE_OK) s = hone_context_create(plan, &context, &e);
    if (s == HONE_OK) s = hone_context_run(context, ins, NULL, &e);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    if (s != HONE_OK && s != HONE_ERROR_MEMORY) fail_msg("allocation %d: %s: %s", (int)k, e.where, e.what);
    hone_context_destroy(context);
    hone_plan_destroy(plan);
    hone_engine_destroy(engine);
  }
  hone_model_release(m);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_are_exact), cmocka_unit_test(weights_may_have_zero_points),
      cmocka_unit_test(weights_may_be_a_batch), cmocka_unit_test(functions_are_tables),
#ifndef __SANITIZE_THREAD__ /* one thread, thousands of plans */
      cmocka_unit_test(every_allocation_may_fail)
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
