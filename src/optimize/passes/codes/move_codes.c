/* M(DequantizeLinear(x))                 ->  DequantizeLinear(M(x))
 * QuantizeLinear(V(y))                   ->  V(QuantizeLinear(y))
 * QuantizeLinear(Concat(a, b, ...))      ->  Concat(QuantizeLinear(a), QuantizeLinear(b), ...)
 * QuantizeLinear(DequantizeLinear(x))    ->  x                      of the same codes
 * MaxPool(DequantizeLinear(x))           ->  DequantizeLinear(QuantizeLinear(MaxPool(DequantizeLinear(x))))
 *
 * What moves elements moves codes, a quarter of the bytes: M any of the list below, V those that keep all
 * elements, and a Resize that repeats them. One scale and zero point each; a Transpose may have one a
 * channel. Exact. What attention reads and writes in place is left where it is: nothing is moved there at
 * all. */
#include "optimize/match/attention.h"
#include "optimize/passes/common/codes.h"

#include <math.h>

static const hn_code_move concat_moves = {"Concat", HN_MOVE_SAME_COUNT};

/* ---- making nodes */

static hn_value *made(hn_pass_context *ctx, hone_node *at, const char *op, hn_value *const *in, uint32_t n_in,
                      const hone_tensor_desc *like, const hone_node *from) {
  hone_node *m = hn_make_node(ctx, at, op, in, n_in, like);
  if (!m || !hn_inherit(ctx, m, from)) return NULL;
  if (!hn_node_copy_attrs(m, from)) return hn_pass_memory(ctx), NULL;
  return m->out[0];
}

static hone_tensor_desc typed(const hn_value *v, hone_dtype dtype) {
  hone_tensor_desc d = v->desc;
  d.dtype = dtype;
  return d;
}

/* Q or DQ of v with the parameters of `like`. */
static hn_value *again(hn_pass_context *ctx, hone_node *at, hn_value *v, const hone_node *like,
                       hone_dtype dtype) {
  const hone_tensor_desc d = typed(v, dtype);
  return made(ctx, at, like->op_type, (hn_value *const[]){v, like->in[1], hn_zero_of(like)},
              hn_zero_of(like) ? 3 : 2, &d, like);
}

/* ---- M(DequantizeLinear(x)) */

static bool moves_codes(const hone_node *n, const hn_code_move *m, hone_dtype dtype) {
  if (!n->op || (n->op->types && !(n->op->types & HONE_TYPES(dtype)))) return false;
  if (n->n_out != 1 && !(m->what & HN_MOVE_MANY_OUT)) return false;
  if (m->what & HN_MOVE_RESIZES) {
    const char *mode = hone_node_string(n, "mode", "nearest"),
               *place = hone_node_string(n, "coordinate_transformation_mode", "half_pixel");
    return !strcmp(mode, "nearest") && strcmp(place, "tf_crop_and_resize") != 0;
  }
  return true;
}

/* The code that means what a Pad pads with, NULL where it repeats elements; false where none does. */
static bool padding(hn_pass_context *ctx, const hone_node *n, hn_code_map x, hn_value **out) {
  const hone_tensor_desc one = hone_desc(x.dtype, 0, NULL);
  double real = 0;
  if (strcmp(hone_node_string(n, "mode", "constant"), "constant") != 0) {
    *out = NULL;
    return true;
  }
  if (n->opset < 11 || (hn_in(n, 2) && !hn_constant_scalar(n->in[2], &real))) return false;
  const double code = rint(real / (double)x.scale) + x.zero, lo = x.dtype == HONE_DTYPE_I8 ? -128 : 0,
               hi = x.dtype == HONE_DTYPE_I8 ? 127 : 255;
  if (!(code >= lo && code <= hi) || (float)(code - x.zero) * x.scale != (float)real) return false;
  const uint8_t byte = (uint8_t)(int32_t)code;
  *out = hn_make_constant(ctx, n->name, &one, &byte);
  return true;
}

/* Where a Transpose brings the axis of one scale a channel; -1: nowhere. */
static int64_t new_axis(const hone_node *n, const hone_node *dq) {
  size_t count = 0;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  const int64_t rank = dq->in[0]->desc.rank;
  int64_t axis = hone_node_int(dq, "axis", 1);
  if (!hn_is_op(n, "Transpose") || rank < 1 || (perm && (int64_t)count != rank)) return -1;
  if (axis < 0) axis += rank;
  for (int64_t i = 0; i < rank; i++)
    if ((perm ? perm[i] : rank - 1 - i) == axis) return i;
  return -1;
}

