/* Transpose(Reshape(x [N, C, H, W], [N, C, HW]), [0, 2, 1])   ->  Reshape(Transpose(x, [0, 2, 3, 1]), [N, HW, C])
 * Reshape(Transpose(x [N, HW, C], [0, 2, 1]), [N, C, H, W])   ->  Transpose(Reshape(x, [N, H, W, C]), [0, 3, 1, 2])
 *
 * Networks that have tokens here and convolutions there (PVT, SegFormer, CoaT) turn pixels to rows of channels and
 * back. Channels-last tensors are such rows: the Transposes that are left are another name for what lies there,
 * while planes would have to be made for a Reshape. */
#include "optimize/passes/common/pass.h"

static bool swaps_last(const hone_node *n) {
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  return perm && count == 3 && perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

/* The same images and channels, and as many pixels: [N, C, S...] and [N, C, L]. */
static bool flattens(const hone_tensor_desc *planes, const hone_tensor_desc *rows) {
  if (planes->rank < 4 || planes->rank > HONE_MAX_RANK || rows->rank != 3) return false;
  if (planes->dim[0] != rows->dim[0] || planes->dim[0] == HONE_DIM_UNKNOWN) return false;
  if (planes->dim[1] < 1 || planes->dim[1] != rows->dim[1]) return false;
  int64_t pixels = 1;
  for (int32_t i = 2; i < planes->rank; i++) {
    if (planes->dim[i] < 1 || planes->dim[i] > INT32_MAX || pixels > INT32_MAX) return false;
    pixels *= planes->dim[i];
  }
  return pixels == rows->dim[2];
}

/* first, then second in place of both nodes, which are one behind the other. */
static hn_pass_result replace(hn_pass_context *ctx, const hone_match *m, const char *ops[2],
                              const int64_t *shape, size_t n_shape, const int64_t *perm, size_t n_perm,
                              const char *what) {
  hn_value *x = m->node[0]->in[0], *y = m->node[1]->out[0], *v = x;
  for (int i = 0; i < 2; i++) {
    const bool turns = strcmp(ops[i], "Transpose") == 0;
    const hone_tensor_desc unknown = {.dtype = x->desc.dtype, .rank = -1};
    hn_value *in[2] = {v, turns ? NULL : hn_make_ints(ctx, y->name, shape, (int64_t)n_shape)};
    if (!turns && !in[1]) return hn_pass_memory(ctx);
    hone_node *n = hn_make_node(ctx, m->node[1], ops[i], in, turns ? 1 : 2, i ? &y->desc : &unknown);
    if (!n || (turns && !hn_node_set_ints(n, "perm", perm, n_perm))) return hn_pass_memory(ctx);
    for (int k = 0; k < 2; k++)
      if (!hn_inherit(ctx, n, m->node[k])) return HN_PASS_FAIL;
    v = n->out[0];
  }
  hn_pass_hit(ctx, "%s", what);
  if (!hn_replace(ctx, y, v)) return HN_PASS_FAIL;
  hn_remove_unread(m->node[1], 2);
  return HN_PASS_HIT;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  const hone_node *first = m->node[0], *second = m->node[1];
  const hone_tensor_desc *x = &first->in[0]->desc, *between = &first->out[0]->desc, *y = &second->out[0]->desc;
  int64_t shape[HONE_MAX_RANK], perm[HONE_MAX_RANK];
  if (hn_is_op(first, "Reshape")) {
    if (!swaps_last(second) || !flattens(x, between)) return HN_PASS_NONE;
    for (int32_t i = 0; i < x->rank; i++) perm[i] = i == 0 ? 0 : i == x->rank - 1 ? 1 : i + 1;
    shape[0] = 0, shape[1] = between->dim[2], shape[2] = between->dim[1]; /* 0: as it is */
    return replace(ctx, m, (const char *[]){"Transpose", "Reshape"}, shape, 3, perm, (size_t)x->rank,
                   "pixels become rows of channels before they are flattened");
  }
  if (!swaps_last(first) || !flattens(y, between)) return HN_PASS_NONE;
  const int32_t last = y->rank - 1;
  for (int32_t i = 0; i <= last; i++) {
    perm[i] = i == 0 ? 0 : i == 1 ? last : i - 1;
    shape[i] = i == 0 ? 0 : i == last ? y->dim[1] : y->dim[i + 1];
  }
  return replace(ctx, m, (const char *[]){"Reshape", "Transpose"}, shape, (size_t)y->rank, perm,
                 (size_t)y->rank, "rows of channels are pixels before they become planes");
}

HN_PASS(turn_pixels) = {
    .name = "turn_pixels",
    .level = 2,
    .about = "Transpose(Reshape(x)) of flattened pixels -> Reshape(Transpose(x)), and back",
    .patterns = HN_PATTERNS("%r = Reshape(%x, ?%s)\n%y = Transpose(%r)",
                            "%t = Transpose(%x)\n%y = Reshape(%t, ?%s)"),
    .match = match,
};
