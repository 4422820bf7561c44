/* See decoder.h. */
#include "decoder_parts.h"

#include "base/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* An operator of com.microsoft, or ONNX's own, with several outputs. */
hone_node *decoder_node(decoder_builder *b, const char *type, const char *domain, hn_value *const *in,
                        uint32_t n, uint32_t n_out) {
  hn_value *out[3];
  for (uint32_t i = 0; i < n_out; i++) out[i] = hn_value_create(b->m->graph, NULL);
  hone_node *made = hn_node_create(b->m->graph, NULL, type, domain, NULL, in, n, out, n_out);
  assert_non_null(made);
  const uint32_t origin = (uint32_t)b->m->source.len;
  assert_true(hn_vec_push(&b->m->source, (hn_source_node){made->name, made->op_type}));
  assert_true(hn_node_set_origin(made, &origin, 1));
  return made;
}

hn_value *decoder_op(decoder_builder *b, const char *type, hn_value *x, hn_value *y) {
  return net_op(b->m, type, (hn_value *[]){x, y}, y ? 2 : 1);
}

hn_value *decoder_to(decoder_builder *b, hn_value *x, hone_dtype type) {
  hn_value *y = decoder_op(b, "Cast", x, NULL);
  assert_true(hn_node_set_int(y->producer, "to", type));
  return y;
}

/* Of the model's type, as a file would have it. */
static hn_value *constant(decoder_builder *b, int32_t rank, const int64_t *dim, const float *x) {
  if (!b->z->halves) return net_constant(b->m, HONE_DTYPE_F32, rank, dim, x);
  int64_t n = 1;
  for (int32_t i = 0; i < rank; i++) n *= dim[i];
  uint16_t *h = malloc((size_t)n * sizeof *h);
  assert_non_null(h);
  for (int64_t i = 0; i < n; i++) h[i] = hn_f32_to_f16(x[i]);
  hn_value *v = net_constant(b->m, HONE_DTYPE_F16, rank, dim, h);
  free(h);
  return v;
}

/* Weights of unit gain. */
static hn_value *weights(decoder_builder *b, int64_t rows, int64_t columns, double gain) {
  const int64_t n = rows * columns;
  float *w = malloc((size_t)n * sizeof *w);
  assert_non_null(w);
  for (int64_t i = 0; i < n; i++)
    w[i] = (float)(gain * sqrt(12.0) *
                   ((double)((b->seed = b->seed * 1664525u + 1013904223u) >> 8) / 16777216.0 - 0.5));
  hn_value *v = constant(b, 2, (const int64_t[]){rows, columns}, w);
  free(w);
  return v;
}

/* Of poison the last id's row is infinite. */
static hn_value *embedding(decoder_builder *b) {
  hn_value *table = weights(b, b->z->vocabulary, b->d, 1);
  if (!b->z->poison) return table;
  const int64_t rows[2] = {b->z->vocabulary, 1};
  float *last = calloc((size_t)b->z->vocabulary, sizeof *last);
  assert_non_null(last);
  last[b->z->vocabulary - 1] = INFINITY;
  hn_value *v = net_constant(b->m, HONE_DTYPE_F32, 2, rows, last);
  free(last);
  return decoder_op(b, "Add", table, v);
}

hn_value *decoder_linear(decoder_builder *b, hn_value *x, int64_t rows, int64_t columns) {
  return decoder_op(b, "MatMul", x, weights(b, rows, columns, 1 / sqrt((double)rows)));
}

static hn_value *normal(decoder_builder *b, hn_value *x) {
  float *ones = malloc((size_t)b->d * sizeof *ones);
  assert_non_null(ones);
  for (int64_t i = 0; i < b->d; i++) ones[i] = 1;
  hn_value *gamma = constant(b, 1, &b->d, ones);
  free(ones);
  return decoder_op(b, "LayerNormalization", x, gamma);
}

static void tables(decoder_builder *b) {
  const int64_t half = b->z->size / 2, dim[2] = {b->z->positions, half};
  float *c = malloc((size_t)(dim[0] * half) * sizeof *c), *s = malloc((size_t)(dim[0] * half) * sizeof *s);
  assert_true(c && s);
  for (int64_t p = 0; p < dim[0]; p++)
    for (int64_t i = 0; i < half; i++) {
      const double angle = (double)p * pow(10000, -(double)i / (double)half);
      c[p * half + i] = (float)cos(angle), s[p * half + i] = (float)sin(angle);
    }
  b->cos = constant(b, 2, dim, c);
  b->sin = constant(b, 2, dim, s);
  free(c);
  free(s);
}

