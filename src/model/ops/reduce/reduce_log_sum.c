/* ReduceLogSum: the logarithm of the sum over axes. All accumulate in f64. */
#include "model/ops/reduce/reduce.h"

#define FLOATS(name, T)                                                                                      \
  static T name(const T *x, int64_t n) {                                                                     \
    double sum = 0;                                                                                          \
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];                                                     \
    return (T)(log(sum));                                                                                    \
  }
FLOATS(f32, float)
FLOATS(f64, double)

#define INTEGERS(name, T, LIMIT)                                                                             \
  static T name(const T *x, int64_t n) {                                                                     \
    double sum = 0;                                                                                          \
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];                                                     \
    return LIMIT(log(sum));                                                                                  \
  }
INTEGERS(i64, int64_t, hn_trunc_i64)
INTEGERS(u64, uint64_t, hn_trunc_u64)

static const hn_reduction reduction = {
    .moved = 18, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .empty = -INFINITY};

HN_REDUCE_OP(reduce_log_sum, "ReduceLogSum", 18, HN_TYPES_REDUCE, 0);
