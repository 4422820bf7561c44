/* Pictures as model inputs: resample, normalise, lay out. */
#include "runtime/data/data.h"

#include <math.h>
#include <string.h>

/* Weights of the input pixels for one output row or column. */
typedef struct taps {
  int64_t first, count;
  float *weight;
} taps;

/* Bilinear resampling by a triangle filter, which widens when it shrinks the picture, so that nothing is
 * skipped. */
static taps *make_taps(int64_t in, const hn_fit_axis *axis, hn_arena *arena) {
  const double reach = axis->ratio > 1 ? axis->ratio : 1;
  taps *t = HN_NEW_ARRAY(arena, taps, axis->end);
  for (int64_t i = axis->begin; t && i < axis->end; i++) {
    double center = axis->origin + ((double)i + 0.5) * axis->ratio;
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

/* -> height x width x 3 floats in 0..255; bars have the brightness `pad`. */
static float *resample(const hn_picture *p, int64_t height, int64_t width, const hn_fit_axis *ay,
                       const hn_fit_axis *ax, uint8_t pad, hn_arena *arena) {
  taps *tx = make_taps(p->width, ax, arena), *ty = make_taps(p->height, ay, arena);
  if (!tx || !ty) return NULL;
  const int64_t top = ty[ay->begin].first, bottom = ty[ay->end - 1].first + ty[ay->end - 1].count;
  float *mid = HN_NEW_ARRAY(arena, float, (bottom - top) * width * 3),
        *out = HN_NEW_ARRAY(arena, float, height *width * 3);
  if (!mid || !out) return NULL;
  for (int64_t y = top; y < bottom; y++)
    for (int64_t x = ax->begin; x < ax->end; x++)
      for (int64_t k = 0; k < tx[x].count; k++) {
        const uint8_t *s = p->rgb + (y * p->width + tx[x].first + k) * 3;
        for (int c = 0; c < 3; c++) mid[((y - top) * width + x) * 3 + c] += tx[x].weight[k] * s[c];
      }
  for (int64_t y = 0; y < height; y++) {
    float *d = out + y * width * 3;
    const bool shown = y >= ay->begin && y < ay->end;
    for (int64_t k = 0; shown && k < ty[y].count; k++) {
      const float *s = mid + (ty[y].first + k - top) * width * 3, w = ty[y].weight[k];
      for (int64_t i = ax->begin * 3; i < ax->end * 3; i++) d[i] += w * s[i];
    }
    for (int64_t x = 0; x < width; x++)
      if (!shown || x < ax->begin || x >= ax->end)
        for (int c = 0; c < 3; c++) d[x * 3 + c] = pad;
  }
  return out;
}

typedef struct layout {
  int32_t c, h, w; /* axes */
} layout;

/* NCHW or CHW where the channel axis is 1 or 3, NHWC or HWC where the last one is. */
static bool find_layout(const hone_tensor_desc *d, hone_pixels pixels, layout *l) {
  if (d->rank != 3 && d->rank != 4) return false;
  int32_t a = d->rank - 3;
  bool first = d->dim[a] == 3 || d->dim[a] == 1, last = d->dim[a + 2] == 3 || d->dim[a + 2] == 1;
  if (pixels == HONE_PIXELS_AUTO) pixels = first || !last ? HONE_PIXELS_NCHW : HONE_PIXELS_NHWC;
  *l = pixels == HONE_PIXELS_NCHW ? (layout){a, a + 1, a + 2} : (layout){a + 2, a, a + 1};
  const int64_t channels = d->dim[l->c];
  return channels < 0 || channels == 1 || channels == 3;
}

/* What becomes of a byte: of 0..255 for all channels, or for the only one. */
typedef struct tone {
  bool raw; /* bytes in, bytes out */
  float scale, mean[3], std[3];
} tone;

static tone tone_of(const hone_preprocess *o, bool raw, int64_t channels) {
  static const tone imagenet = {.scale = 1.0f / 255,
                                .mean = {0.485f, 0.456f, 0.406f},
                                .std = {0.229f, 0.224f, 0.225f}},
                    grey = {.scale = 1.0f / 255, .std = {1, 1, 1}};
  if (raw) return (tone){.raw = true};
  if (!o->normalise) return channels == 1 ? grey : imagenet;
  tone t = {.scale = o->scale};
  memcpy(t.mean, o->mean, sizeof t.mean);
  memcpy(t.std, o->std, sizeof t.std);
  return t;
}

static inline float apply(const tone *t, float v, int64_t c) {
  return t->raw ? rintf(v) : (v * t->scale - t->mean[c]) / t->std[c];
}

/* Grey pixels keep their very value. */
static inline float luma(const float *p) {
  return p[0] == p[1] && p[1] == p[2] ? p[0] : 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
}

/* One picture of the batch, laid out as the strides say. */
static void put(const float *rgb, const hone_tensor_desc *d, const layout *l, const hone_preprocess *o,
                const tone *t, float *to) {
  const int64_t h = d->dim[l->h], w = d->dim[l->w], channels = d->dim[l->c];
  for (int64_t y = 0; y < h; y++)
    for (int64_t x = 0; x < w; x++) {
      const float *p = rgb + (y * w + x) * 3;
      float *at = to + y * d->stride[l->h] + x * d->stride[l->w];
      if (channels == 1) *at = apply(t, luma(p), 0);
      for (int64_t c = 0; channels == 3 && c < 3; c++)
        at[c * d->stride[l->c]] = apply(t, p[o->bgr ? 2 - c : c], c);
    }
}

static hone_status misfit(const hone_tensor_desc *want, hone_pixels pixels, hone_error *error) {
  char text[128];
  hn_fail(error, HONE_ERROR_INPUT, "a picture does not fit this input");
  hn_error_expected(error, "an input of 1 or 3 channels with height and width%s",
                    pixels == HONE_PIXELS_NHWC   ? " (NHWC)"
                    : pixels == HONE_PIXELS_NCHW ? " (NCHW)"
                                                 : "");
  hn_error_got(error, "%s", hone_desc_format(want, text, sizeof text));
  return HONE_ERROR_INPUT;
}

hone_status hn_picture_tensor(const hn_picture *picture, const hone_tensor_desc *want,
                              const hone_preprocess *preprocess, hn_arena *arena, hone_tensor *out,
                              hone_picture_map *map, hone_error *error) {
  static const hone_preprocess usual = {0};
  const hone_preprocess *o = preprocess ? preprocess : &usual;
  layout l;
  hone_tensor_desc d = *want;
  if (!find_layout(&d, o->pixels, &l)) return misfit(want, o->pixels, error);
  int64_t h = d.dim[l.h] < 0 ? 0 : d.dim[l.h], w = d.dim[l.w] < 0 ? 0 : d.dim[l.w];
  if (d.dim[l.h] == 0 || d.dim[l.w] == 0) return misfit(want, o->pixels, error);
  hn_fit_axis ay, ax;
  const hone_status status = hn_picture_fit(picture, o, &h, &w, &ay, &ax, error);
  if (status != HONE_OK) return status;
  if (d.dim[l.c] < 0) d.dim[l.c] = 3;
  d.dim[l.h] = h, d.dim[l.w] = w;
  if (d.rank == 4 && d.dim[0] < 0) d.dim[0] = 1;
  d = hone_desc(HONE_DTYPE_F32, d.rank, d.dim);
  const int64_t count = hone_desc_count(&d), batch = d.rank == 4 ? d.dim[0] : 1;
  if (count < 0) return hn_fail(error, HONE_ERROR_INPUT, "a picture cannot be that large");
  float *rgb = resample(picture, h, w, &ay, &ax, o->pad, arena);
  float *values = hn_arena_aligned(arena, (size_t)(count ? count : 1) * sizeof(float), HN_MEM_ALIGN);
  if (!rgb || !values) return hn_fail_memory(error, (uint64_t)count * 4, "a picture's tensor");
  const tone t = tone_of(o, want->dtype == HONE_DTYPE_U8, d.dim[l.c]);
  if (batch > 0) put(rgb, &d, &l, o, &t, values);
  for (int64_t n = 1; n < batch; n++)
    memcpy(values + n * (count / batch), values, (size_t)(count / batch) * sizeof *values);
  if (map)
    *map =
        (hone_picture_map){picture->width, picture->height, w, h, ax.origin, ay.origin, ax.ratio, ay.ratio};
  hone_tensor f32 = {d, values};
  return hn_tensor_convert(&f32, want->dtype ? want->dtype : HONE_DTYPE_F32, arena, out, error);
}

bool hn_picture_light(const hone_tensor *t, const hone_preprocess *preprocess, double *mean,
                      double *deviation) {
  static const hone_preprocess usual = {0};
  const hone_preprocess *o = preprocess ? preprocess : &usual;
  const hone_tensor_desc *d = &t->desc;
  layout l;
  if ((d->dtype != HONE_DTYPE_F32 && d->dtype != HONE_DTYPE_U8) || !find_layout(d, o->pixels, &l))
    return false;
  const int64_t channels = d->dim[l.c], n = channels * d->dim[l.h] * d->dim[l.w];
  const tone by = tone_of(o, d->dtype == HONE_DTYPE_U8, channels);
  if (n < 1 || (d->rank == 4 && d->dim[0] < 1) || (!by.raw && by.scale == 0)) return false;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t c = i / d->stride[l.c] % channels;
    const double v = by.raw ? ((const uint8_t *)t->data)[i]
                            : ((double)((const float *)t->data)[i] * (double)by.std[c] + (double)by.mean[c]) /
                                  (double)by.scale;
    sum += v / 255;
    squares += v / 255 * (v / 255);
  }
  *mean = sum / (double)n;
  *deviation = sqrt(fmax(squares / (double)n - *mean * *mean, 0));
  return isfinite(*mean) && isfinite(*deviation);
}
