/* Reshape(Reshape(x))  ->  Reshape(x)        (Flatten, Squeeze and Unsqueeze count as Reshape)
 *
 * When the second's result is known up to one dimension; only views of the same row-major elements are
 * concerned. */
#include "optimize/passes/common/dims.h"
#include "optimize/passes/common/pass.h"

#define VIEW "Reshape|Flatten|Squeeze|Unsqueeze"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *inner = m->node[0], *outer = m->node[1];
  hn_value *x = hn_match_get(m, "x"), *y = outer->out[0];
  int64_t shape[HONE_MAX_RANK];
  if (outer->opset < 5) return hn_pass_miss(ctx, "the opset is older than 5");
  if (!hn_dims_reshape(&x->desc, &y->desc, shape)) {
    /* An explicit shape without zeros does not look at what it reshapes. */
    int64_t given[HONE_MAX_RANK];
    int64_t n = hn_is_op(outer, "Reshape") ? hn_known_ints(hn_in(outer, 1), given, HONE_MAX_RANK) : -1;
    bool zero = false;
    for (int64_t i = 0; i < n; i++) zero |= given[i] == 0;
    if (n < 0 || zero) return hn_pass_miss(ctx, "the resulting shape is not known up to one dimension");
    hn_pass_hit(ctx, "'%.80s' is overruled", inner->name);
    if (!hn_inherit(ctx, outer, inner) || !hn_set_input(ctx, outer, 0, x)) return HN_PASS_FAIL;
    hn_remove_unread(inner, 0);
    return HN_PASS_HIT;
  }
  hn_value *c = hn_make_ints(ctx, y->name, shape, y->desc.rank);
  if (!c) return HN_PASS_FAIL;
  hone_node *r = hn_make_node(ctx, outer, "Reshape", (hn_value *const[]){x, c}, 2, &y->desc);
  if (!r || !hn_inherit(ctx, r, inner) || !hn_inherit(ctx, r, outer)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "one Reshape for both");
  if (!hn_replace(ctx, y, r->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(outer, 1);
  return HN_PASS_HIT;
}

HN_PASS(merge_reshapes) = {
    .name = "merge_reshapes",
    .level = 1,
    .about = "Reshape(Reshape(x)) -> Reshape(x)",
    .patterns = HN_PATTERNS("%t = " VIEW "(%x, ?%s)\n%y = " VIEW "(%t, ?%u)"),
    .match = match,
};
