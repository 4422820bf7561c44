/* MatMul(a, DequantizeLinear(constant codes, scales, zeros))  ->  MatMulNBits(a, codes, scales, zeros)
 * Gemm(a, ...) + c                                            ->  the same, with its bias
 *
 * Weights of 4 and 8 bits stay codes: what multiplies widens them as it reads them (kernels/coded). Not where
 * a is dequantised, too: sums of codes are integers then. One scale for all, for each column or for blocks
 * along K: a column's is that of each of its blocks. On processors, and of 4 bits on accelerators that read
 * codes: what has 8 there is multiplied by decoded weights, at the rate of all tensor cores. */
#include "model/ir/bytes.h"
#include "model/ops/microsoft/codes/nbits.h"
#include "optimize/passes/common/pass.h"

#include <math.h>

enum { LEAST = 1024, BLOCK_LEAST = 16, BLOCK_MOST = 256, FEW = 16 };

typedef struct weights {
  hn_nbits to;          /* the operator's form */
  hone_node *dq, *turn; /* turn: a Transpose between, or NULL */
  bool turned;          /* codes lie [N][K] */
  uint32_t flip;        /* turns signed codes into unsigned ones */
  int64_t from_block;   /* of K, with one scale; K: one for a column, or all */
  bool one;             /* one scale for all */
  const hone_tensor *codes, *scales, *zeros;
} weights;

/* Made of codes, seen through what changes no number. */
static bool is_dequantised(const hn_value *v) {
  enum { MOST_VIEWS = 16 };
  for (int i = 0; i < MOST_VIEWS && v && v->producer; i++) {
    if (hn_is_op(v->producer, "DequantizeLinear")) return true;
    if (!v->producer->op || !(v->producer->op->flags & (HONE_OP_VIEW | HONE_OP_MOVE))) return false;
    v = v->producer->n_in ? v->producer->in[0] : NULL;
  }
  return false;
}

/* Bits of a code; 0: of another type. */
static int64_t bits_of(hone_dtype t) {
  return t == HONE_DTYPE_U4 || t == HONE_DTYPE_I4 ? 4 : t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 ? 8 : 0;
}

/* The largest block that K, or blocks of `from`, are cut into with little left over; 0: none. */
static int64_t block_of(int64_t k, int64_t from) {
  for (int64_t b = BLOCK_MOST; b >= BLOCK_LEAST; b /= 2) {
    if (from < k && from % b == 0) return b;
    if (from >= k && ((k + b - 1) / b * b - k <= k / 16 || b == BLOCK_LEAST)) return b;
  }
  return 0;
}

static bool all_finite(const hone_tensor *t) {
  const char *x = t->data;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    float y;
    memcpy(&y, x + (size_t)i * sizeof y, sizeof y); /* at any alignment */
    if (!isfinite(y)) return false;
  }
  return true;
}

static const char *read_weights(const hone_node *n, weights *w) {
  const bool gemm = hn_is_op(n, "Gemm");
  hn_value *v = n->in[1];
  w->turned = gemm && hone_node_int(n, "transB", 0) != 0;
  hone_node *up = v->producer;
  if (up && hn_is_op(up, "Transpose") && up->graph == n->graph && v->desc.rank == 2) {
    size_t count = 0;
    const int64_t *perm = hone_node_ints(up, "perm", &count);
    if (perm && (count != 2 || perm[0] != 1)) return "";
    w->turn = up, w->turned = !w->turned, v = up->in[0];
  }
  w->dq = v->producer;
  if (!w->dq || !hn_is_op(w->dq, "DequantizeLinear") || w->dq->graph != n->graph) return "";
  const hone_node *dq = w->dq;
  if (!bits_of(dq->in[0]->desc.dtype) || v->desc.dtype != HONE_DTYPE_F32 || v->desc.rank != 2) return "";
  w->codes = hn_known(dq->in[0]), w->scales = hn_known(dq->in[1]);
  w->zeros = hn_in(dq, 2) ? hn_known(dq->in[2]) : NULL;
  if (!w->codes) return "";
  if (is_dequantised(n->in[0])) return "its other operand is dequantised, too";
  if (!w->scales || (hn_in(dq, 2) && !w->zeros) || w->scales->desc.dtype != HONE_DTYPE_F32)
    return "scales or zero points are computed, or of other types";
  if (!all_finite(w->scales)) return "a scale is no finite number"; /* each product shows it, not their sum */
  const int64_t rows = v->desc.dim[w->turned], columns = v->desc.dim[!w->turned];
  const int64_t count = hone_desc_count(&w->scales->desc), rank = w->scales->desc.rank;
  if (rows < BLOCK_LEAST || rows * columns < LEAST) return "few weights";
  if (w->zeros && (w->zeros->desc.dtype != w->codes->desc.dtype || hone_desc_count(&w->zeros->desc) != count))
    return "as many zero points as scales are wanted";
  int64_t axis = hone_node_int(dq, "axis", 1), block = hone_node_int(dq, "block_size", 0);
  if (axis < 0) axis += 2;
  const bool along_k = axis == w->turned;
  w->one = count == 1 && block == 0, w->from_block = rows;
  if (block > 0) {
    const int64_t blocks = (rows + block - 1) / block;
    if (!along_k || rank != 2 || w->scales->desc.dim[w->turned] != blocks ||
        w->scales->desc.dim[!w->turned] != columns)
      return "blocks lie along the columns";
    w->from_block = block;
  } else if (!w->one && (along_k || count != columns))
    return "a scale for each row";
  const int64_t to = block_of(rows, w->from_block);
  if (!to) return "blocks of a length that no power of two from 16 on divides";
  const hone_dtype type = w->codes->desc.dtype;
  w->flip = type == HONE_DTYPE_I8 || type == HONE_DTYPE_I4 ? 1u << (bits_of(type) - 1) : 0;
  w->to = (hn_nbits){.rows = rows,
                     .columns = columns,
                     .bits = bits_of(w->codes->desc.dtype),
                     .block = to,
                     .blocks = (rows + to - 1) / to};
  return NULL;
}

