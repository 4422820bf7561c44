/* Images whose values are normalised one by one: where they lie in what is read and in what is written. */
#ifndef HN_CPU_NORMALIZE_IMAGES_H
#define HN_CPU_NORMALIZE_IMAGES_H

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"

typedef struct hn_images {
  hn_isa isa;
  bool channels_last; /* else row-major, without gaps */
  int64_t batch, channels, pixels;
  int64_t image_x, pixel_x, image_y, pixel_y; /* channels-last distances in floats */
} hn_images;

/* Of the first input and the first output, which have the same dimensions and are not empty; zeroed. */
bool hn_images_of(const hone_step *s, const hone_machine *m, hn_images *out, hone_reason *why);

#endif
