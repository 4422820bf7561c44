/* Col2Im(x)  ->  Reshape(Transpose(Reshape(x)))
 *
 * where blocks do not overlap and fill the image: nothing is added up, elements are moved. What unfolds an
 * image is spelled so, too, and Transposes that meet become one. */
#include "optimize/passes/common/pass.h"

enum { MOST_AXES = (HONE_MAX_RANK - 2) / 2 };

static bool all(const hone_node *n, const char *name, int64_t count, int64_t value) {
  size_t given;
  const int64_t *v = hone_node_ints(n, name, &given);
  for (size_t i = 0; i < given; i++)
    if (v[i] != value) return false;
  return given == 0 || given == (size_t)count;
}

/* Why blocks are more than a part of the image each, or NULL. */
static const char *overlap(const hone_node *n, int64_t axes, const int64_t *image, const int64_t *block) {
  size_t given;
  const int64_t *stride = hone_node_ints(n, "strides", &given);
  if (!all(n, "pads", 2 * axes, 0) || !all(n, "dilations", axes, 1)) return "there are pads or dilations";
  for (int64_t i = 0; i < axes; i++) {
    const int64_t step = given ? stride[i] : 1;
    if (block[i] < 1 || step != block[i]) return "blocks overlap, or lie apart";
    if (image[i] < 1 || image[i] % block[i]) return "blocks do not fill the image";
  }
  return NULL;
}

static hn_value *shaped(hn_pass_context *ctx, hone_node *n, hn_value *v, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, dim);
  hn_value *shape = hn_make_ints(ctx, v->name, dim, rank);
  return shape ? hn_make_newest(ctx, n, "Reshape", (hn_value *const[]){v, shape}, 2, &like) : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "Col2Im")) return HN_PASS_NONE;
  int64_t image[MOST_AXES], block[MOST_AXES], dim[HONE_MAX_RANK], perm[HONE_MAX_RANK];
  const int64_t axes = hn_known_ints(n->in[1], image, MOST_AXES);
  if (axes < 1 || hn_known_ints(n->in[2], block, MOST_AXES) != axes)
    return hn_pass_miss(ctx, "its sizes are computed, or many");
  const hone_tensor_desc *x = &n->in[0]->desc, *y = &n->out[0]->desc;
  if (!hone_desc_known(x) || !hone_desc_known(y) || hone_desc_count(x) < 1)
    return hn_pass_miss(ctx, "a shape is not known, or empty");
  const char *why = overlap(n, axes, image, block);
  if (why) return hn_pass_miss(ctx, "%s", why);
  const int32_t k = (int32_t)axes, rank = 2 + 2 * k;
  dim[0] = perm[0] = 0, perm[1] = 1;
  dim[0] = y->dim[0], dim[1] = y->dim[1];
  for (int32_t i = 0; i < k; i++) {
    dim[2 + i] = block[i], dim[2 + k + i] = image[i] / block[i];
    perm[2 + 2 * i] = 2 + k + i, perm[3 + 2 * i] = 2 + i;
  }
  hn_value *v = shaped(ctx, n, n->in[0], rank, dim);
  if (!v) return HN_PASS_FAIL;
  int64_t turned[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) turned[i] = dim[perm[i]];
  const hone_tensor_desc like = hone_desc(x->dtype, rank, turned);
  v = hn_make_newest(ctx, n, "Transpose", &v, 1, &like);
  if (!v || !hn_node_set_ints(v->producer, "perm", perm, (size_t)rank)) return hn_pass_memory(ctx);
  if (!(v = shaped(ctx, n, v, y->rank, y->dim))) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "blocks that fill the image are moved");
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(fold_to_transpose) = {
    .name = "fold_to_transpose",
    .level = 2,
    .about = "Col2Im of blocks that fill the image side by side -> Reshape, Transpose, Reshape",
    .visit = visit,
    .roots = HN_ROOTS("Col2Im"),
};
