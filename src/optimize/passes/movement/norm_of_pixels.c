/* Reshape(InstanceNormalization(Reshape(x [N, C, H, W], [N, 1, CHW]), k, d), [N, C, H, W])
 *   ->  the same of x [N, H, W, C], turned back behind it
 *
 * Moments of a whole image (GroupNorm of one group, as exporters spell it) do not ask for the order of its
 * elements. Channels-last tensors are read as they lie then; planes would have to be made for the Reshape,
 * and undone. */
#include "optimize/passes/common/pass.h"

enum { DEPTH = 8 }; /* elementwise operators that are looked through */

/* Does x come from where channels are the innermost dimension in memory? Convolutions and pools make it so,
 * and elementwise operators leave it; rows of channels may be turned to planes by name. */
static bool lies_by_pixels(const hn_value *x, int depth) {
  static const char *const makes[] = {"Conv", "ConvTranspose", "AveragePool", "MaxPool", "Resize"};
  static const char *const keeps[] = {"Add",  "Sub",  "Mul",       "Div",     "Relu", "LeakyRelu",
                                      "Clip", "Gelu", "HardSwish", "Sigmoid", "Erf",  "BatchNormalization"};
  const hone_node *n = x->producer;
  size_t count;
  if (!n || depth == 0) return false;
  for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
    if (hn_is_op(n, makes[i])) return true;
  if (hn_is_op(n, "Transpose")) {
    const int64_t *perm = hone_node_ints(n, "perm", &count);
    return perm && count > 2 && perm[1] == (int64_t)count - 1;
  }
  for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++)
    for (uint32_t k = 0; hn_is_op(n, keeps[i]) && k < n->n_in; k++)
      if (n->in[k] && hn_same_shape(&n->in[k]->desc, &x->desc) && lies_by_pixels(n->in[k], depth - 1))
        return true;
  return false;
}

static hn_value *append(hn_pass_context *ctx, const hone_match *m, const char *op, hn_value *const *in,
                        uint32_t n_in, const hone_tensor_desc *like, hone_node **made) {
  const hone_tensor_desc unknown = {.dtype = in[0]->desc.dtype, .rank = -1};
  hone_node *n = hn_make_node(ctx, m->node[2], op, in, n_in, like ? like : &unknown);
  for (int k = 0; n && k < 3; k++)
    if (!hn_inherit(ctx, n, m->node[k])) return NULL;
  if (made) *made = n;
  return n ? n->out[0] : NULL;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *norm = m->node[1], *back = m->node[2], *n;
  hn_value *x = m->node[0]->in[0], *y = back->out[0];
  const hone_tensor_desc *d = &x->desc, *row = &m->node[0]->out[0]->desc;
  int64_t there[HONE_MAX_RANK], again[HONE_MAX_RANK], shape[HONE_MAX_RANK], count = 1;
  if (d->rank < 4 || d->rank > HONE_MAX_RANK || row->rank != 3 || row->dim[1] != 1 ||
      !hn_same_shape(d, &y->desc) || d->dim[0] != row->dim[0] || d->dim[0] == HONE_DIM_UNKNOWN ||
      d->dim[1] < 2)
    return HN_PASS_NONE;
  for (int32_t i = 1; i < d->rank; i++) {
    if (d->dim[i] < 1 || d->dim[i] > INT32_MAX || count > INT32_MAX) return HN_PASS_NONE;
    count *= d->dim[i];
  }
  if (count != row->dim[2]) return HN_PASS_NONE;
  const int32_t last = d->rank - 1;
  for (int32_t i = 0; i <= last; i++) {
    there[i] = i == 0 ? 0 : i == last ? 1 : i + 1;
    again[i] = i == 0 ? 0 : i == 1 ? last : i - 1;
    shape[i] = i == 0 ? 0 : d->dim[there[i]]; /* 0: as it is */
  }
  if (!lies_by_pixels(x, DEPTH)) return HN_PASS_NONE;
  hn_value *flat = hn_make_ints(ctx, y->name, (int64_t[]){0, 1, count}, 3),
           *full = flat ? hn_make_ints(ctx, y->name, shape, d->rank) : NULL;
  hn_value *v = full ? append(ctx, m, "Transpose", &x, 1, NULL, &n) : NULL;
  if (!v || !hn_node_set_ints(n, "perm", there, (size_t)d->rank)) return hn_pass_memory(ctx);
  v = append(ctx, m, "Reshape", (hn_value *[]){v, flat}, 2, NULL, NULL);
  v = v ? append(ctx, m, "InstanceNormalization", (hn_value *[]){v, norm->in[1], norm->in[2]}, 3, row, &n)
        : NULL;
  if (!v || !hn_node_copy_attrs(n, norm)) return hn_pass_memory(ctx);
  v = append(ctx, m, "Reshape", (hn_value *[]){v, full}, 2, NULL, NULL);
  v = v ? append(ctx, m, "Transpose", &v, 1, &y->desc, &n) : NULL;
  if (!v || !hn_node_set_ints(n, "perm", again, (size_t)d->rank)) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "an image's moments, whatever the order of its elements");
  if (!hn_replace(ctx, y, v)) return HN_PASS_FAIL;
  hn_remove_unread(back, 3);
  return HN_PASS_HIT;
}

HN_PASS(norm_of_pixels) = {
    .name = "norm_of_pixels",
    .level = 2,
    .about = "InstanceNormalization of whole images -> the same of their pixels' channels",
    .patterns =
        HN_PATTERNS("%r = Reshape(%x, ?%s)\n%n = InstanceNormalization(%r, ?%k, ?%d)\n%y = Reshape(%n, ?%t)"),
    .match = match,
};
