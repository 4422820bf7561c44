/* Transpose(Reshape(x: N,C,H,W -> N,C,HW)): N,HW,C   ->  Reshape(Transpose(x): N,H,W,C)
 * Reshape(Transpose(x: N,HW,C): N,C,HW): N,C,H,W     ->  Transpose(Reshape(x): N,H,W,C)
 *
 * The same with windows of pixels, which another Transpose then turns: it moves whole rows of channels.
 *
 * Networks that have tokens here and convolutions there (PVT, SegFormer, CoaT, MaxViT) turn pixels to rows of
 * channels and back. Channels-last tensors are such rows: the Transposes around x are another name for what
 * lies there, while planes would have to be made for a Reshape. */
#include "optimize/passes/common/pass.h"

/* The same images and channels, and as many pixels: [N, C, S...] and [N, C, s...]. */
static bool same_planes(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  const hone_tensor_desc *two[] = {a, b};
  int64_t pixels[2] = {1, 1};
  for (int k = 0; k < 2; k++) {
    if (two[k]->rank < 3 || two[k]->rank > HONE_MAX_RANK) return false;
    for (int32_t i = 2; i < two[k]->rank; i++) {
      const int64_t n = two[k]->dim[i];
      if (n < 1 || n > INT32_MAX || pixels[k] > INT32_MAX) return false;
      pixels[k] *= n;
    }
  }
  return a->dim[0] == b->dim[0] && a->dim[0] != HONE_DIM_UNKNOWN && a->dim[1] >= 1 &&
         a->dim[1] == b->dim[1] && pixels[0] == pixels[1];
}

static bool in_order(const int64_t *perm, int32_t rank) {
  for (int32_t i = 0; i < rank; i++)
    if (perm[i] != i) return false;
  return true;
}

/* Whether what alone reads n's rows of channels makes pixels of them again: the second rule is for that one.
 */
static bool part_again(const hone_node *n) {
  const hone_node *next = hn_value_single_use(n->out[0]) ? n->out[0]->users.ptr[0].node : NULL;
  return next && next->graph == n->graph && hn_is_op(next, "Reshape") && next->out[0] &&
         next->out[0]->desc.rank > 3 && same_planes(&next->out[0]->desc, &n->out[0]->desc);
}

/* A Transpose that does not put channels first may be part of an attention, which writes in its order. */
static bool is_moved(const hn_value *x) {
  const hone_node *n = x->producer;
  if (!n || !hn_is_op(n, "Transpose")) return false;
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  for (size_t i = 1; i < count; i++)
    if (perm[i] != (int64_t)(i == 1 ? count - 1 : i - 1)) return true;
  return !count || perm[0] != 0;
}

/* What takes the place of the two nodes, built one behind the other. */
typedef struct chain {
  hn_pass_context *ctx;
  const hone_match *m;
  hn_value *v;
  bool failed;
} chain;

static void append(chain *c, const char *op, hn_value *shape, const int64_t *perm, int32_t rank, bool last) {
  const hone_tensor_desc unknown = {.dtype = c->v->desc.dtype, .rank = -1};
  hn_value *in[] = {c->v, shape};
  if (c->failed || (!shape && in_order(perm, rank))) return;
  hone_node *n = hn_make_node(c->ctx, c->m->node[1], op, in, shape ? 2 : 1,
                              last ? &c->m->node[1]->out[0]->desc : &unknown);
  c->failed = !n || (!shape && !hn_node_set_ints(n, "perm", perm, (size_t)rank));
  for (int k = 0; k < 2 && !c->failed; k++) c->failed = !hn_inherit(c->ctx, n, c->m->node[k]);
  if (n) c->v = n->out[0];
}

/* As in [N, C, s...], with the channels last; 0 in front: as it is. */
static void reshape(chain *c, const hone_tensor_desc *planes, bool last) {
  int64_t shape[HONE_MAX_RANK];
  for (int32_t i = 0; i < planes->rank; i++)
    shape[i] = i == 0 ? 0 : planes->dim[i == planes->rank - 1 ? 1 : i + 1];
  hn_value *v = c->failed ? NULL : hn_make_ints(c->ctx, c->m->node[1]->out[0]->name, shape, planes->rank);
  c->failed = !v;
  append(c, "Reshape", v, NULL, 0, last);
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  const hone_node *first = m->node[0], *second = m->node[1];
  const bool flattens = hn_is_op(first, "Reshape");
  const hone_tensor_desc *x = &first->in[0]->desc, *between = &first->out[0]->desc,
                         *y = &second->out[0]->desc;
  size_t count;
  const int64_t *given = hone_node_ints(flattens ? second : first, "perm", &count);
  const int32_t rank = between->rank;
  int64_t around[HONE_MAX_RANK], inner[HONE_MAX_RANK];
  if (!given || rank < 3 || count != (size_t)rank) return HN_PASS_NONE;
  const hone_tensor_desc *image = flattens ? x : y;
  if (!same_planes(image, between) || image->rank < 4) return HN_PASS_NONE;
  /* Channels become, or were, the innermost dimension; the image stays the outermost one of what is reshaped.
   */
  if (flattens ? given[rank - 1] != 1 : given[1] != rank - 1 || given[0] != 0) return HN_PASS_NONE;
  if (flattens && (part_again(second) || is_moved(first->in[0]))) return HN_PASS_NONE;
  const int32_t last = image->rank - 1;
  chain c = {.ctx = ctx, .m = m, .v = first->in[0]};
  if (flattens) {
    for (int32_t i = 0; i <= last; i++) around[i] = i == 0 ? 0 : i == last ? 1 : i + 1;
    for (int32_t i = 0; i < rank; i++) inner[i] = given[i] == 0 ? 0 : given[i] == 1 ? rank - 1 : given[i] - 1;
    append(&c, "Transpose", NULL, around, image->rank, false);
    reshape(&c, between, in_order(inner, rank));
    append(&c, "Transpose", NULL, inner, rank, true);
  } else {
    for (int32_t i = 0; i <= last; i++) around[i] = i == 0 ? 0 : i == 1 ? last : i - 1;
    for (int32_t i = 0; i < rank; i++) inner[i] = i == 0 ? 0 : i == rank - 1 ? rank - 1 : given[i + 1];
    append(&c, "Transpose", NULL, inner, rank, false);
    reshape(&c, image, false);
    append(&c, "Transpose", NULL, around, image->rank, true);
  }
  if (c.failed) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, flattens ? "pixels become rows of channels before they are flattened"
                            : "rows of channels are pixels before they become planes");
  if (!hn_replace(ctx, second->out[0], c.v)) return HN_PASS_FAIL;
  hn_remove_unread(m->node[1], 2);
  return HN_PASS_HIT;
}

HN_PASS(turn_pixels) = {
    .name = "turn_pixels",
    .level = 2,
    .about = "Transpose(Reshape(x)) of flattened pixels -> Reshape(Transpose(x)), and back",
    .patterns = HN_PATTERNS("%r = Reshape(%x, ?%s)\n%y = Transpose(%r)",
                            "%t = Transpose(%x)\n%y = Reshape(%t, ?%s)"),
    .match = match,
};