/* n with x in the place of its data, and DequantizeLinear behind each output. */
static hn_pass_result sink(hn_pass_context *ctx, hone_node *n, const hone_node *dq, int64_t axis, bool pads,
                           hn_value *pad) {
  enum { MAX_IN = 8, MAX_OUT = 64 };
  const hone_dtype dtype = dq->in[0]->desc.dtype;
  hn_value *in[MAX_IN], *codes[MAX_OUT];
  if (n->n_in > MAX_IN || n->n_out > MAX_OUT) return HN_PASS_NONE;
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = n->in[i];
  in[0] = dq->in[0];
  uint32_t n_in = n->n_in;
  if (pad && n_in < 3) n_in = 3;
  if (pads && n_in > 2) in[2] = pad; /* NULL: a number that nothing is padded with is left out */
  if (pads && n_in == 3 && !pad) n_in = 2;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!(codes[i] = hn_value_create(ctx->graph, NULL))) return hn_pass_memory(ctx);
    codes[i]->desc = typed(n->out[i], dtype);
  }
  hone_node *m = hn_node_create(ctx->graph, n, n->op_type, n->domain, NULL, in, n_in, codes, n->n_out);
  if (!m) return hn_pass_memory(ctx);
  m->op = n->op;
  if (!hn_inherit(ctx, m, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(m, n)) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "%s moves codes", n->op_type);
  for (uint32_t i = 0; i < n->n_out; i++) {
    hn_value *real = again(ctx, n, codes[i], dq, HONE_DTYPE_F32);
    if (!real) return HN_PASS_FAIL;
    if (axis >= 0 && !hn_node_set_int(real->producer, "axis", axis)) return hn_pass_memory(ctx);
    if (!hn_replace(ctx, n->out[i], real)) return HN_PASS_FAIL;
  }
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

static hn_pass_result move_dequantised(hn_pass_context *ctx, hone_node *n, const hn_code_move *m) {
  const hone_node *dq = n->n_in ? hn_codes_behind(n->in[0], false) : NULL;
  if (!dq || !moves_codes(n, m, dq->in[0]->desc.dtype) || hn_attention_moves(n)) return HN_PASS_NONE;
  int64_t axis = -1;
  hn_value *pad = NULL;
  if (hone_desc_count(&dq->in[1]->desc) != 1 && (axis = new_axis(n, dq)) < 0) return HN_PASS_NONE;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (!n->out[i]) return HN_PASS_NONE;
  if (m->what & HN_MOVE_PADS) {
    if (!padding(ctx, n, hn_code_map_of(dq, dq->in[0]), &pad))
      return hn_pass_miss(ctx, "no code means what it pads with");
    if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  }
  return sink(ctx, n, dq, axis, m->what & HN_MOVE_PADS, pad);
}

/* The largest of numbers that codes mean has a code, which readers on codes want: lowering makes one step of
 * codes of it. */
