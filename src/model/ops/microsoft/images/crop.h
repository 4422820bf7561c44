/* Where CropAndResize samples. */
#ifndef HN_MODEL_OPS_MICROSOFT_CROP_H
#define HN_MODEL_OPS_MICROSOFT_CROP_H

#include <stdint.h>

/* Place i of n between two corners, as shares of size - 1, on an axis of `size`. */
static inline float hn_crop_place(float from, float to, int64_t i, int64_t n, int64_t size) {
  const float last = (float)(size - 1);
  return n > 1 ? from * last + (float)i * (to - from) * last / (float)(n - 1) : 0.5f * (from + to) * last;
}

#endif