/* seqlens_k and total_sequence_length of the mask, as exporters write them. */
static void lengths(decoder_builder *b) {
  if (b->z->lengths) {
    b->lengths = net_input(b->m, "seqlens_k", HONE_DTYPE_I32, 1, &b->batch);
    b->total = net_input(b->m, "total_sequence_length", HONE_DTYPE_I32, 1, (const int64_t[]){1});
    return;
  }
  const int64_t wide = hn_model_symbol(b->m, "total"), one = 1;
  hn_value *mask = net_input(b->m, "attention_mask", HONE_DTYPE_I64, 2, (const int64_t[]){b->batch, wide}),
           *axis = net_constant(b->m, HONE_DTYPE_I64, 1, &one, &one),
           *number = net_constant(b->m, HONE_DTYPE_I64, 0, NULL, &one);
  hn_value *sum = decoder_op(b, "ReduceSum", mask, axis);
  assert_true(hn_node_set_int(sum->producer, "keepdims", 0));
  b->lengths = decoder_to(b, decoder_op(b, "Sub", sum, number), HONE_DTYPE_I32);
  b->total =
      decoder_to(b, decoder_op(b, "Gather", decoder_op(b, "Shape", mask, NULL), number), HONE_DTYPE_I32);
}

static void caches(decoder_builder *b) {
  static const char *const kind[] = {"key", "value"};
  const int64_t dim[4] = {b->batch, b->z->kv_heads, b->past, b->z->size};
  char name[64];
  b->cache = malloc((size_t)b->z->layers * 2 * sizeof *b->cache);
  assert_non_null(b->cache);
  for (int64_t i = 0; i < 2 * b->z->layers; i++) {
    snprintf(name, sizeof name, "past_key_values.%d.%s", (int)(i / 2), kind[i % 2]);
    b->cache[i] = net_input(b->m, name, b->z->halves ? HONE_DTYPE_F16 : HONE_DTYPE_F32, 4, dim);
  }
}

static hn_value *grouped(decoder_builder *b, hn_value *q, hn_value *k, hn_value *v, hn_value *const past[2],
                         hn_value *present[2]) {
  hone_node *n = decoder_node(b, "GroupQueryAttention", "com.microsoft",
                              (hn_value *[]){q, k, v, past[0], past[1], b->lengths, b->total, b->cos, b->sin},
                              b->z->places ? 7 : 9, 3);
  assert_true(hn_node_set_int(n, "num_heads", b->z->heads) &&
              hn_node_set_int(n, "kv_num_heads", b->z->kv_heads));
  assert_true(b->z->places || hn_node_set_int(n, "do_rotary", 1));
  present[0] = n->out[1], present[1] = n->out[2];
  return n->out[0];
}

static hn_value *attention(decoder_builder *b, hn_value *x, int64_t layer, hn_value *present[2]) {
  const int64_t kv = b->z->kv_heads * b->z->size;
  hn_value *const *past = b->cache + 2 * layer, *q = decoder_linear(b, x, b->d, b->d),
                  *k = decoder_linear(b, x, b->d, kv), *v = decoder_linear(b, x, b->d, kv),
                  *y = b->z->form ? decoder_own_attention(b, q, k, v, past, present)
                                  : grouped(b, q, k, v, past, present);
  return decoder_linear(b, y, b->d, b->d);
}

static hn_value *forward(decoder_builder *b, hn_value *x) {
  hn_value *f = decoder_linear(b, x, b->d, 4 * b->d);
  return decoder_linear(b, decoder_op(b, "Mul", f, decoder_op(b, "Sigmoid", f, NULL)), 4 * b->d, b->d);
}

hn_model *decoder_build(const decoder_size *z) {
  hn_model *m = net_begin();
  decoder_builder b = {.m = m, .z = z, .d = z->heads * z->size, .seed = z->seed};
  hn_value *present[2];
  assert_true(hn_vec_push(&m->opsets, (hn_opset){"com.microsoft", 1}));
  b.batch = z->single ? 1 : hn_model_symbol(m, "batch"), b.past = hn_model_symbol(m, "past");
  const int64_t tokens = hn_model_symbol(m, "tokens"), dim[2] = {b.batch, tokens};
  hn_value *ids = net_input(m, "input_ids", HONE_DTYPE_I64, 2, dim);
  caches(&b);
  if (z->form)
    decoder_own_begin(&b, ids);
  else
    lengths(&b);
  hn_value *x = decoder_op(&b, "Gather", embedding(&b), ids);
  if (z->places && !b.places) b.places = net_input(m, "position_ids", HONE_DTYPE_I64, 2, dim);
  if (z->places)
    x = decoder_op(&b, "Add", x, decoder_op(&b, "Gather", weights(&b, z->positions, b.d, 1), b.places));
  else
    tables(&b);
  hn_value **all = malloc((size_t)z->layers * 2 * sizeof *all);
  assert_non_null(all);
  for (int64_t i = 0; i < z->layers; i++) {
    x = decoder_op(&b, "Add", x, attention(&b, normal(&b, x), i, present));
    all[2 * i] = present[0], all[2 * i + 1] = present[1];
    x = decoder_op(&b, "Add", x, forward(&b, normal(&b, x)));
  }
  hn_value *logits = decoder_linear(&b, normal(&b, x), b.d, z->vocabulary);
  logits->name = "logits";
  net_output(m, logits);
  for (int64_t i = 0; i + 1 < 2 * z->layers; i++) net_output(m, all[i]);
  net_finish(m, all[2 * z->layers - 1]);
  free(all);
  free(b.cache);
  return m;
}
