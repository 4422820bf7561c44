/* BERT base as a framework exports it: LayerNorm and GELU spelled out, Linear as MatMul + Add, reshapes by
 * constants. */
#include "model/zoo/common/build.h"

#include <math.h>

enum { LAYERS = 12, HEADS = 12, HEAD_SIZE = 64, VOCABULARY = 30522, POSITIONS = 512 };

typedef struct bert {
  hn_zoo *z;
  int64_t d, ff, heads;
  hn_value *one, *two, *sqrt2, *half, *epsilon, *scale;
} bert;

static hn_value *linear(bert *b, hn_value *x, int64_t in, int64_t out, float gain) {
  hn_zoo *z = b->z;
  hn_value *w = hn_zoo_normal(z, 2, (int64_t[]){in, out}, 0, (float)(gain / sqrt((double)in)));
  hn_value *bias = hn_zoo_normal(z, 1, &out, 0, 0.02f);
  hn_value *y = hn_zoo_op(z, "MatMul", NULL, HN_IN(x, w));
  return hn_zoo_op(z, "Add", NULL, HN_IN(bias, y));
}

static hn_value *mean(hn_zoo *z, hn_value *x) {
  x = hn_zoo_op(z, "ReduceMean", NULL, HN_IN(x));
  hn_zoo_ints(z, "axes", HN_INTS(-1));
  return x;
}

static hn_value *layer_norm(bert *b, hn_value *x) {
  hn_zoo *z = b->z;
  hn_value *m = mean(z, x);
  hn_value *c = hn_zoo_op(z, "Sub", NULL, HN_IN(x, m));
  hn_value *v = hn_zoo_op(z, "Pow", NULL, HN_IN(c, b->two));
  v = mean(z, v);
  v = hn_zoo_op(z, "Add", NULL, HN_IN(v, b->epsilon));
  v = hn_zoo_op(z, "Sqrt", NULL, HN_IN(v));
  hn_value *y = hn_zoo_op(z, "Div", NULL, HN_IN(c, v));
  hn_value *gamma = hn_zoo_normal(z, 1, &b->d, 1, 0.02f);
  hn_value *beta = hn_zoo_normal(z, 1, &b->d, 0, 0.02f);
  y = hn_zoo_op(z, "Mul", NULL, HN_IN(y, gamma));
  return hn_zoo_op(z, "Add", NULL, HN_IN(y, beta));
}

static hn_value *transpose(hn_zoo *z, hn_value *x, int64_t i, int64_t j) {
  x = hn_zoo_op(z, "Transpose", NULL, HN_IN(x));
  hn_zoo_ints(z, "perm", HN_INTS(0, 2, i, j));
  return x;
}

/* batch x S x D -> batch x heads x S x 64, or its last two dimensions swapped for the keys. */
static hn_value *split_heads(hn_zoo *z, hn_value *x, hn_value *shape, bool keys) {
  x = hn_zoo_op(z, "Reshape", NULL, HN_IN(x, shape));
  return keys ? transpose(z, x, 3, 1) : transpose(z, x, 1, 3);
}

static hn_value *attention(bert *b, hn_value *x, hn_value *mask, hn_value *split, hn_value *join) {
  hn_zoo *z = b->z;
  hn_value *q = linear(b, x, b->d, b->d, 1);
  hn_value *k = linear(b, x, b->d, b->d, 1);
  hn_value *v = linear(b, x, b->d, b->d, 1);
  q = split_heads(z, q, split, false);
  k = split_heads(z, k, split, true);
  v = split_heads(z, v, split, false);
  hn_value *a = hn_zoo_op(z, "MatMul", NULL, HN_IN(q, k));
  a = hn_zoo_op(z, "Div", NULL, HN_IN(a, b->scale));
  a = hn_zoo_op(z, "Add", NULL, HN_IN(a, mask));
  a = hn_zoo_op(z, "Softmax", NULL, HN_IN(a));
  hn_zoo_int(z, "axis", -1);
  a = hn_zoo_op(z, "MatMul", NULL, HN_IN(a, v));
  a = transpose(z, a, 1, 3);
  a = hn_zoo_op(z, "Reshape", NULL, HN_IN(a, join));
  a = linear(b, a, b->d, b->d, 0.5f);
  a = hn_zoo_op(z, "Add", NULL, HN_IN(a, x));
  return layer_norm(b, a);
}

static hn_value *feed_forward(bert *b, hn_value *x) {
  hn_zoo *z = b->z;
  hn_value *f = linear(b, x, b->d, b->ff, 1);
  hn_value *e = hn_zoo_op(z, "Div", NULL, HN_IN(f, b->sqrt2));
  e = hn_zoo_op(z, "Erf", NULL, HN_IN(e));
  e = hn_zoo_op(z, "Add", NULL, HN_IN(e, b->one));
  f = hn_zoo_op(z, "Mul", NULL, HN_IN(f, e));
  f = hn_zoo_op(z, "Mul", NULL, HN_IN(f, b->half));
  f = linear(b, f, b->ff, b->d, 0.5f);
  f = hn_zoo_op(z, "Add", NULL, HN_IN(f, x));
  return layer_norm(b, f);
}

