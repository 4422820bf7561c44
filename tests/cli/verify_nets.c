/* See verify_nets.h. */
#include "verify_nets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- a quantised network: residual blocks of 1x1, depthwise 3x3 and 1x1 between QuantizeLinear and
 * DequantizeLinear, as quantisers write them */

typedef struct quantised {
  hn_model *m;
  unsigned seed;
  bool float_bias; /* of convolutions, as some tools leave it */
} quantised;

/* x through levels of this size and back; values of u8 around `zero`. */
static hn_value *q_round(quantised *q, hn_value *x, float scale, uint8_t zero) {
  hn_value *s = net_constant(q->m, HONE_DTYPE_F32, 0, NULL, &scale),
           *z = net_constant(q->m, HONE_DTYPE_U8, 0, NULL, &zero);
  hn_value *y = net_op(q->m, "QuantizeLinear", (hn_value *[]){x, s, z}, 3);
  return net_op(q->m, "DequantizeLinear", (hn_value *[]){y, s, z}, 3);
}

/* Weights of 8 bits, about normal, that keep unit variance; then DequantizeLinear. */
static hn_value *q_weights(quantised *q, int32_t rank, const int64_t *dims, int64_t fan_in) {
  static int8_t w[64 * 64 * 9];
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I8, rank, dims);
  for (int64_t i = 0, n = hone_desc_count(&d); i < n; i++) {
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += (int)((q->seed = q->seed * 1664525u + 1013904223u) >> 24) - 128;
    w[i] = (int8_t)(sum / 5);
  }
  float scale =
      2.0f / (30 * sqrtf((float)fan_in)); /* the sum's deviation is about 30, and half die in Relu */
  int8_t zero = 0;
  hn_value *in[] = {net_constant(q->m, HONE_DTYPE_I8, rank, dims, w),
                    net_constant(q->m, HONE_DTYPE_F32, 0, NULL, &scale),
                    net_constant(q->m, HONE_DTYPE_I8, 0, NULL, &zero)};
  return net_op(q->m, "DequantizeLinear", in, 3);
}

static hn_value *q_conv(quantised *q, hn_value *x, int64_t cin, int64_t cout, int64_t k, int64_t stride,
                        bool depthwise) {
  int32_t bias[64];
  for (int64_t i = 0; i < cout; i++)
    bias[i] = (int32_t)((q->seed = q->seed * 1664525u + 1013904223u) >> 20) - 2048;
  float scale = 2e-4f, real[64];
  int32_t zero = 0;
  for (int64_t i = 0; i < cout; i++) real[i] = scale * (float)bias[i];
  hn_value *b = net_constant(q->m, HONE_DTYPE_F32, 1, &cout, real);
  if (!q->float_bias)
    b = net_op(q->m, "DequantizeLinear",
               (hn_value *[]){net_constant(q->m, HONE_DTYPE_I32, 1, &cout, bias),
                              net_constant(q->m, HONE_DTYPE_F32, 0, NULL, &scale),
                              net_constant(q->m, HONE_DTYPE_I32, 0, NULL, &zero)},
               3);
  int64_t fan = depthwise ? 1 : cin;
  hn_value *w = q_weights(q, 4, (const int64_t[]){cout, fan, k, k}, fan * k * k);
  hn_value *y = net_op(q->m, "Conv", (hn_value *[]){x, w, b}, 3);
  int64_t p = k / 2;
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){p, p, p, p}, 4) &&
              hn_node_set_ints(y->producer, "strides", (const int64_t[]){stride, stride}, 2) &&
              hn_node_set_int(y->producer, "group", depthwise ? cin : 1));
  return y;
}

static hn_value *q_relu(quantised *q, hn_value *x) {
  return q_round(q, net_op(q->m, "Relu", &x, 1), 0.02f, 0);
}

