/* Resize, crop and letterbox as numbers: which part of a picture an input shows, and how large. Composed into
 * one map of each axis, so that a picture is resampled once. */
#include "runtime/data/data.h"

#include <math.h>

enum { MOST = 65535 };

typedef struct size2 {
  int64_t h, w;
} size2;

static hone_status check(const hone_preprocess *o, hone_error *error) {
  const int64_t sizes[] = {o->resize_h, o->resize_w, o->crop_h, o->crop_w};
  for (size_t i = 0; i < 4; i++)
    if (sizes[i] < 0 || sizes[i] > MOST)
      return hn_fail(error, HONE_ERROR_USAGE, "a picture cannot be resized or cropped to %lld",
                     (long long)sizes[i]);
  if ((o->crop_h == 0) != (o->crop_w == 0) || (o->resize_w && !o->resize_h))
    return hn_fail(error, HONE_ERROR_USAGE, "preprocessing: a size wants both height and width");
  for (int c = 0; o->normalise && c < 3; c++)
    if (!isfinite(o->mean[c]) || !isfinite(o->std[c]) || o->std[c] == 0 || !isfinite(o->scale))
      return hn_fail(error, HONE_ERROR_USAGE,
                     "preprocessing: scale, mean and deviation must be finite, and no deviation 0");
  return HONE_OK;
}

/* The whole picture's size after the first step. */
static size2 resized(const hn_picture *p, const hone_preprocess *o) {
  size2 s = {p->height, p->width};
  if (o->resize_h && o->resize_w) return (size2){o->resize_h, o->resize_w};
  if (o->resize_h) {
    const int64_t shorter = s.h < s.w ? s.h : s.w;
    s = (size2){s.h * o->resize_h / shorter, s.w * o->resize_h / shorter};
  }
  return s;
}

/* Enlarged until it covers the crop. */
static size2 covering(size2 s, size2 crop) {
  const double by_h = (double)crop.h / (double)s.h, by_w = (double)crop.w / (double)s.w;
  const double by = by_h > by_w ? by_h : by_w;
  if (by <= 1) return s;
  const size2 grown = {(int64_t)lround((double)s.h * by), (int64_t)lround((double)s.w * by)};
  return (size2){grown.h > crop.h ? grown.h : crop.h, grown.w > crop.w ? grown.w : crop.w};
}

/* `length` pixels of the picture became `whole`, of which `shown` from `from` on fill `end - begin`. */
static hn_fit_axis axis_of(int64_t length, int64_t whole, int64_t shown, int64_t begin, int64_t end) {
  const double first = (double)length / (double)whole, from = rint((double)(whole - shown) / 2);
  const double ratio = shown == end - begin ? first : first * (double)shown / (double)(end - begin);
  return (hn_fit_axis){from * first - (double)begin * ratio, ratio, begin, end};
}

hone_status hn_picture_fit(const hn_picture *p, const hone_preprocess *o, int64_t *height, int64_t *width,
                           hn_fit_axis *y, hn_fit_axis *x, hone_error *error) {
  const hone_status status = check(o, error);
  if (status != HONE_OK) return status;
  size2 whole = resized(p, o), shown = whole;
  if (o->crop_h) {
    shown = (size2){o->crop_h, o->crop_w};
    whole = covering(whole, shown);
  }
  if (!*height) *height = shown.h;
  if (!*width) *width = shown.w;
  if (*height > MOST || *width > MOST || whole.h > 64 * MOST || whole.w > 64 * MOST)
    return hn_fail(error, HONE_ERROR_INPUT, "a picture cannot be that large");
  size2 at = {0, 0}, size = {*height, *width};
  if (o->fit == HONE_FIT_LETTERBOX) {
    const double by_h = (double)size.h / (double)shown.h, by_w = (double)size.w / (double)shown.w;
    const double by = by_h < by_w ? by_h : by_w;
    size = (size2){(int64_t)lround((double)shown.h * by), (int64_t)lround((double)shown.w * by)};
    if (size.h < 1) size.h = 1;
    if (size.w < 1) size.w = 1;
    at = (size2){(*height - size.h) / 2, (*width - size.w) / 2};
  }
  *y = axis_of(p->height, whole.h, shown.h, at.h, at.h + size.h);
  *x = axis_of(p->width, whole.w, shown.w, at.w, at.w + size.w);
  return HONE_OK;
}
