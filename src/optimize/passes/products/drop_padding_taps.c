/* Conv(x, W)  ->  Conv(x, W without rows and columns that only ever meet padding)
 *
 * A dilation as wide as the picture (the branches of DeepLab's ASPP on small pictures), or a kernel of 3 over
 * one frame of a video that is left: what these weights are multiplied by is padding, everywhere. */
#include "model/ops/common/window.h"
#include "optimize/passes/common/pass.h"

#include <math.h>

/* How many elements of the kernel meet the input nowhere, at its begin and at its end along dimension d. As
 * many as the padding on that side covers. */
static void unread_ends(const hn_window *w, int32_t d, int64_t *begin, int64_t *end) {
  int64_t lo, hi;
  *begin = *end = 0;
  for (int64_t k = 0; k + 1 < w->kernel[d]; k++, (*begin)++) {
    hn_window_range(w, d, k, &lo, &hi);
    if (lo < hi || (*begin + 1) * w->dilation[d] > w->pad[d]) break;
  }
  for (int64_t k = w->kernel[d] - 1; k > *begin; k--, (*end)++) {
    hn_window_range(w, d, k, &lo, &hi);
    if (lo < hi || (*end + 1) * w->dilation[d] > w->pad_end[d]) break;
  }
}

/* Copies what stays of the kernel's elements, those of one pair of channels behind those of the one before.
 * False: a number that goes is not finite, and makes NaN of the padding. */
static bool cut(const hn_window *w, const int64_t *begin, const int64_t *left, int64_t pairs,
                const float *from, float *to) {
  int64_t k[HN_MAX_SPATIAL] = {0}, at = 0;
  for (int64_t pair = 0; pair < pairs;) {
    bool stays = true;
    for (int32_t d = 0; d < w->n; d++) stays &= k[d] >= begin[d] && k[d] < begin[d] + left[d];
    const float v = hn_f32_at(from, at++);
    if (stays)
      *to++ = v;
    else if (!isfinite(v))
      return false;
    int32_t d = w->n - 1;
    for (; d >= 0 && ++k[d] == w->kernel[d]; d--) k[d] = 0;
    pair += d < 0;
  }
  return true;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor *weights;
  hn_window w;
  if (!hn_is_op(n, "Conv") || !n->in[0] || !(weights = hn_known_desc(hn_in(n, 1)))) return HN_PASS_NONE;
  if (weights->desc.dtype != HONE_DTYPE_F32 || weights->desc.rank < 3 ||
      n->in[0]->desc.rank != weights->desc.rank || hone_desc_count(&weights->desc) < 1 ||
      hn_window_init(&w, n, &n->in[0]->desc, weights->desc.dim + 2, false, NULL) != HONE_OK)
    return HN_PASS_NONE;
  int64_t begin[HN_MAX_SPATIAL], end, left[HN_MAX_SPATIAL], pads[2 * HN_MAX_SPATIAL];
  hone_tensor_desc d = weights->desc;
  bool any = false;
  for (int32_t i = 0; i < w.n; i++) {
    if (w.in[i] < 1 || w.out[i] < 1) return HN_PASS_NONE; /* not known */
    unread_ends(&w, i, &begin[i], &end);
    any |= begin[i] || end;
    left[i] = d.dim[i + 2] = w.kernel[i] - begin[i] - end;
    pads[i] = w.pad[i] - begin[i] * w.dilation[i];
    pads[w.n + i] = w.pad_end[i] - end * w.dilation[i];
  }
  if (!any) return HN_PASS_NONE;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  void *room;
  if (!hn_known(n->in[1])) return HN_PASS_NONE; /* their scaled numbers leave f32's range */
  hn_value *fewer = hn_make_room(ctx, n->in[1]->name, &d, &room);
  if (!fewer) return HN_PASS_FAIL;
  if (!cut(&w, begin, left, d.dim[0] * d.dim[1], n->in[1]->constant->data, room))
    return hn_pass_miss(ctx, "weights of '%.80s' that meet padding alone are not finite", n->name);
  hn_node_drop_attr(n, "auto_pad");
  if (!hn_node_set_ints(n, "pads", pads, 2 * (size_t)w.n) ||
      !hn_node_set_ints(n, "kernel_shape", left, (size_t)w.n))
    return hn_pass_memory(ctx);
  const int64_t before = hn_count(n->in[1]->constant);
  if (!hn_set_input(ctx, n, 1, fewer)) return HN_PASS_FAIL;
  return hn_pass_hit(ctx, "%lld of %lld weights of '%.80s' meet padding alone",
                     (long long)(before - hone_desc_count(&d)), (long long)before, n->name);
}

HN_PASS(drop_padding_taps) = {
    .name = "drop_padding_taps",
    .level = 1,
    .about = "Conv(x, W) -> Conv(x, W without rows and columns that meet padding alone)",
    .visit = visit,
    .roots = HN_ROOTS("Conv"),
};
