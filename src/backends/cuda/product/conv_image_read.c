#include <string.h>

#include "backends/cuda/product/conv_image.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/mem.h"

enum { MOST_CHANNELS = 4, MOST_TAPS = 16, MOST_STEPS = 64 };

bool hn_conv_image_read(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!hn_cuda_stored(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  hn_conv_attr_flatten(a);
  if (s->input[0].desc.dtype == HONE_DTYPE_F32) return hn_refuse(why, "f32 pixels");
  if (a->groups != 1 || a->cin > MOST_CHANNELS)
    return hn_refuse(why, "%lld groups of %lld channels: it takes one of up to %d", (long long)a->groups,
                     (long long)a->cin, MOST_CHANNELS);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->dilation[1] != 1 || a->dilation[2] != 1) return hn_refuse(why, "dilated");
  if (a->kernel[2] > MOST_TAPS || a->kernel[1] * hn_div_up(a->kernel[2], 4) > MOST_STEPS)
    return hn_refuse(why, "a kernel of more than %d columns or %d products of four", MOST_TAPS, MOST_STEPS);
  if (!s->input[1].constant || !hn_cuda_type(s->input[1].desc.dtype))
    return hn_refuse(why, "weights are not constant numbers of a floating type");
  if (hn_cuda_has(s, 2) && !hn_cuda_type(s->input[2].desc.dtype))
    return hn_refuse(why, "the bias is no vector of a floating type");
  if (a->x.view.pixel % 4 || a->x.view.row % 4 || a->x.view.batch % 4 || a->x.view.pixel < 4 ||
      a->y.view.pixel % 8 || a->y.view.row % 8 || a->y.view.batch % 8 ||
      a->y.view.pixel < hn_fill_up(a->cout, 8))
    return hn_refuse(why, "pixels do not lie at multiples of 8 bytes, or the output's of 16");
  return hn_cuda_epilogue_accepts(s, why);
}

hone_status hn_conv_image_weights_open(const hone_step *s, const hn_conv_attr *a, hn_conv_image_weights *w,
                                       hone_error *error) {
  const int64_t count = a->cout * a->cin * a->kernel[1] * a->kernel[2];
  *w = (hn_conv_image_weights){.cin = a->cin,
                               .cout = a->cout,
                               .kh = a->kernel[1],
                               .kw = a->kernel[2],
                               .half = s->input[0].desc.dtype == HONE_DTYPE_F16};
  w->w = hn_malloc((size_t)count * sizeof *w->w);
  if (!w->w) return hn_fail_memory(error, (unsigned long long)count * sizeof *w->w, "packing");
  if (hn_cuda_constant_f32(&s->input[1], 0, count, w->w)) return HONE_OK;
  hn_conv_image_weights_close(w);
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s: weights of an odd type", s->anchor);
}

void hn_conv_image_weights_close(hn_conv_image_weights *w) {
  hn_free(w->w);
  w->w = NULL;
}

uint16_t hn_conv_image_weight(const hn_conv_image_weights *w, int64_t n, int64_t y, int64_t x, int64_t c) {
  const bool there = n < w->cout && c < w->cin && y >= 0 && y < w->kh && x < w->kw;
  const float v = there ? w->w[((n * w->cin + c) * w->kh + y) * w->kw + x] : 0;
  return w->half ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
}

void hn_conv_image_bind(const hone_step_run *r, const hn_conv_attr *a, hn_conv_image_args *g) {
  memset(g, 0, sizeof *g);
  g->x = r->in[0], g->y = r->out[0], g->w = r->blob;
  g->x_image = a->x.view.batch, g->x_row = a->x.view.row, g->x_pixel = (i32)a->x.view.pixel;
  g->y_image = a->y.view.batch, g->y_row = a->y.view.row, g->y_pixel = (i32)a->y.view.pixel;
  g->in_h = (i32)a->x.size[1], g->in_w = (i32)a->x.size[2], g->out_h = (i32)a->y.size[1],
  g->out_w = (i32)a->y.size[2];
  g->pad_h = (i32)a->pad[1], g->pad_w = (i32)a->pad[2];
  g->vectors = (i32)hn_div_up(a->cout, 8);
  hn_cuda_epilogue_bind(r, 2, &g->epilogue);
}
