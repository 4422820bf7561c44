/* Pictures as model inputs: resize, normalise, lay out. */
#include "runtime/data/data.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>

/* Weights of the input pixels for one output row or column. */
typedef struct taps {
  int64_t first, count;
  float *weight;
} taps;

/* Bilinear resampling by a triangle filter, which widens when it shrinks the picture, so that nothing is
 * skipped. */
static taps *make_taps(int64_t in, int64_t out, hn_arena *arena) {
  double ratio = (double)in / (double)out, reach = ratio > 1 ? ratio : 1;
  taps *t = HN_NEW_ARRAY(arena, taps, out);
  for (int64_t i = 0; t && i < out; i++) {
    double center = ((double)i + 0.5) * ratio;
    int64_t a = (int64_t)floor(center - reach), b = (int64_t)ceil(center + reach);
    if (a < 0) a = 0;
    if (b > in) b = in;
    t[i] = (taps){a, b - a, HN_NEW_ARRAY(arena, float, b - a)};
    if (!t[i].weight) return NULL;
    double sum = 0;
    for (int64_t k = a; k < b; k++) {
      double w = 1 - fabs(((double)k + 0.5 - center) / reach);
      t[i].weight[k - a] = w > 0 ? (float)w : 0;
      sum += w > 0 ? w : 0;
    }
    for (int64_t k = 0; k < b - a; k++) t[i].weight[k] = (float)(t[i].weight[k] / sum);
  }
  return t;
}

/* -> height x width x 3 floats in 0..255. */
static float *resize(const hn_picture *p, int64_t width, int64_t height, hn_arena *arena) {
  taps *tx = make_taps(p->width, width, arena), *ty = make_taps(p->height, height, arena);
  float *mid = HN_NEW_ARRAY(arena, float, p->height *width * 3),
        *out = HN_NEW_ARRAY(arena, float, height *width * 3);
  if (!tx || !ty || !mid || !out) return NULL;
  for (int64_t y = 0; y < p->height; y++)
    for (int64_t x = 0; x < width; x++)
      for (int64_t k = 0; k < tx[x].count; k++) {
        const uint8_t *s = p->rgb + (y * p->width + tx[x].first + k) * 3;
        for (int c = 0; c < 3; c++) mid[(y * width + x) * 3 + c] += tx[x].weight[k] * s[c];
      }
  for (int64_t y = 0; y < height; y++)
    for (int64_t k = 0; k < ty[y].count; k++) {
      const float *s = mid + (ty[y].first + k) * width * 3;
      float w = ty[y].weight[k], *d = out + y * width * 3;
      for (int64_t i = 0; i < width * 3; i++) d[i] += w * s[i];
    }
  return out;
}

typedef struct layout {
  int32_t c, h, w; /* axes */
} layout;

/* NCHW or CHW where the channel axis is 1 or 3, NHWC or HWC where the last one is. */
static bool find_layout(const hone_tensor_desc *d, layout *l) {
  if (d->rank != 3 && d->rank != 4) return false;
  int32_t a = d->rank - 3;
  bool first = d->dim[a] == 3 || d->dim[a] == 1, last = d->dim[a + 2] == 3 || d->dim[a + 2] == 1;
  *l = first || !last ? (layout){a, a + 1, a + 2} : (layout){a + 2, a, a + 1};
  return first || last || d->dim[a] < 0;
}

hone_status hn_picture_tensor(const hn_picture *picture, const hone_tensor_desc *want,
                              const hone_image_options *options, hn_arena *arena, hone_tensor *out,
                              hone_error *error) {
  static const hone_image_options imagenet = {
      .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}, .scale = 1.0f / 255};
  const hone_image_options *o = options && options->custom ? options : &imagenet;
  layout l;
  hone_tensor_desc d = *want;
  if (!find_layout(&d, &l)) {
    char text[128];
    hn_fail(error, HONE_ERROR_INPUT, "a picture does not fit this input");
    hn_error_expected(error, "an input of 1 or 3 channels with height and width");
    hn_error_got(error, "%s", hone_desc_format(want, text, sizeof text));
    return HONE_ERROR_INPUT;
  }
  if (d.dim[l.c] < 0) d.dim[l.c] = 3;
  if (d.dim[l.h] < 0) d.dim[l.h] = picture->height;
  if (d.dim[l.w] < 0) d.dim[l.w] = picture->width;
  if (d.rank == 4 && d.dim[0] < 0) d.dim[0] = 1;
  d = hone_desc(HONE_DTYPE_F32, d.rank, d.dim);
  int64_t h = d.dim[l.h], w = d.dim[l.w], channels = d.dim[l.c], count = hone_desc_count(&d);
  if (count < 0 || h > 65535 || w > 65535)
    return hn_fail(error, HONE_ERROR_INPUT, "a picture cannot be that large");
  float *rgb = resize(picture, w, h, arena);
  float *values = hn_arena_aligned(arena, (size_t)(count ? count : 1) * sizeof(float), HN_MEM_ALIGN);
  if (!rgb || !values) return hn_fail_memory(error, (uint64_t)count * 4, "a picture's tensor");
  bool raw = want->dtype == HONE_DTYPE_U8; /* bytes in, bytes out: no normalisation */
  int64_t at[HONE_MAX_RANK] = {0};
  for (int64_t i = 0; i < count; i++) { /* row-major walk over the output */
    int64_t rest = i;
    for (int32_t k = d.rank - 1; k >= 0; k--) at[k] = rest % d.dim[k], rest /= d.dim[k];
    const float *p = rgb + (at[l.h] * w + at[l.w]) * 3;
    int64_t c = at[l.c];
    if (channels == 1) {
      float luma = 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
      values[i] = raw              ? rintf(luma)
                  : o == &imagenet ? luma * o->scale
                                   : (luma * o->scale - o->mean[0]) / o->std[0];
    } else {
      float v = p[o->bgr ? 2 - c : c];
      values[i] = raw ? rintf(v) : (v * o->scale - o->mean[c]) / o->std[c];
    }
  }
  hone_tensor f32 = {d, values};
  return hn_tensor_convert(&f32, want->dtype ? want->dtype : HONE_DTYPE_F32, arena, out, error);
}