static hn_pass_result keep_codes(hn_pass_context *ctx, hone_node *n) {
  const hone_node *dq = hn_codes_behind(n->in[0], true);
  hn_value *y = n->n_out == 1 ? n->out[0] : NULL;
  if (!dq || !y || y->is_output || !y->users.len || !hone_desc_known(&y->desc)) return HN_PASS_NONE;
  for (size_t i = 0; i < y->users.len; i++)
    if (hn_is_op(y->users.ptr[i].node, "QuantizeLinear") || y->users.ptr[i].node->graph != n->graph)
      return HN_PASS_NONE;
  const hn_code_map codes = hn_code_map_of(dq, dq->in[0]);
  if (!hn_code_map_same(codes, codes)) return HN_PASS_NONE; /* an odd scale */
  const hone_tensor_desc coded = typed(y, codes.dtype);
  const hone_tensor_desc one = hone_desc(codes.dtype, 0, NULL);
  const uint8_t byte = (uint8_t)codes.zero;
  hn_value *zero = hn_zero_of(dq);
  if (!zero && !(zero = hn_make_constant(ctx, n->name, &one, &byte))) return HN_PASS_FAIL;
  hone_node *pool = hn_make_node(ctx, n, "MaxPool", n->in, 1, &y->desc);
  if (!pool || !hn_inherit(ctx, pool, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(pool, n)) return hn_pass_memory(ctx);
  hone_node *q =
      hn_make_node(ctx, n, "QuantizeLinear", (hn_value *const[]){pool->out[0], dq->in[1], zero}, 3, &coded);
  if (!q || !hn_inherit(ctx, q, n)) return HN_PASS_FAIL;
  hone_node *real =
      hn_make_node(ctx, n, "DequantizeLinear", (hn_value *const[]){q->out[0], dq->in[1], zero}, 3, &y->desc);
  if (!real || !hn_inherit(ctx, real, n)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "MaxPool keeps codes");
  if (!hn_replace(ctx, y, real->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

/* ---- QuantizeLinear */

static bool read_by(const hn_value *v, const hone_node *n) {
  return !v->is_output && v->users.len == 1 && v->users.ptr[0].node == n;
}

static hn_pass_result hoist(hn_pass_context *ctx, hone_node *q, hone_node *move) {
  const hone_dtype dtype = q->out[0]->desc.dtype;
  hn_value *codes = again(ctx, move, move->in[0], q, dtype), *in[8];
  if (!codes) return HN_PASS_FAIL;
  for (uint32_t i = 0; i < move->n_in; i++) in[i] = i ? move->in[i] : codes;
  hn_value *y = made(ctx, move, move->op_type, in, move->n_in, &q->out[0]->desc, move);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%s moves codes", move->op_type);
  if (!hn_replace(ctx, q->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(q, 1);
  return HN_PASS_HIT;
}

static hn_pass_result split_concat(hn_pass_context *ctx, hone_node *q, hone_node *concat) {
  const hone_dtype dtype = q->out[0]->desc.dtype;
  bool any = false;
  for (uint32_t i = 0; i < concat->n_in; i++) any = any || hn_codes_behind(concat->in[i], true);
  if (!any || !moves_codes(concat, &concat_moves, dtype)) return HN_PASS_NONE;
  hn_value **in = HN_NEW_ARRAY(ctx->scratch, hn_value *, concat->n_in);
  if (!in) return hn_pass_memory(ctx);
  for (uint32_t i = 0; i < concat->n_in; i++)
    if (!(in[i] = again(ctx, concat, concat->in[i], q, dtype))) return HN_PASS_FAIL;
  hn_value *y = made(ctx, concat, "Concat", in, concat->n_in, &q->out[0]->desc, concat);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "Concat of codes, each part in those of the result");
  if (!hn_replace(ctx, q->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(q, 2);
  return HN_PASS_HIT;
}

/* Whether n makes at least as many elements as it has: quantising before it is no more work. */
static bool grows(const hone_node *n) {
  const hone_tensor_desc *x = &n->in[0]->desc, *y = &n->out[0]->desc;
  return hone_desc_known(x) && hone_desc_known(y) && hone_desc_count(y) >= hone_desc_count(x);
}

static hn_pass_result move_quantise(hn_pass_context *ctx, hone_node *q) {
  hone_node *p = q->in[0]->producer;
  if (!p || p->graph != q->graph) return HN_PASS_NONE;
  const hone_node *dq = hn_codes_behind(q->in[0], true);
  if (dq) {
    hn_value *x = dq->in[0];
    if (!hn_code_map_same(hn_code_map_of(dq, x), hn_code_map_of(q, q->out[0])) ||
        !hn_can_replace(q->out[0], x))
      return HN_PASS_NONE;
    hn_pass_hit(ctx, "the same codes");
    if (!hn_replace(ctx, q->out[0], x)) return HN_PASS_FAIL;
    hn_remove_unread(q, 1);
    return HN_PASS_HIT;
  }
  if (!read_by(q->in[0], q)) return HN_PASS_NONE;
  if (hn_is_op(p, "Concat")) return split_concat(ctx, q, p);
  const hn_code_move *m = hn_code_move_of(p);
  const bool keeps = m && (m->what == HN_MOVE_SAME_COUNT || (m->what == HN_MOVE_RESIZES && grows(p)));
  return keeps && p->n_in <= 8 && moves_codes(p, m, q->out[0]->desc.dtype) && !hn_attention_moves(p)
             ? hoist(ctx, q, p)
             : HN_PASS_NONE;
}

/* Concat of tensors of the same codes. */
static hn_pass_result join(hn_pass_context *ctx, hone_node *n) {
  const hone_node *first = n->n_in ? hn_codes_behind(n->in[0], true) : NULL;
  if (!first || !moves_codes(n, &concat_moves, first->in[0]->desc.dtype)) return HN_PASS_NONE;
  const hn_code_map codes = hn_code_map_of(first, first->in[0]);
  hn_value **in = HN_NEW_ARRAY(ctx->scratch, hn_value *, n->n_in);
  if (!in) return hn_pass_memory(ctx);
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hone_node *dq = hn_codes_behind(n->in[i], true);
    if (!dq || !hn_code_map_same(codes, hn_code_map_of(dq, dq->in[0]))) return HN_PASS_NONE;
    in[i] = dq->in[0];
  }
  const hone_tensor_desc d = typed(n->out[0], codes.dtype);
  hn_value *y = made(ctx, n, "Concat", in, n->n_in, &d, n),
           *real = y ? again(ctx, n, y, first, HONE_DTYPE_F32) : NULL;
  if (!real) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "Concat moves codes");
  if (!hn_replace(ctx, n->out[0], real)) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered) return HN_PASS_NONE;
  if (hn_quantises(n)) return move_quantise(ctx, n);
  if (hn_is_op(n, "Concat")) return join(ctx, n);
  if (hn_is_op(n, "MaxPool")) return keep_codes(ctx, n);
  const hn_code_move *m = hn_code_move_of(n);
  return m ? move_dequantised(ctx, n, m) : HN_PASS_NONE;
}

HN_PASS(move_codes) = {.name = "move_codes",
                       .level = 2,
                       .about = "M(DequantizeLinear(x)) -> DequantizeLinear(M(x)) where M moves elements",
                       .visit = visit};
