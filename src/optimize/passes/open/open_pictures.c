/* ImageScaler(x) -> scale x + bias
 * Crop(x)        -> Slice(x)
 *
 * Operators of old converters at the edge of networks: as what they are, so that they are fused or cost no
 * step. */
#include "optimize/passes/common/pass.h"

#include <string.h>

static hn_pass_result replaced(hn_pass_context *ctx, hone_node *n, hn_value *y) {
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%s, spelled out", n->op_type);
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result open_scaler(hn_pass_context *ctx, hone_node *n) {
  enum { MOST = 64 }; /* channels of a picture */
  const hone_tensor_desc *y = &n->out[0]->desc;
  size_t channels = 0;
  const float *bias = hone_node_floats(n, "bias", &channels);
  double numbers[MOST];
  if (n->in[0]->desc.dtype != HONE_DTYPE_F32) return hn_pass_miss(ctx, "another type than f32");
  if (y->rank != 4 || channels > MOST) return hn_pass_miss(ctx, "no picture");
  if (hn_model_opset(ctx->model, "") < 7) return hn_pass_miss(ctx, "an opset without broadcasting");
  for (size_t i = 0; i < channels; i++) numbers[i] = (double)bias[i];
  const double scale = (double)hone_node_float(n, "scale", 1);
  const hone_tensor_desc one = hone_desc(HONE_DTYPE_F32, 0, NULL),
                         each = hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){(int64_t)channels, 1, 1});
  hn_value *by = hn_make_floats(ctx, n->name, &one, &scale),
           *add = hn_make_floats(ctx, n->name, &each, numbers);
  hn_value *scaled =
      by && add ? hn_make_newest(ctx, n, "Mul", (hn_value *const[]){n->in[0], by}, 2, y) : NULL;
  return replaced(ctx, n,
                  scaled ? hn_make_newest(ctx, n, "Add", (hn_value *const[]){scaled, add}, 2, y) : NULL);
}

/* From the left and top on, as far as the result reaches. */
static hn_pass_result open_crop(hn_pass_context *ctx, hone_node *n) {
  static const int64_t axes[2] = {2, 3};
  const hone_tensor_desc *y = &n->out[0]->desc;
  size_t k = 0;
  const int64_t *border = hone_node_ints(n, "border", &k);
  if (k != 4 || y->rank != 4 || y->dim[2] < 0 || y->dim[3] < 0)
    return hn_pass_miss(ctx, "sizes are not known");
  const int64_t from[2] = {border[1], border[0]}, to[2] = {from[0] + y->dim[2], from[1] + y->dim[3]};
  if (hn_model_opset(ctx->model, "") < 10) {
    hn_value *v = hn_make_newest(ctx, n, "Slice", n->in, 1, y);
    if (v &&
        (!hn_node_set_ints(v->producer, "starts", from, 2) || !hn_node_set_ints(v->producer, "ends", to, 2) ||
         !hn_node_set_ints(v->producer, "axes", axes, 2)))
      return hn_pass_memory(ctx);
    return replaced(ctx, n, v);
  }
  hn_value *in[4] = {n->in[0], hn_make_ints(ctx, n->name, from, 2), hn_make_ints(ctx, n->name, to, 2),
                     hn_make_ints(ctx, n->name, axes, 2)};
  return replaced(ctx, n, in[1] && in[2] && in[3] ? hn_make_newest(ctx, n, "Slice", in, 4, y) : NULL);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || n->domain[0] || !n->in[0]) return HN_PASS_NONE;
  return strcmp(n->op_type, "Crop") == 0 ? open_crop(ctx, n) : open_scaler(ctx, n);
}

HN_PASS(open_pictures) = {.name = "open_pictures",
                          .level = 1,
                          .about = "ImageScaler, Crop of old files -> Mul, Add, Slice",
                          .visit = visit,
                          .roots = HN_ROOTS("ImageScaler", "Crop")};
