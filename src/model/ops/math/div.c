/* Div: a / b. Integers round towards zero; division by zero is an error, the lowest integer by -1 wraps. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x / y)

HN_DIVISION_LOOP(i8, int8_t, x / y)
HN_DIVISION_LOOP(i16, int16_t, x / y)
/* By way of f64, which holds quotients of such integers closely enough that their whole part is right:
 * vectors have no division of integers. Divisors of -1, by which the lowest wraps, go one by one. */
static bool loop_i32(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {
  const int32_t *a = pa, *b = pb;
  int32_t *c = pc, zero = 0, lowest = 0;
  for (int64_t i = 0; i < (sb ? n : 1); i++) zero |= b[i] == 0, lowest |= b[i] == -1;
  if (zero) return false;
  if (lowest) {
    for (int64_t i = 0; i < n; i++) {
      const int32_t x = a[i * sa], y = b[i * sb];
      c[i] = y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y;
    }
  } else if (sa && sb) {
    for (int64_t i = 0; i < n; i++) c[i] = (int32_t)((double)a[i] / (double)b[i]);
  } else if (sa) {
    const double y = (double)b[0];
    for (int64_t i = 0; i < n; i++) c[i] = (int32_t)((double)a[i] / y);
  } else {
    const double x = (double)a[0];
    for (int64_t i = 0; i < n; i++) c[i] = (int32_t)(x / (double)b[i * sb]);
  }
  return true;
}
HN_DIVISION_LOOP(i64, int64_t, y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y)
HN_DIVISION_LOOP(u8, uint8_t, x / y)
HN_DIVISION_LOOP(u16, uint16_t, x / y)
HN_DIVISION_LOOP(u32, uint32_t, x / y)
HN_DIVISION_LOOP(u64, uint64_t, x / y)
static const hn_binary_loops loops = HN_BINARY_NUMBER_TABLE;

HN_BINARY_OP(div, "Div", 1, HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_DIV, 2), hn_infer_binary);
