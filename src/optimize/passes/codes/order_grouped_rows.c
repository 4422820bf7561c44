/* MatMulNBits(a, codes, scales, zeros, g_idx)
 *   ->  MatMulNBits(Gather(a, order, axis of K), ordered codes, scales, zeros)
 *
 * GPTQ with act_order: rows of K that share a scale do not lie side by side. Once they do, they are a block,
 * and steps read the codes. Every block must be full (the last one as full as K leaves it). Rows that are in
 * order already need no Gather: g_idx is left out. */
#include "model/ops/microsoft/codes/nbits.h"
#include "optimize/passes/common/pass.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

/* order[j]: the row that comes to place j; false: a group is no block. */
static bool order_of(const hn_nbits *w, const int32_t *group, int64_t *next, int64_t *order, bool *moved) {
  for (int64_t b = 0; b < w->blocks; b++) next[b] = b * w->block;
  *moved = false;
  for (int64_t k = 0; k < w->rows; k++) {
    const int64_t at = next[group[k]]++;
    if (at >= (group[k] + 1) * w->block || at >= w->rows) return false;
    *moved |= at != k;
    order[at] = k;
  }
  return true;
}

static void put_codes(const hn_nbits *w, const uint8_t *from, const int64_t *order, uint8_t *to) {
  const int64_t column = w->blocks * w->block * w->bits / 8, each = 8 / w->bits;
  memset(to, 0, (size_t)(column * w->columns));
  for (int64_t c = 0; c < w->columns; c++)
    for (int64_t k = 0; k < w->rows; k++)
      to[c * column + k / each] |=
          (uint8_t)(hn_nbits_code(from + c * column, w->bits, order[k]) << (k % each * w->bits));
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_nbits w;
  bool moved;
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0 || !hn_in(n, GROUPS))
    return HN_PASS_NONE;
  const hone_tensor *given = hn_known(n->in[GROUPS]), *codes = hn_known(n->in[B]);
  if (!given || !codes) return hn_pass_miss(ctx, "the %s computed", given ? "codes are" : "rows' groups are");
  if (hn_nbits_of(n, &w, NULL) || n->in[A]->desc.rank < 1) return hn_pass_miss(ctx, "its attributes");
  int32_t *group = HN_NEW_ARRAY(ctx->scratch, int32_t, w.rows);
  int64_t *next = group ? HN_NEW_ARRAY(ctx->scratch, int64_t, w.blocks) : NULL,
          *order = next ? HN_NEW_ARRAY(ctx->scratch, int64_t, w.rows) : NULL;
  if (!order) return hn_pass_memory(ctx);
  memcpy(group, given->data, (size_t)w.rows * sizeof *group); /* constants may lie at any address */
  if (!hn_nbits_groups_fit(&w, group)) return hn_pass_miss(ctx, "g_idx names a block that is not there");
  if (!order_of(&w, group, next, order, &moved))
    return hn_pass_miss(ctx, "a group has more rows than a block");
  hn_value *in[6] = {NULL};
  for (uint32_t i = 0; i < n->n_in && i < 6; i++) in[i] = i == GROUPS ? NULL : n->in[i];
  if (moved) {
    void *data;
    hn_value *places = hn_make_ints(ctx, n->in[GROUPS]->name, order, w.rows);
    hone_node *gather =
        places ? hn_make_node(ctx, n, "Gather", (hn_value *const[]){n->in[A], places}, 2, &n->in[A]->desc)
               : NULL;
    if (!gather || !hn_node_set_int(gather, "axis", n->in[A]->desc.rank - 1) || !hn_inherit(ctx, gather, n) ||
        !(in[B] = hn_make_room(ctx, n->in[B]->name, &codes->desc, &data)))
      return hn_pass_memory(ctx);
    put_codes(&w, codes->data, order, data);
    in[A] = gather->out[0];
  }
  for (uint32_t i = 0; i < n->n_in && i < 6; i++)
    if (in[i] != n->in[i] && !hn_set_input(ctx, n, i, in[i])) return HN_PASS_FAIL;
  return hn_pass_hit(ctx, moved ? "rows of a scale lie side by side" : "rows are in order");
}

HN_PASS(order_grouped_rows) = {
    .name = "order_grouped_rows",
    .level = 1,
    .about = "MatMulNBits with g_idx -> MatMulNBits of ordered rows",
    .visit = visit,
    .roots = HN_ROOTS("MatMulNBits"),
};
