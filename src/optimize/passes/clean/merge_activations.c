/* f2(f1(x))  ->  one function        where both clip to an interval, or the second changes nothing
 *
 * Relu is the interval [0, inf]; Clip [min, max]. Two of them are their intersection: min2(max2(.)) of an
 * interval. A Relu behind a function that is never negative (Sigmoid, Softmax, Exp...) goes. NaN goes through
 * all of them. */
#include "optimize/passes/common/pass.h"

#include <float.h>

static bool interval(const hone_node *n, double *lo, double *hi) {
  if (hn_is_op(n, "Clip")) return hn_constant_clip(n, lo, hi);
  *lo = 0;
  *hi = INFINITY;
  return hn_is_op(n, "Relu");
}

static bool never_negative(const hone_node *n) {
  static const char *const ops[] = {"Sigmoid", "HardSigmoid", "Softmax", "Exp", "Abs", "Sqrt", "Softplus"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return true;
  return false;
}

static double clamp(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

/* A constant scalar of the type of x for a bound, or NULL (left out) when there is none. */
static bool bound(hn_pass_context *ctx, const hn_value *x, double v, hn_value **out) {
  *out = NULL;
  if (isinf(v)) return true;
  hone_tensor_desc d = hone_desc(x->desc.dtype, 0, NULL);
  return (*out = hn_make_floats(ctx, x->name, &d, &v)) != NULL;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *inner = m->node[0], *outer = m->node[1];
  hn_value *x = inner->in[0], *y = outer->out[0];
  double l1, h1, l2, h2;
  if (hn_is_op(outer, "Relu") && never_negative(inner)) {
    if (!hn_can_replace(y, inner->out[0])) return HN_PASS_NONE;
    hn_pass_hit(ctx, "%s is never negative", inner->op_type);
    if (!hn_inherit(ctx, inner, outer) || !hn_replace(ctx, y, inner->out[0])) return HN_PASS_FAIL;
    hn_node_remove(outer);
    return HN_PASS_HIT;
  }
  if (!interval(outer, &l2, &h2)) return HN_PASS_NONE;
  if (!interval(inner, &l1, &h1))
    return hn_is_op(inner, "Clip") ? hn_pass_miss(ctx, "the bounds of '%.80s' are no constants", inner->name)
                                   : HN_PASS_NONE;
  if (!hn_foldable_float(x->desc.dtype)) return HN_PASS_NONE;
  if (l1 > h1 || l2 > h2) return hn_pass_miss(ctx, "a Clip has its bounds the wrong way round");
  double lo = clamp(l1, l2, h2), hi = clamp(h1, l2, h2);
  if (isinf(lo) && isinf(hi)) return HN_PASS_NONE;
  if (lo == 0 && isinf(hi)) { /* Relu */
    hone_node *r = hn_make_node(ctx, outer, "Relu", &x, 1, &y->desc);
    if (!r || !hn_inherit(ctx, r, inner) || !hn_inherit(ctx, r, outer) || !hn_replace(ctx, y, r->out[0]))
      return HN_PASS_FAIL;
    hn_remove_unread(outer, 1);
    return hn_pass_hit(ctx, "one Relu for both");
  }
  hn_value *in[3] = {x, NULL, NULL};
  bool attrs = outer->opset < 11;
  if (!attrs && (!bound(ctx, x, lo, &in[1]) || !bound(ctx, x, hi, &in[2]))) return HN_PASS_FAIL;
  hone_node *c = hn_make_node(ctx, outer, "Clip", in, attrs ? 1 : in[2] ? 3 : 2, &y->desc);
  if (!c) return HN_PASS_FAIL;
  if (attrs && !((lo == -FLT_MAX || hn_node_set_float(c, "min", (float)lo)) &&
                 (hi == FLT_MAX || hn_node_set_float(c, "max", (float)hi))))
    return hn_pass_memory(ctx);
  if (!hn_inherit(ctx, c, inner) || !hn_inherit(ctx, c, outer) || !hn_replace(ctx, y, c->out[0]))
    return HN_PASS_FAIL;
  hn_remove_unread(outer, 1);
  return hn_pass_hit(ctx, "one Clip to %g..%g for both", lo, hi);
}

HN_PASS(merge_activations) = {
    .name = "merge_activations",
    .level = 2,
    .about = "Clip(Clip(x)), Relu(Clip(x)), Relu(Relu(x)) -> one; Relu(f(x)) with f >= 0 -> f(x)",
    .patterns = HN_PATTERNS("%t = Relu|Clip(%x, ?%l1, ?%h1)\n%y = Relu|Clip(%t, ?%l2, ?%h2)",
                            "%t = Sigmoid|HardSigmoid|Softmax|Exp|Abs|Sqrt(%x)\n%y = Relu(%t)",
                            "%t = Softplus(%x)\n%y = Relu(%t)"),
    .match = match,
};
