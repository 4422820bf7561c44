/* Convolutions whose input's zero point is not code 0, where taps outside of an image read zeros all the
 * same: what is lacking is the zero point times the weights of these taps, a vector for each kind of pixel.
 * Rows of the output fall into classes by the kernel rows that lie inside, and so do columns; class 0 has
 * them all. */
#ifndef HN_CUDA_QUANTIZED_CODES_BORDER_H
#define HN_CUDA_QUANTIZED_CODES_BORDER_H

#include "backends/cuda/quantized/codes.h"

typedef struct hn_codes_border {
  uint32_t rows, columns; /* classes */
  uint32_t pitch;         /* elements of a vector */
  size_t classes, vectors,
      bytes; /* u8 of each row, then of each column; i32 [row's class][column's][pitch] */
} hn_codes_border;

/* Of a Conv; `at`: where in the blob it begins. False: more kinds of pixels than are worth it. */
bool hn_codes_border_of(const hn_product *p, size_t at, hn_codes_border *border);
/* weights: what hn_codes_weights returned. */
void hn_codes_border_fill(const hn_codes *c, const hn_product *p, const int8_t *weights,
                          const hn_codes_border *border, void *blob);

#endif
