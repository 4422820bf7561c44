/* QuantizeLinear of images in planes to pixels of codes (quantize_pixels.cu). */
#include <string.h>

#include "backends/cuda/elementwise/quantize_pixels_args.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/quantise.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"

enum { THREADS = 256, EACH = 4, CHANNELS = 4 };

static bool describe(const hone_step *s, hn_quantize_pixels_args *a, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  memset(a, 0, sizeof *a);
  if (s->n_epilogue) return hn_refuse(why, "no epilogue is generated");
  if (!hn_cuda_known(s, why) || !hn_cuda_has(s, 1)) return hn_refuse(why, "inputs are missing");
  if (x->layout != HONE_LAYOUT_ROW_MAJOR || y->layout != HONE_LAYOUT_CHANNELS_LAST || x->rank < 3)
    return hn_refuse(why, "not from planes to pixels");
  if (!hn_cuda_type(x->dtype)) return hn_refuse(why, "the data is %s", hone_dtype_name(x->dtype));
  if (y->dim[1] > CHANNELS || (y->channel_pitch != 4 && y->channel_pitch != 16))
    return hn_refuse(why, "%lld channels, one pixel every %lld bytes", (long long)y->dim[1],
                     (long long)y->channel_pitch);
  const int64_t n = hn_dims(y, 2, y->rank);
  int64_t step = y->channel_pitch; /* pixels behind each other: not a part of wider ones */
  for (int32_t i = y->rank - 1; i >= 0; i--) {
    if (i == 1) continue;
    if (y->dim[i] > 1 && y->stride[i] != step) return hn_refuse(why, "pixels do not follow each other");
    step *= y->dim[i];
  }
  if (n % EACH) return hn_refuse(why, "an image is not whole fours of pixels");
  if (hone_desc_count(y) >= INT32_MAX) return hn_refuse(why, "more than 2^31 elements");
  for (uint32_t i = 1; i < 3; i++)
    if (hn_cuda_has(s, i) && (!s->input[i].constant || hone_desc_count(&s->input[i].desc) != 1))
      return hn_refuse(why, "input %u is not one constant number", i);
  if (s->input[1].desc.dtype != HONE_DTYPE_F32) return hn_refuse(why, "the scale is not f32");
  const bool zero = hn_cuda_has(s, 2);
  const void *code = zero ? s->input[2].constant : NULL;
  if (zero && s->input[2].desc.dtype != y->dtype) return hn_refuse(why, "a zero point of another type");
  a->plane = n, a->image_planes = n * y->dim[1];
  a->channels = (u32)y->dim[1], a->pixels = (u32)n;
  return hn_cuda_quantise(*(const float *)s->input[1].constant,
                          !zero                       ? 0
                          : y->dtype == HONE_DTYPE_I8 ? *(const int8_t *)code
                                                      : *(const uint8_t *)code,
                          y->dtype, &a->codes, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_quantize_pixels_args a;
  (void)m;
  return describe(s, &a, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_quantize_pixels_args a;
  return describe(s, &a, NULL) ? hn_cuda_seconds(m, 0, 0, hn_cuda_bytes(s), 0.85) : HN_REFUSED_SECONDS;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  const hone_tensor_desc *y = &s->output[0].desc;
  hn_quantize_pixels_args a;
  hone_reason why = {""};
  if (!describe(s, &a, &why)) return hn_not_described(s, &why, error);
  if (hone_desc_count(y) == 0) return HONE_OK;
  const size_t size = hone_dtype_size(s->input[0].desc.dtype);
  if ((uintptr_t)r->in[0] % (EACH * size) || (uintptr_t)r->out[0] % 16)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  a.x = r->in[0], a.y = r->out[0];
  const uint32_t groups = hn_cuda_blocks(a.pixels, THREADS * EACH);
  a.groups = hn_cuda_divisor(groups);
  hn_str prefix = {0};
  hn_cuda_define_type(&prefix, s->input[0].desc.dtype);
  hn_str_printf(&prefix, "#define HN_PIXEL %d\n", (int)y->channel_pitch);
  const hn_cuda_kernel kernel = {"quantize_pixels", prefix.ptr, "quantize_pixels"};
  const hn_cuda_shape shape = {
      .grid = {groups * (uint32_t)y->dim[0], 1, 1}, .threads = THREADS, .overlap = true};
  const hone_status st = prefix.failed
                             ? hn_fail_memory(error, prefix.cap, "device text")
                             : hn_cuda_launch(hn_cuda_queue_of(r), &kernel, &shape, &a, sizeof a, error);
  hn_str_free(&prefix);
  return st;
}

HN_TACTIC(cuda, quantize_pixels, "QuantizeLinear", 1, .accepts = accepts, .cost = cost, .run = run);
