/* Quantisation to u8 by the range of the data at hand. */
#ifndef HN_MODEL_OPS_DYNAMIC_H
#define HN_MODEL_OPS_DYNAMIC_H

#include <stdint.h>

/* Zero is always among the numbers that codes stand for. codes NULL: scale and zero point alone. */
void hn_quantise_dynamically(const float *x, int64_t n, uint8_t *codes, float *scale, uint8_t *zero);

#endif
