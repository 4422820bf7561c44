/* e = Exp(x - max), e / ReduceSum(e)   ->  Softmax(x)                 max: ReduceMax(x) along the same axis
 * Softmax((x - max) * c)               ->  Softmax(x * c)             c: a power of two up to 1, or nothing
 *
 * JAX writes softmax so, and models whose scores shall not grow take their largest away in front of a
 * Softmax, which does so itself. What was reduced may have lost its dimension and got it back by a view. A
 * product that rounds would lose of large scores what their differences have, and one that grows may
 * overflow. */
#include "optimize/passes/common/pass.h"

#include <math.h>

/* Whether v is `op` of x along one axis, and broadcasts against x as if that had been kept; *axis is -1 or
 * which. */
static bool is_reduced(hn_value *v, const char *op, const hn_value *x, int64_t *axis) {
  const hn_value *made = hn_behind_views(v);
  const hone_node *r = made ? made->producer : NULL;
  const hone_tensor_desc *d = &x->desc;
  int64_t axes[HONE_MAX_RANK];
  bool absent;
  if (!r || !hn_is_op(r, op) || r->in[0] != x || d->rank < 1 || v->desc.rank != d->rank ||
      hn_node_ints_or_input(r, "axes", 1, axes, HONE_MAX_RANK, &absent) != 1)
    return false;
  const int64_t at = axes[0] < 0 ? axes[0] + d->rank : axes[0];
  for (int32_t i = 0; i < d->rank; i++)
    if (v->desc.dim[i] != (i == at ? 1 : d->dim[i]) || v->desc.dim[i] == HONE_DIM_UNKNOWN) return false;
  if (*axis >= 0 && *axis != at) return false;
  *axis = at;
  return true;
}

/* x of x - max along `axis`; NULL: v is something else. */
static hn_value *without_largest(const hn_value *v, int64_t *axis) {
  const hone_node *s = v ? v->producer : NULL;
  if (!s || !hn_is_op(s, "Sub") || !s->in[0] || !s->in[1]) return NULL;
  return is_reduced(s->in[1], "ReduceMax", s->in[0], axis) ? s->in[0] : NULL;
}

static hn_value *softmax(hn_pass_context *ctx, hone_node *n, hn_value *x, int64_t axis) {
  hone_node *made = hn_make_node(ctx, n, "Softmax", &x, 1, &n->out[0]->desc);
  if (!made || !hn_inherit(ctx, made, n)) return NULL;
  if (!hn_node_set_int(made, "axis", axis)) return hn_pass_memory(ctx), NULL;
  return made->out[0];
}

static hn_pass_result of_sums(hn_pass_context *ctx, hone_node *n) {
  hn_value *e = n->in[0];
  int64_t axis = -1;
  const hone_node *exp = e ? e->producer : NULL;
  if (!exp || !hn_is_op(exp, "Exp") || !n->in[1] || !is_reduced(n->in[1], "ReduceSum", e, &axis))
    return HN_PASS_NONE;
  hn_value *x = without_largest(exp->in[0], &axis);
  if (!x) return hn_pass_miss(ctx, "the largest is not taken away along the same axis");
  if (hn_model_opset(ctx->model, "") < 13 && axis != x->desc.rank - 1)
    return hn_pass_miss(ctx, "Softmax of this opset takes all dimensions from its axis on");
  hn_value *y = softmax(ctx, n, x, axis);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "this is Softmax");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 6);
  return HN_PASS_HIT;
}

static hn_pass_result of_shifted(hn_pass_context *ctx, hone_node *n) {
  hn_value *v = n->in[0];
  hone_node *mul = v && v->producer && hn_is_op(v->producer, "Mul") ? v->producer : NULL;
  hn_value *factor = NULL;
  double number = 1;
  for (uint32_t k = 0; mul && k < 2; k++)
    if (mul->in[k] && mul->in[1 - k] && hn_constant_scalar(mul->in[k], &number) &&
        mul->in[k]->desc.rank <= v->desc.rank)
      factor = mul->in[k], v = mul->in[1 - k];
  const int64_t given = hone_node_int(n, "axis", hn_model_opset(ctx->model, "") < 13 ? 1 : -1);
  int64_t axis = given < 0 && v ? given + v->desc.rank : given;
  if (!v || (mul && !factor) || axis != v->desc.rank - 1) return HN_PASS_NONE;
  hn_value *x = without_largest(v, &axis);
  if (!x || !hn_same_shape(&x->desc, &n->out[0]->desc)) return HN_PASS_NONE;
  int exponent;
  if (factor && (fabs(frexp(number, &exponent)) != 0.5 || fabs(number) > 1))
    return hn_pass_miss(ctx, "scores times %g round otherwise than what is left of them", number);
  if (factor) {
    hone_node *scaled = hn_make_node(ctx, n, "Mul", (hn_value *const[]){x, factor}, 2, &x->desc);
    if (!scaled || !hn_inherit(ctx, scaled, mul)) return HN_PASS_FAIL;
    x = scaled->out[0];
  }
  hn_value *y = softmax(ctx, n, x, axis);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "Softmax takes the largest away itself");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 6);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (n->n_out != 1 || n->out[0]->desc.dtype != HONE_DTYPE_F32) return HN_PASS_NONE;
  return hn_is_op(n, "Div") && n->n_in == 2 ? of_sums(ctx, n)
         : hn_is_op(n, "Softmax")           ? of_shifted(ctx, n)
                                            : HN_PASS_NONE;
}

HN_PASS(spelled_softmax) = {.name = "spelled_softmax",
                            .level = 2,
                            .about = "Exp(x - max) / its sum -> Softmax(x), Softmax(x - max) -> Softmax(x)",
                            .visit = visit,
                            .roots = HN_ROOTS("Div", "Softmax")};