hn_model *verify_quantised_net(void) {
  enum { C = 20, WIDE = 50 };
  quantised q = {.m = hn_model_create(""), .seed = 1};
  assert_non_null(q.m);
  q.m->ir_version = 8;
  assert_true(hn_vec_push(&q.m->opsets, (hn_opset){"", 17}));
  hn_value *x = hn_value_create(q.m->graph, "x");
  x->desc = hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, 3, 35, 33});
  assert_true(hn_graph_add_input(q.m->graph, x));
  x = q_relu(&q, q_conv(&q, q_round(&q, x, 0.03f, 128), 3, C, 3, 2, false));
  for (int block = 0; block < 4; block++) {
    hn_value *y = q_conv(&q, x, C, WIDE, 1, 1, false);
    y = block & 1 ? q_round(&q, y, 0.04f, 117) : q_relu(&q, y); /* borders of a code that is not 0 */
    y = q_relu(&q, q_conv(&q, y, WIDE, WIDE, 3, 1, true));
    y = q_round(&q, q_conv(&q, y, WIDE, C, 1, 1, false), 0.04f, 131);
    x = q_round(&q, net_op(q.m, "Add", (hn_value *[]){x, y}, 2), 0.05f, 120);
  }
  x = q_round(&q, net_op(q.m, "GlobalAveragePool", &x, 1), 0.02f, 110);
  x = net_op(q.m, "Flatten", &x, 1);
  hn_value *w = q_weights(&q, 2, (const int64_t[]){C, 40}, C);
  x = q_round(&q, net_op(q.m, "MatMul", (hn_value *[]){x, w}, 2), 0.02f, 128);
  net_finish(q.m, x);
  return q.m;
}

/* ---- right models that earlier bounds called different: small maps, where one element is a large share */

enum { SMALL = 5 };

static hn_value *begin_small(quantised *q, unsigned seed, int64_t channels) {
  *q = (quantised){hn_model_create(""), seed, true};
  assert_non_null(q->m);
  q->m->ir_version = 8;
  assert_true(hn_vec_push(&q->m->opsets, (hn_opset){"", 17}));
  hn_value *x = hn_value_create(q->m->graph, "x");
  x->desc = hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, channels, SMALL, SMALL});
  assert_true(hn_graph_add_input(q->m->graph, x));
  return q_round(q, x, 0.03f, 128);
}

/* A convolution's codes go through a table whose neighbours are three levels apart, thrice. */
static hn_model *steep_tables(unsigned seed) {
  enum { C = 12 };
  quantised q;
  hn_value *x = begin_small(&q, seed, C);
  for (int block = 0; block < 3; block++)
    x = q_relu(&q, q_round(&q, q_conv(&q, x, C, C, 3, 1, false), 0.06f, 120));
  net_finish(q.m, x);
  return q.m;
}

/* A sum behind a convolution, both rounded, then a function of it that is rounded, too: three in one step. */
static hn_model *sums_and_functions(unsigned seed) {
  enum { C = 8 };
  quantised q;
  hn_value *x = begin_small(&q, seed, C);
  for (int block = 0; block < 3; block++) {
    hn_value *y = q_round(&q, q_conv(&q, x, C, C, 1, 1, false), 0.05f, 125);
    y = q_round(&q, net_op(q.m, "Add", (hn_value *[]){x, y}, 2), 0.06f, 120);
    hn_value *gate = q_round(&q, net_op(q.m, "Sigmoid", &y, 1), 1.0f / 255, 0);
    x = q_round(&q, net_op(q.m, "Mul", (hn_value *[]){y, gate}, 2), 0.02f, 15);
  }
  net_finish(q.m, x);
  return q.m;
}

/* What a Concat gathers is normalised; passes move the codes through it, so that its parts have new names. */
static hn_model *concat_norm(unsigned seed) {
  enum { C = 8 };
  quantised q;
  hn_value *x = begin_small(&q, seed, C);
  float by[2 * C], shift[2 * C], mean[2 * C], spread[2 * C];
  for (int i = 0; i < 2 * C; i++)
    by[i] = 0.5f + 0.05f * (float)i, shift[i] = 0.1f, mean[i] = 0.2f, spread[i] = 0.7f;
  for (int block = 0; block < 2; block++) {
    hn_value *y = q_round(&q, q_conv(&q, x, C, C, 1, 1, false), 0.03f, 128), *in[5];
    y = q_round(&q, net_op(q.m, "Concat", (hn_value *[]){y, x}, 2), 0.03f, 128);
    assert_true(hn_node_set_int(y->producer->in[0]->producer->in[0]->producer, "axis", 1));
    const float *const numbers[] = {by, shift, mean, spread};
    in[0] = y;
    for (int i = 0; i < 4; i++)
      in[i + 1] = net_constant(q.m, HONE_DTYPE_F32, 1, (const int64_t[]){2 * C}, numbers[i]);
    y = q_round(&q, net_op(q.m, "BatchNormalization", in, 5), 0.03f, 110);
    x = q_relu(&q, q_conv(&q, y, 2 * C, C, 3, 1, false));
  }
  net_finish(q.m, x);
  return q.m;
}

