/* Concat(a, b, ... z)  ->  Concat(Concat(a, ...), Concat(..., z))
 *
 * For accelerators, where how long the result is only the run knows: a step whose shapes come late has few
 * operands there (a detector joins what it found of each of 90 classes), and what has more is put together on
 * the host, for which each operand is copied and waited for. Everything is copied twice on the device
 * instead. */
#include "optimize/passes/common/pass.h"

enum { MOST = 30 };

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_value *part[MOST], *y = n->n_out ? n->out[0] : NULL;
  if (!hn_is_op(n, "Concat") || n->n_in <= MOST || n->n_in > MOST * MOST || !y || y->desc.rank < 1)
    return HN_PASS_NONE;
  if (!ctx->options->lowered || ctx->options->processor || !hn_value_is_plain(y)) return HN_PASS_NONE;
  const int64_t given = hone_node_int(n, "axis", INT64_MIN), axis = given < 0 ? given + y->desc.rank : given;
  if (axis < 0 || axis >= y->desc.rank || y->desc.dim[axis] >= 0) return HN_PASS_NONE;
  const uint32_t parts = (n->n_in + MOST - 1) / MOST;
  for (uint32_t k = 0, at = 0; k < parts; k++) {
    const uint32_t count = (n->n_in - at + (parts - k) - 1) / (parts - k);
    hone_tensor_desc d = y->desc;
    d.dim[axis] = HONE_DIM_UNKNOWN;
    hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
    hone_node *c = hn_make_node(ctx, n, "Concat", n->in + at, count, &d);
    if (!c || !hn_node_set_int(c, "axis", axis)) return hn_pass_memory(ctx);
    if (!hn_inherit(ctx, c, n)) return HN_PASS_FAIL;
    part[k] = c->out[0];
    at += count;
  }
  const uint32_t operands = n->n_in;
  hone_node *whole = hn_make_node(ctx, n, "Concat", part, parts, &y->desc);
  if (!whole || !hn_node_set_int(whole, "axis", axis)) return hn_pass_memory(ctx);
  if (!hn_inherit(ctx, whole, n) || !hn_replace(ctx, y, whole->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return hn_pass_hit(ctx, "%u operands in %u Concats", operands, parts);
}

HN_PASS(split_wide_concat) = {
    .name = "split_wide_concat",
    .level = 2,
    .about = "Concat(a, b, ... z) -> Concat(Concat(a, ...), Concat(..., z)) (on accelerators)",
    .visit = visit,
    .roots = HN_ROOTS("Concat"),
};
