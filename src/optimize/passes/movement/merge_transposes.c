/* Transpose_q(Transpose_p(x))  ->  Transpose_{p[q[i]]}(x), or x when that keeps the order */
#include "optimize/passes/common/pass.h"

/* The permutation, the default (reverse) included. */
static bool permutation(const hone_node *n, int64_t *perm, int32_t *rank) {
  size_t count;
  const int64_t *p = hone_node_ints(n, "perm", &count);
  *rank = p ? (int32_t)count : n->in[0]->desc.rank;
  if (*rank < 0 || *rank > HONE_MAX_RANK) return false;
  for (int32_t i = 0; i < *rank; i++) perm[i] = p ? p[i] : *rank - 1 - i;
  return true;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *inner = m->node[0], *outer = m->node[1];
  hn_value *x = hn_match_get(m, "x"), *y = outer->out[0];
  int64_t p[HONE_MAX_RANK], q[HONE_MAX_RANK], both[HONE_MAX_RANK];
  int32_t rank, rank2;
  if (!permutation(inner, p, &rank) || !permutation(outer, q, &rank2) || rank != rank2) return HN_PASS_NONE;
  bool same = true;
  for (int32_t i = 0; i < rank; i++) {
    if (q[i] < 0 || q[i] >= rank) return HN_PASS_NONE;
    both[i] = p[q[i]];
    same &= both[i] == i;
  }
  if (same && hn_can_replace(y, x) && !(y->is_output && x->constant)) {
    hn_pass_hit(ctx, "the two undo each other");
    if (!hn_replace(ctx, y, x)) return HN_PASS_FAIL;
    hn_remove_unread(outer, 1);
    return HN_PASS_HIT;
  }
  if (!hn_node_set_ints(outer, "perm", both, (size_t)rank)) return hn_pass_memory(ctx);
  if (!hn_inherit(ctx, outer, inner) || !hn_set_input(ctx, outer, 0, x)) return HN_PASS_FAIL;
  hn_remove_unread(inner, 0);
  return hn_pass_hit(ctx, "one Transpose for both");
}

HN_PASS(merge_transposes) = {
    .name = "merge_transposes",
    .level = 2,
    .about = "Transpose(Transpose(x)) -> Transpose(x) or x",
    .patterns = HN_PATTERNS("%t = Transpose(%x)\n%y = Transpose(%t)"),
    .match = match,
};