/* Shares of 40 classes in levels of 1/256: the whole output spans a few of them. */
static hn_model *small_shares(unsigned seed) {
  enum { C = 8, CLASSES = 40 };
  quantised q;
  hn_value *x = begin_small(&q, seed, C);
  hn_value *y = q_round(&q, q_conv(&q, x, C, C, 1, 1, false), 0.03f, 128);
  x = net_op(q.m, "Concat", (hn_value *[]){x, y}, 2);
  assert_true(hn_node_set_int(x->producer, "axis", 1));
  x = q_round(&q, x, 0.03f, 128);
  x = q_round(&q, net_op(q.m, "GlobalAveragePool", &x, 1), 0.01f, 128);
  x = net_op(q.m, "Flatten", &x, 1);
  x = net_op(q.m, "MatMul", (hn_value *[]){x, q_weights(&q, 2, (const int64_t[]){2 * C, CLASSES}, 2 * C)}, 2);
  x = net_op(q.m, "Softmax", (hn_value *[]){q_round(&q, x, 0.02f, 128)}, 1);
  net_finish(q.m, q_round(&q, x, 1.0f / 256, 0));
  return q.m;
}

hn_model *(*const verify_right_nets[VERIFY_RIGHT_NETS])(unsigned seed) = {steep_tables, sums_and_functions,
                                                                          concat_norm, small_shares};

/* ---- models that share no name with the other but their input's */

static hn_value *named_op(hn_model *m, const verify_renamed *r, const char *type, hn_value *const *in,
                          uint32_t n) {
  char name[48];
  snprintf(name, sizeof name, "%s_%s_%u", r->other ? "its" : "the", type, m->graph->n_nodes);
  hn_value *out = hn_value_create(m->graph, name);
  assert_non_null(hn_node_create(m->graph, NULL, type, NULL, name, in, n, &out, 1));
  return out;
}

hn_model *verify_renamed_net(verify_renamed r) {
  enum { N = 32 };
  static int8_t w[N * N];
  unsigned seed = 5;
  const float in = 0.02f, unit = 0.0045f, levels = 0.02f;
  const int8_t none = 0;
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){16, N});
  hn_value *zero = net_constant(m, HONE_DTYPE_I8, 0, NULL, &none),
           *by = net_constant(m, HONE_DTYPE_F32, 0, NULL, &unit),
           *first = net_constant(m, HONE_DTYPE_F32, 0, NULL, &in),
           *later = net_constant(m, HONE_DTYPE_F32, 0, NULL, &levels);
  hn_value *codes = named_op(m, &r, "QuantizeLinear", (hn_value *[]){x, first, zero}, 3), *q = codes;
  for (int layer = 0; layer < r.layers; layer++) {
    for (int i = 0; i < N * N; i++) {
      const int8_t code = (int8_t)(((seed = seed * 1664525u + 1013904223u) >> 24) % 255 - 127);
      w[i] = r.wrong && layer == 0 ? (int8_t)-code : code;
    }
    hn_value *c = net_constant(m, HONE_DTYPE_I8, 2, (const int64_t[]){N, N}, w);
    c = named_op(m, &r, "DequantizeLinear", (hn_value *[]){c, by, zero}, 3);
    x = named_op(m, &r, "DequantizeLinear", (hn_value *[]){q, layer ? later : first, zero}, 3);
    x = named_op(m, &r, "MatMul", (hn_value *[]){x, c}, 2);
    q = named_op(m, &r, "QuantizeLinear", (hn_value *[]){x, later, zero}, 3);
  }
  if (r.ends == VERIFY_TWO) net_output(m, q), q = codes;
  if (r.ends == VERIFY_REAL) q = named_op(m, &r, "DequantizeLinear", (hn_value *[]){q, later, zero}, 3);
  if (r.ends == VERIFY_TURNED)
    q = named_op(
        m, &r, "Reshape",
        (hn_value *[]){q, net_constant(m, HONE_DTYPE_I64, 1, (const int64_t[]){2}, (const int64_t[]){N, 16})},
        2);
  net_finish(m, q);
  return m;
}