/* Where scale and zero point of block b of column c lie. */
static int64_t scale_at(const weights *w, int64_t b, int64_t c) {
  const int64_t blocks = (w->to.rows + w->from_block - 1) / w->from_block,
                i = b * w->to.block / w->from_block;
  return w->one ? 0 : w->turned ? c * blocks + i : i * w->to.columns + c;
}

/* In memory an element has a byte. */
static inline uint32_t code_at(const weights *w, const hone_tensor *t, int64_t i) {
  return (((const uint8_t *)t->data)[i] & ((1u << w->to.bits) - 1)) ^ w->flip;
}

/* A byte of codes k and on: of 4 bits two, where there are two. */
static inline uint8_t byte_at(const weights *w, int64_t k, int64_t c) {
  const int64_t at = w->turned ? c * w->to.rows + k : k * w->to.columns + c,
                next = w->turned ? at + 1 : at + w->to.columns;
  const uint32_t low = code_at(w, w->codes, at);
  if (w->to.bits == 8) return (uint8_t)low;
  return (uint8_t)(low | (k + 1 < w->to.rows ? code_at(w, w->codes, next) << 4 : 0));
}

/* Codes column by column: some columns at a time, so that lines are read whole. */
static void put_codes(const weights *w, uint8_t *to) {
  enum { TOGETHER = 64 };
  const hn_nbits *f = &w->to;
  const int64_t column = f->blocks * f->block * f->bits / 8, each = 8 / f->bits;
  memset(to, 0, (size_t)(column * f->columns));
  for (int64_t c0 = 0; c0 < f->columns; c0 += TOGETHER)
    for (int64_t k = 0; k < f->rows; k += each)
      for (int64_t c = c0; c < f->columns && c < c0 + TOGETHER; c++)
        to[c * column + k / each] = byte_at(w, k, c);
}

static uint32_t zero_at(const weights *w, int64_t b, int64_t c) {
  return w->zeros ? code_at(w, w->zeros, scale_at(w, b, c)) : w->flip;
}

/* Whether any zero point is another than the middle code, which is the operator's own. */
static bool has_zeros(const weights *w) {
  for (int64_t c = 0; c < w->to.columns; c++)
    for (int64_t b = 0; b < w->to.blocks; b++)
      if (zero_at(w, b, c) != 1u << (w->to.bits - 1)) return true;
  return false;
}

static hn_value *room(hn_pass_context *ctx, const hone_node *n, hone_dtype type, int64_t count, void **data) {
  const hone_tensor_desc d = hone_desc(type, 1, &count);
  return hn_make_room(ctx, n->in[1]->name, &d, data);
}

/* The operator's operands 1 to 3; false: out of memory. */
static bool make_operands(hn_pass_context *ctx, const hone_node *n, const weights *w, hn_value **in) {
  const hn_nbits *f = &w->to;
  const int64_t zero_row = (f->blocks * f->bits + 7) / 8, each = 8 / f->bits;
  void *codes, *scales, *zeros;
  if (!(in[1] = room(ctx, n, HONE_DTYPE_U8, f->columns * f->blocks * f->block * f->bits / 8, &codes)) ||
      !(in[2] = room(ctx, n, HONE_DTYPE_F32, f->columns * f->blocks, &scales)))
    return false;
  put_codes(w, codes);
  for (int64_t c = 0; c < f->columns; c++)
    for (int64_t b = 0; b < f->blocks; b++)
      ((float *)scales)[c * f->blocks + b] = hn_f32_at(w->scales->data, scale_at(w, b, c));
  if (!has_zeros(w)) return true;
  if (!(in[3] = room(ctx, n, HONE_DTYPE_U8, f->columns * zero_row, &zeros))) return false;
  memset(zeros, 0, (size_t)(f->columns * zero_row));
  for (int64_t c = 0; c < f->columns; c++)
    for (int64_t b = 0; b < f->blocks; b++)
      ((uint8_t *)zeros)[c * zero_row + b / each] |= (uint8_t)(zero_at(w, b, c) << (b % each * f->bits));
  return true;
}

