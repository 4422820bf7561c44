/* Constant weights as the int8 kernels take them: i8. Less its zero point a weight may need nine bits; then a
 * channel's are stored smaller by its *offset*, which products with the sum of the input's codes give back.
 */
#ifndef HN_CPU_QUANTIZED_WEIGHT_CODES_H
#define HN_CPU_QUANTIZED_WEIGHT_CODES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hn_weight_codes {
  const void *w;
  const void *zero; /* of w's type; `zeros` of them: 0, 1, or one a channel */
  int64_t zeros;
  bool is_u8;
} hn_weight_codes;

static inline int32_t hn_weight_code(const hn_weight_codes *c, const void *p, int64_t i) {
  return c->is_u8 ? ((const uint8_t *)p)[i] : ((const int8_t *)p)[i];
}

static inline int32_t hn_weight_zero(const hn_weight_codes *c, int64_t channel) {
  return c->zeros ? hn_weight_code(c, c->zero, c->zeros == 1 ? 0 : channel) : 0;
}

/* Whether channels may need offsets: a zero point is neither 0 of i8 nor 128 of u8. */
static inline bool hn_weight_offsets(const hn_weight_codes *c) {
  for (int64_t i = 0; i < (c->zeros > 1 ? c->zeros : 1); i++)
    if (hn_weight_zero(c, i) != (c->is_u8 ? 128 : 0)) return true;
  return false;
}

/* Of weights within [least, most] less their zero point. */
static inline int32_t hn_weight_offset(int32_t least, int32_t most) {
  return least < -128 ? least + 128 : most > 127 ? most - 127 : 0;
}

#endif
