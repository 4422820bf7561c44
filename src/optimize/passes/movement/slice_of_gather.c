/* Slice(Gather(x, order, axis), a..b, axis)  ->  Gather(x, order[a..b], axis)
 *
 * When nobody reads the Gather but such Slices: everything is copied once instead of twice. */
#include "optimize/passes/common/pass.h"

/* Slice along the axis of the Gather alone, with step 1; all readers of the Gather must be such Slices. */
static bool plain_slice(const hone_node *n, int64_t axis, int64_t *start, int64_t *end) {
  int64_t axes, step;
  bool absent;
  int32_t rank = n->in[0]->desc.rank;
  if (!hn_is_op(n, "Slice") || rank < 0) return false;
  if (hn_node_ints_or_input(n, "starts", 1, start, 1, &absent) != 1 ||
      hn_node_ints_or_input(n, "ends", 2, end, 1, &absent) != 1)
    return false;
  if (hn_node_ints_or_input(n, "axes", 3, &axes, 1, &absent) != 1) return false;
  if (hn_in(n, 4) && (hn_known_ints(n->in[4], &step, 1) != 1 || step != 1)) return false;
  return (axes < 0 ? axes + rank : axes) == axis;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *slice) {
  hone_node *gather = hn_is_op(slice, "Slice") && slice->in[0] ? slice->in[0]->producer : NULL;
  if (!gather || !hn_is_op(gather, "Gather") || gather->graph != slice->graph || gather->out[0]->is_output)
    return HN_PASS_NONE;
  hn_value *x = gather->in[0], *g = gather->out[0], *y = slice->out[0];
  const hone_tensor *index = hn_known(hn_in(gather, 1));
  if (!index || index->desc.rank != 1 || index->desc.dtype != HONE_DTYPE_I64 || x->desc.rank < 1)
    return HN_PASS_NONE;
  int64_t axis = hone_node_int(gather, "axis", 0), n = hn_count(index), start, end;
  axis = axis < 0 ? axis + x->desc.rank : axis;
  for (size_t i = 0; i < g->users.len; i++)
    if (!plain_slice(g->users.ptr[i].node, axis, &start, &end) || g->users.ptr[i].index != 0)
      return hn_pass_miss(ctx, "'%.80s' is read whole as well", g->name);
  if (!plain_slice(slice, axis, &start, &end)) return HN_PASS_NONE;
  start = start < 0 ? start + n : start;
  end = end < 0 ? end + n : end;
  start = start < 0 ? 0 : start > n ? n : start;
  end = end > n ? n : end < start ? start : end;
  hn_value *part = hn_make_ints(ctx, y->name, (const int64_t *)index->data + start, end - start);
  hone_node *r = part ? hn_make_node(ctx, slice, "Gather", (hn_value *const[]){x, part}, 2, &y->desc) : NULL;
  if (!r || !hn_node_set_int(r, "axis", axis)) return hn_pass_memory(ctx);
  if (!hn_inherit(ctx, r, gather) || !hn_inherit(ctx, r, slice)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "picks %lld of the %lld that were gathered", (long long)(end - start), (long long)n);
  if (!hn_replace(ctx, y, r->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(slice, 1);
  return HN_PASS_HIT;
}

HN_PASS(slice_of_gather) = {.name = "slice_of_gather",
                            .level = 2,
                            .about = "Slice(Gather(x, order), a..b) -> Gather(x, order[a..b])",
                            .visit = visit,
                            .roots = HN_ROOTS("Slice")};