/* The bias of a Gemm; false: it is something else. */
static bool bias_of(const hone_node *n, int64_t columns, hn_value **bias) {
  *bias = NULL;
  if (!hn_is_op(n, "Gemm")) return true;
  const hn_value *c = hn_in(n, 2);
  if (hone_node_int(n, "transA", 0) || hone_node_float(n, "alpha", 1) != 1.0f) return false;
  if (!c || hone_node_float(n, "beta", 1) == 0.0f) return true;
  if (hone_node_float(n, "beta", 1) != 1.0f || c->desc.rank != 1 || c->desc.dim[0] != columns) return false;
  *bias = n->in[2];
  return true;
}

/* The operator as the model means it: what does not import its domain yet does so from now on. */
static const hone_op_desc *operator_of(hn_pass_context *ctx) {
  static const char domain[] = "com.microsoft";
  hn_model *m = ctx->model;
  const hn_opset import = {domain, 1};
  if (!hn_model_opset(m, domain) && !hn_vec_push(&m->opsets, import)) return hn_pass_memory(ctx), NULL;
  return hn_op_find(m->operators, domain, "MatMulNBits", hn_model_opset(m, domain), NULL);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const hn_optimize_options *o = ctx->options;
  weights w = {0};
  hn_value *in[6] = {NULL};
  if (!o->lowered || !(o->processor || o->codes) || (!hn_is_op(n, "MatMul") && !hn_is_op(n, "Gemm")) ||
      !n->in[1] || n->in[0]->desc.dtype != HONE_DTYPE_F32 || n->in[0]->desc.rank < 1 || !n->in[1]->producer)
    return HN_PASS_NONE;
  const char *why = read_weights(n, &w);
  if (why) return *why ? hn_pass_miss(ctx, "%s", why) : HN_PASS_NONE;
  if (!o->processor && w.to.bits != 4) return hn_pass_miss(ctx, "weights of 8 bits, on an accelerator");
  if (!bias_of(n, w.to.columns, &in[5]))
    return hn_pass_miss(ctx, "a Gemm with factors, or a C that is no bias");
  const hone_tensor_desc *a = &n->in[0]->desc;
  if (o->processor && o->coarse && (!hone_desc_known(a) || hone_desc_count(a) >= (FEW + 1) * w.to.rows))
    return hn_pass_miss(ctx, "bf16 products of many rows read no codes");
  const hone_op_desc *op = operator_of(ctx);
  if (!op) return ctx->status == HONE_OK ? HN_PASS_NONE : HN_PASS_FAIL;
  in[0] = n->in[0];
  hn_value *y = hn_value_create(ctx->graph, NULL);
  if (!y || !make_operands(ctx, n, &w, in)) return hn_pass_memory(ctx);
  y->desc = n->out[0]->desc;
  hone_node *m = hn_node_create(ctx->graph, n, "MatMulNBits", "com.microsoft", n->name, in,
                                in[5]   ? 6
                                : in[3] ? 4
                                        : 3,
                                &y, 1);
  if (!m || !hn_node_set_int(m, "K", w.to.rows) || !hn_node_set_int(m, "N", w.to.columns) ||
      !hn_node_set_int(m, "bits", w.to.bits) || !hn_node_set_int(m, "block_size", w.to.block))
    return hn_pass_memory(ctx);
  m->op = op;
  if (!hn_inherit(ctx, m, w.dq) || (w.turn && !hn_inherit(ctx, m, w.turn)) || !hn_inherit(ctx, m, n))
    return HN_PASS_FAIL;
  hn_pass_hit(ctx, "weights of %lld bits stay codes", (long long)w.to.bits);
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 2);
  hn_model_drop_pages(ctx->model, w.codes->data, (size_t)hone_desc_bytes(&w.codes->desc));
  return HN_PASS_HIT;
}

HN_PASS(keep_weight_codes) = {
    .name = "keep_weight_codes",
    .level = 1,
    .about = "MatMul, Gemm of dequantised constants -> MatMulNBits",
    .visit = visit,
    .roots = HN_ROOTS("MatMul", "Gemm"),
};
