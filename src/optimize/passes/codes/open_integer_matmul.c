/* MatMulIntegerToFloat(a, b)    ->  Cast(MatMulInteger(a, b)) (a_scale b_scale) + bias
 * DynamicQuantizeMatMul(a, b)   ->  the same of DynamicQuantizeLinear(a)
 *
 * Operators of com.microsoft, spelled out as exporters write dynamic quantisation: lowering makes one step of
 * that (lower/integer_sums.c). */
#include "optimize/passes/common/pass.h"

typedef struct product {
  hn_value *a, *b, *a_scale, *b_scale, *a_zero, *b_zero, *bias;
} product;

static hn_value *made(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                      const hone_tensor_desc *like) {
  hone_node *m = hn_make_node(ctx, n, op, in, n_in, like);
  return m && hn_inherit(ctx, m, n) ? m->out[0] : NULL;
}

static bool quantise(hn_pass_context *ctx, hone_node *n, product *p) {
  hn_value *out[3];
  for (int i = 0; i < 3; i++) {
    out[i] = hn_value_create(ctx->graph, NULL);
    if (!out[i]) return hn_pass_memory(ctx), false;
    const hone_tensor_desc *like = &p->a->desc;
    out[i]->desc = hone_desc(i == 1 ? HONE_DTYPE_F32 : HONE_DTYPE_U8, i ? 0 : like->rank, like->dim);
  }
  hone_node *q = hn_node_create(ctx->graph, n, "DynamicQuantizeLinear", "", NULL, &p->a, 1, out, 3);
  if (!q) return hn_pass_memory(ctx), false;
  q->op = hn_op_find(ctx->model->operators, "", q->op_type, q->opset, NULL);
  p->a = out[0], p->a_scale = out[1], p->a_zero = out[2];
  return hn_inherit(ctx, q, n);
}

static hn_value *multiply(hn_pass_context *ctx, hone_node *n, const product *p) {
  hone_tensor_desc sums = n->out[0]->desc, floats = sums;
  sums.dtype = HONE_DTYPE_I32, floats.dtype = HONE_DTYPE_F32;
  const uint32_t n_in = p->b_zero ? 4 : p->a_zero ? 3 : 2;
  hn_value *v =
      made(ctx, n, "MatMulInteger", (hn_value *const[]){p->a, p->b, p->a_zero, p->b_zero}, n_in, &sums);
  if (v) v = made(ctx, n, "Cast", &v, 1, &floats);
  if (!v) return NULL;
  if (!hn_node_set_int(v->producer, "to", HONE_DTYPE_F32)) return hn_pass_memory(ctx), NULL;
  hn_value *scale = made(ctx, n, "Mul", (hn_value *const[]){p->a_scale, p->b_scale}, 2, &p->b_scale->desc);
  if (scale) v = made(ctx, n, "Mul", (hn_value *const[]){v, scale}, 2, &floats);
  if (scale && v && p->bias) v = made(ctx, n, "Add", (hn_value *const[]){v, p->bias}, 2, &floats);
  return scale ? v : NULL;
}

/* Whether a product of that rank keeps it when it is multiplied by v, or v is added. */
static bool keeps_rank(const hone_node *n, const hn_value *v) {
  return !v || (v->desc.rank >= 0 && v->desc.rank <= n->out[0]->desc.rank);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  const bool dynamic = strcmp(n->op_type, "DynamicQuantizeMatMul") == 0;
  if (!dynamic && strcmp(n->op_type, "MatMulIntegerToFloat") != 0) return HN_PASS_NONE;
  if (!hn_has_op(ctx, "MatMulInteger") || (dynamic && !hn_has_op(ctx, "DynamicQuantizeLinear")))
    return hn_pass_miss(ctx, "the opset has no integer products");
  product p = {.a = n->in[0], .b = n->in[1]};
  if (dynamic) {
    p.b_scale = n->in[2], p.b_zero = hn_in(n, 3), p.bias = hn_in(n, 4);
  } else {
    p.a_scale = n->in[2], p.b_scale = n->in[3];
    p.a_zero = hn_in(n, 4), p.b_zero = hn_in(n, 5), p.bias = hn_in(n, 6);
  }
  if (!keeps_rank(n, p.a_scale) || !keeps_rank(n, p.b_scale) || !keeps_rank(n, p.bias))
    return hn_pass_miss(ctx, "a scale or the bias has more dimensions than the product");
  if (dynamic && !quantise(ctx, n, &p)) return HN_PASS_FAIL;
  hn_value *y = multiply(ctx, n, &p);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a product of integers, and its scale");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_integer_matmul) = {
    .name = "open_integer_matmul",
    .level = 1,
    .about = "MatMulIntegerToFloat, DynamicQuantizeMatMul -> MatMulInteger, Cast, Mul",
    .visit = visit,
    .roots = HN_ROOTS("DynamicQuantizeMatMul", "MatMulIntegerToFloat"),
};
