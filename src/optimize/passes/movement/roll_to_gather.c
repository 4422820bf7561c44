/* Concat(Slice(x, a..n), Slice(x, 0..a))  ->  Gather(x, [a..n-1, 0..a-1])        one axis of x, rolled
 *
 * Exporters spell a roll (Swin's shifted windows) with two copies and a third; it is one. Where rows behind
 * the axis are long enough to be copied as such. */
#include "optimize/passes/common/pass.h"

enum { SHORTEST = 16, LONGEST = 1 << 20 }; /* elements of a row; length of the axis */

/* Slice along the axis alone, with step 1: its x, from where to where. */
static hn_value *part_of(const hn_value *v, int64_t axis, int64_t *start, int64_t *end) {
  const hone_node *n = v ? v->producer : NULL;
  int64_t axes, step;
  bool absent;
  if (!n || n->graph != v->graph || !hn_is_op(n, "Slice") || !hn_value_single_use(v) || !n->in[0])
    return NULL;
  const hone_tensor_desc *x = &n->in[0]->desc;
  if (axis >= x->rank || x->dim[axis] < 1 || x->dim[axis] > LONGEST) return NULL;
  if (hn_node_ints_or_input(n, "starts", 1, start, 1, &absent) != 1 ||
      hn_node_ints_or_input(n, "ends", 2, end, 1, &absent) != 1)
    return NULL;
  if (hn_node_ints_or_input(n, "axes", 3, &axes, 1, &absent) != 1) return NULL;
  if (hn_in(n, 4) && (hn_known_ints(n->in[4], &step, 1) != 1 || step != 1)) return NULL;
  if ((axes < 0 ? axes + x->rank : axes) != axis) return NULL;
  const int64_t size = x->dim[axis];
  *start = *start < 0 ? *start + size : *start, *end = *end < 0 ? *end + size : *end;
  *start = *start < 0 ? 0 : *start, *end = *end > size ? size : *end;
  return n->in[0];
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *concat) {
  int64_t axis = hone_node_int(concat, "axis", 1), from[2], to[2], row = 1;
  if (!hn_is_op(concat, "Concat") || concat->n_in != 2 || !concat->out[0]) return HN_PASS_NONE;
  const int32_t rank = concat->out[0]->desc.rank;
  axis = axis < 0 ? axis + rank : axis;
  if (rank < 1 || axis < 0) return HN_PASS_NONE;
  hn_value *x = part_of(concat->in[0], axis, &from[0], &to[0]), *y = concat->out[0];
  if (!x || part_of(concat->in[1], axis, &from[1], &to[1]) != x || x->desc.rank != rank) return HN_PASS_NONE;
  const int64_t n = x->desc.dim[axis], first = from[0];
  if (first < 1 || first >= n || to[0] != n || from[1] != 0 || to[1] != first)
    return hn_pass_miss(ctx, "the parts of '%.80s' do not make a roll", x->name);
  for (int32_t i = (int32_t)axis + 1; i < rank; i++) {
    if (x->desc.dim[i] < 1 || x->desc.dim[i] > LONGEST) return HN_PASS_NONE;
    if (row < SHORTEST) row *= x->desc.dim[i];
  }
  if (row < SHORTEST) return hn_pass_miss(ctx, "rows of %lld elements", (long long)row);
  int64_t *order = HN_NEW_ARRAY(ctx->scratch, int64_t, n);
  if (!order) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < n; i++) order[i] = (first + i) % n;
  hn_value *index = hn_make_ints(ctx, y->name, order, n);
  hone_node *g =
      index ? hn_make_node(ctx, concat, "Gather", (hn_value *const[]){x, index}, 2, &y->desc) : NULL;
  if (!g || !hn_node_set_int(g, "axis", axis)) return hn_pass_memory(ctx);
  for (int k = 0; k < 2; k++)
    if (!hn_inherit(ctx, g, concat->in[k]->producer)) return HN_PASS_FAIL;
  if (!hn_inherit(ctx, g, concat)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "'%.80s' rolled by %lld", x->name, (long long)first);
  if (!hn_replace(ctx, y, g->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(concat, 1);
  return HN_PASS_HIT;
}

HN_PASS(roll_to_gather) = {.name = "roll_to_gather",
                           .level = 2,
                           .about = "Concat(Slice(x, a..n), Slice(x, 0..a)) -> Gather(x, [a..n-1, 0..a-1])",
                           .visit = visit,
                           .roots = HN_ROOTS("Concat")};