static hn_value *lookup(hn_zoo *z, int64_t rows, int64_t d, hn_value *ids) {
  hn_value *table = hn_zoo_normal(z, 2, (int64_t[]){rows, d}, 0, 0.5f);
  return hn_zoo_op(z, "Gather", NULL, HN_IN(table, ids));
}

static hn_value *positions(hn_zoo *z) {
  int64_t id[POSITIONS];
  for (int64_t i = 0; i < POSITIONS; i++) id[i] = i;
  return hn_zoo_tensor_i64(z, NULL, 2, (int64_t[]){1, z->opt.size}, id);
}

/* 0 where the mask is 1, -10000 where it is 0; batch x 1 x 1 x S. */
static hn_value *attention_mask(bert *b, hn_value *mask) {
  hn_zoo *z = b->z;
  hn_value *axes = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){2}, (int64_t[]){1, 2});
  hn_value *m = hn_zoo_op(z, "Unsqueeze", NULL, HN_IN(mask, axes));
  m = hn_zoo_op(z, "Cast", NULL, HN_IN(m));
  hn_zoo_int(z, "to", HONE_DTYPE_F32);
  m = hn_zoo_op(z, "Sub", NULL, HN_IN(b->one, m));
  hn_value *low = hn_zoo_f32(z, -10000);
  return hn_zoo_op(z, "Mul", NULL, HN_IN(m, low));
}

static void outputs(bert *b, hn_value *x) {
  hn_zoo *z = b->z;
  hn_value *last = hn_zoo_op(z, "Identity", "last_hidden_state", HN_IN(x));
  hn_zoo_rename(z, "out");
  z->names--; /* this node and the last one were named by hand */
  hn_value *first = hn_zoo_tensor_i64(z, NULL, 0, NULL, &(int64_t){0});
  hn_value *c = hn_zoo_op(z, "Gather", NULL, HN_IN(x, first));
  hn_zoo_int(z, "axis", 1);
  hn_value *w = hn_zoo_normal(z, 2, (int64_t[]){b->d, b->d}, 0, (float)(1 / sqrt((double)b->d)));
  hn_value *bias = hn_zoo_zeros(z, b->d);
  c = hn_zoo_op(z, "Gemm", NULL, HN_IN(c, w, bias));
  hn_zoo_int(z, "transB", 1);
  hn_value *pooled = hn_zoo_op(z, "Tanh", "pooler_output", HN_IN(c));
  hn_zoo_rename(z, "pool");
  hn_zoo_output(z, last, 3, (int64_t[]){z->batch, z->opt.size, b->d});
  hn_zoo_output(z, pooled, 2, (int64_t[]){z->batch, b->d});
}

static void build(hn_zoo *z) {
  bert b = {.z = z, .heads = hn_zoo_scaled(z, HEADS)};
  b.d = b.heads * HEAD_SIZE;
  b.ff = 4 * b.d;
  int64_t dims[2] = {z->batch, z->opt.size};
  hn_value *ids = hn_zoo_input(z, "input_ids", HONE_DTYPE_I64, 2, dims);
  hn_value *mask = hn_zoo_input(z, "attention_mask", HONE_DTYPE_I64, 2, dims);
  hn_value *types = hn_zoo_input(z, "token_type_ids", HONE_DTYPE_I64, 2, dims);
  b.one = hn_zoo_f32(z, 1);
  b.two = hn_zoo_f32(z, 2);
  b.sqrt2 = hn_zoo_f32(z, (float)M_SQRT2);
  b.half = hn_zoo_f32(z, 0.5f);
  b.epsilon = hn_zoo_f32(z, 1e-12f);
  b.scale = hn_zoo_f32(z, (float)sqrt(HEAD_SIZE));
  mask = attention_mask(&b, mask);
  hn_value *x = lookup(z, VOCABULARY, b.d, ids);
  hn_value *t = lookup(z, 2, b.d, types);
  x = hn_zoo_op(z, "Add", NULL, HN_IN(x, t));
  hn_value *table = hn_zoo_normal(z, 2, (int64_t[]){POSITIONS, b.d}, 0, 0.5f);
  hn_value *place = positions(z);
  t = hn_zoo_op(z, "Gather", NULL, HN_IN(table, place));
  x = hn_zoo_op(z, "Add", NULL, HN_IN(x, t));
  x = layer_norm(&b, x);
  hn_value *split = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){4}, (int64_t[]){0, 0, b.heads, HEAD_SIZE});
  hn_value *join = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){3}, (int64_t[]){0, 0, b.d});
  for (int i = 0; i < LAYERS; i++) {
    x = attention(&b, x, mask, split, join);
    x = feed_forward(&b, x);
  }
  outputs(&b, x);
}

const struct hn_zoo_unit hn_zoo_bert_base = {
    .name = "bert_base",
    .about = "BERT base encoder, sequence 128, 109 M parameters, 22.3 GFLOP",
    .size = 128,
    .multiple = 1,
    .max_size = POSITIONS,
    .build = build,
};
