/* QLinearAveragePool: the global average of codes, channels-last (codes_average.cu). */
#include <math.h>
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/quantized/codes_average_args.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "optimize/step/pixels.h"

static bool describe(const hone_step *s, hn_codes_average_args *a, hone_reason *why) {
  float x_scale, x_zero, y_scale, y_zero;
  hn_pixels xp, yp;
  memset(a, 0, sizeof *a);
  if (s->n_anchor_inputs < HN_QLINEAR_Y_ZERO + 1 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *y = &s->output[0].desc;
  if (!hn_codes_type(x->dtype) || !hn_codes_type(y->dtype))
    return hn_refuse(why, "a tensor has no codes of 8 bits");
  if (!hn_pixels_of(x, &xp) || !hn_pixels_of(y, &yp) || !xp.even)
    return hn_refuse(why, "tensors are not channels-last of rank 3 to 5");
  if (!hn_codes_number(s, HN_QLINEAR_X_SCALE, &x_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_X_ZERO, &x_zero, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_SCALE, &y_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_ZERO, &y_zero, why))
    return false;
  const int64_t pixels = xp.size[0] * xp.size[1] * xp.size[2];
  if (pixels < 1 || xp.batch < 1 || xp.channels < 1) return hn_refuse(why, "an empty tensor");
  if (pixels > INT32_MAX / 255) return hn_refuse(why, "too many pixels for sums of 32 bits");
  a->scale = x_scale / (y_scale * (float)pixels);
  if (!(fabsf(a->scale) * 255 * (float)pixels < 2e9f)) return hn_refuse(why, "results may go beyond 32 bits");
  a->slabs = (i32)hn_div_up(xp.channels, 128);
  if (xp.batch * a->slabs > INT32_MAX) return hn_refuse(why, "more than 2^31 blocks");
  a->image = xp.view.batch, a->pixel = xp.view.pixel, a->y_image = yp.batch > 1 ? yp.view.batch : 0;
  a->pixels = (i32)pixels, a->channels = (i32)xp.channels, a->zero = (i32)y_zero;
  a->taken = (i32)x_zero * a->pixels;
  /* Padding is only this tensor's own where its images are as far apart as its pixels are long. */
  const bool own =
      y->layout == HONE_LAYOUT_CHANNELS_LAST && (yp.batch == 1 || y->stride[0] == y->channel_pitch);
  a->stored = own && y->channel_pitch > xp.channels ? (i32)y->channel_pitch : (i32)xp.channels;
  a->slabs = (i32)hn_div_up(a->stored, 128);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_codes_average_args a;
  (void)m;
  return hn_cuda_known(s, why) && describe(s, &a, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, 0, 0, (double)hone_desc_bytes(&s->input[0].desc), 0.6);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_codes_average_args a;
  hone_reason why = {""};
  if (!describe(s, &a, &why)) return hn_not_described(s, &why, error);
  a.x = r->in[HN_QLINEAR_X], a.y = r->out[0];
  const hone_tensor_desc *x = &s->input[0].desc;
  const bool words =
      (uintptr_t)a.x % 4 == 0 && a.pixel % 4 == 0 && a.image % 4 == 0 && hn_fill_up(a.channels, 4) <= a.pixel;
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_CODE %s\n#define HN_X %s\n%s", hone_dtype_name(s->output[0].desc.dtype),
                hone_dtype_name(x->dtype), words ? "#define HN_WORDS 1\n" : "");
  const hone_status st = hn_cuda_launch_line(hn_cuda_queue_of(r), "codes_average", &text, "codes_average",
                                             x->dim[0] * a.slabs * 256, 256, &a, sizeof a, error);
  hn_str_free(&text);
  return st;
}

HN_TACTIC(cuda, codes_average, "QLinearAveragePool", 1, .accepts = accepts, .cost = cost, .run = run);
