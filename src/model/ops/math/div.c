/* Div: a / b. Integers round towards zero; division by zero is an error, the lowest integer by -1 wraps. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x / y)

#define DIVIDE(suffix, type, quotient)                                                                       \
  static bool loop_##suffix(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {   \
    const type *a = pa, *b = pb;                                                                             \
    type *c = pc;                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const type x = a[i * sa], y = b[i * sb];                                                               \
      if (y == 0) return false;                                                                              \
      c[i] = (type)(quotient);                                                                               \
    }                                                                                                        \
    return true;                                                                                             \
  }
DIVIDE(i8, int8_t, x / y)
DIVIDE(i16, int16_t, x / y)
DIVIDE(i32, int32_t, y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y)
DIVIDE(i64, int64_t, y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y)
DIVIDE(u8, uint8_t, x / y)
DIVIDE(u16, uint16_t, x / y)
DIVIDE(u32, uint32_t, x / y)
DIVIDE(u64, uint64_t, x / y)
static const hn_binary_loops loops = HN_BINARY_NUMBER_TABLE;

HN_BINARY_OP(div, "Div", 1, HN_TYPES_NUMBER, hn_infer_binary);
