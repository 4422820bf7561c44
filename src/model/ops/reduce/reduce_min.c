/* ReduceMin: the smallest element over axes; NaN wins. */
#include "model/ops/reduce/reduce.h"

#define FLOATS(name, T)                                                                                      \
  static T name(const T *x, int64_t n) {                                                                     \
    T best = x[0];                                                                                           \
    for (int64_t i = 1; i < n; i++) best = x[i] < best || x[i] != x[i] ? x[i] : best;                        \
    return best;                                                                                             \
  }
FLOATS(f32, float)
FLOATS(f64, double)

#define INTEGERS(name, T)                                                                                    \
  static T name(const T *x, int64_t n) {                                                                     \
    T best = x[0];                                                                                           \
    for (int64_t i = 1; i < n; i++) best = x[i] < best ? x[i] : best;                                        \
    return best;                                                                                             \
  }
INTEGERS(i64, int64_t)
INTEGERS(u64, uint64_t)

static const hn_reduction reduction = {
    .moved = 18, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .empty = INFINITY};

HN_REDUCE_OP(reduce_min, "ReduceMin", 18,
             (HN_TYPES_REDUCE | HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8) | HN_TYPES_BOOL), 0);
