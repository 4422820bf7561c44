/* x / c  ->  x * (1 / c)         c a power of two (level 2), any other number (level 3)
 *
 * The reciprocal of a power of two is exact, and so is the product; for others the result may differ in the
 * last place. */
#include "optimize/passes/common/pass.h"

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  double v;
  int exponent;
  if (!hn_is_op(n, "Div") || n->n_in != 2 || !hn_constant_scalar(n->in[1], &v) || hn_known(n->in[0]))
    return HN_PASS_NONE;
  hn_value *c = n->in[1];
  if (!hn_foldable_float(c->desc.dtype)) return HN_PASS_NONE;
  double r = 1 / v, least = c->desc.dtype == HONE_DTYPE_F64 ? 2.3e-308 : 1.2e-38;
  if (v == 0 || !isfinite(v) || fabs(v) < least || fabs(r) < least)
    return hn_pass_miss(ctx, "1 / %g is no normal number", v);
  if (frexp(fabs(v), &exponent) != 0.5 && ctx->options->level < 3)
    return hn_pass_miss_below(ctx, 3, "1 / %.9g is not exact; level 3 allows it", v);
  hn_value *k = hn_make_floats(ctx, c->name, &c->constant->desc, &r);
  hone_node *mul =
      k ? hn_make_node(ctx, n, "Mul", (hn_value *const[]){n->in[0], k}, 2, &n->out[0]->desc) : NULL;
  if (!mul || !hn_inherit(ctx, mul, n) || !hn_replace(ctx, n->out[0], mul->out[0])) return HN_PASS_FAIL;
  hn_node_remove(n);
  return hn_pass_hit(ctx, "division by %.9g became a product", v);
}

HN_PASS(div_to_mul) = {.name = "div_to_mul",
                       .level = 2,
                       .about = "x / 2^k -> x * 2^-k",
                       .visit = visit,
                       .roots = HN_ROOTS("Div")};
