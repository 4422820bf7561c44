/* Reshape(Transpose(Reshape(x, [N, g, C/g, ...]), [0, 2, 1, ...]), [N, C, ...])  ->  Gather(x, order, axis =
 * 1)
 *
 * The channel shuffle of ShuffleNet moves whole channels: as a Gather it keeps the rank, hence works in any
 * layout; slice_of_gather then picks from its list. */
#include "optimize/passes/common/pass.h"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *first = m->node[0], *turn = m->node[1], *last = m->node[2];
  hn_value *x = first->in[0], *t = first->out[0], *y = last->out[0];
  size_t count;
  const int64_t *perm = hone_node_ints(turn, "perm", &count);
  int32_t rank = x->desc.rank;
  if (rank < 3 || t->desc.rank != rank + 1 || count != (size_t)rank + 1 || !perm) return HN_PASS_NONE;
  for (int32_t i = 0; i <= rank; i++)
    if (perm[i] != (i == 1 ? 2 : i == 2 ? 1 : i)) return HN_PASS_NONE;
  int64_t c = x->desc.dim[1], g = t->desc.dim[1], per = t->desc.dim[2];
  if (!hn_same_shape(&x->desc, &y->desc)) return hn_pass_miss(ctx, "the shape changes");
  if (c < 1 || g < 1 || per < 1 || g * per != c) return HN_PASS_NONE;
  for (int32_t i = 0; i < rank; i++)
    if (i != 1 && t->desc.dim[i + (i > 1)] != x->desc.dim[i]) return HN_PASS_NONE;
  int64_t *order = HN_NEW_ARRAY(ctx->scratch, int64_t, c);
  if (!order) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < c; i++) order[i] = i % g * per + i / g;
  hn_value *index = hn_make_ints(ctx, y->name, order, c);
  hone_node *n = index ? hn_make_node(ctx, last, "Gather", (hn_value *const[]){x, index}, 2, &y->desc) : NULL;
  if (!n || !hn_node_set_int(n, "axis", 1)) return hn_pass_memory(ctx);
  for (uint32_t k = 0; k < 3; k++)
    if (!hn_inherit(ctx, n, m->node[k])) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a shuffle of %lld groups of channels", (long long)g);
  if (!hn_replace(ctx, y, n->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(last, 2);
  return HN_PASS_HIT;
}

HN_PASS(shuffle_to_gather) = {
    .name = "shuffle_to_gather",
    .level = 2,
    .about = "channel shuffle (Reshape, Transpose, Reshape) -> Gather",
    .patterns = HN_PATTERNS("%a = Reshape(%x, ?%s)\n%t = Transpose(%a)\n%y = Reshape(%t, ?%u)"),
    .match = match,
};
