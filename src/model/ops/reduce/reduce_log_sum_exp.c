/* ReduceLogSumExp: log(sum exp x) over axes, with the largest x taken out so that nothing overflows. */
#include "model/ops/reduce/reduce.h"

#define LOG_SUM_EXP(name, T, AS)                                                                             \
  static T name(const T *x, int64_t n) {                                                                     \
    double top = (double)x[0], sum = 0;                                                                      \
    for (int64_t i = 1; i < n; i++)                                                                          \
      if ((double)x[i] > top) top = (double)x[i];                                                            \
    if (isinf(top)) return AS(top);                                                                          \
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - top);                                          \
    return AS(top + log(sum));                                                                               \
  }
LOG_SUM_EXP(f32, float, (float))
LOG_SUM_EXP(f64, double, (double))
LOG_SUM_EXP(i64, int64_t, hn_trunc_i64)
LOG_SUM_EXP(u64, uint64_t, hn_trunc_u64)

static const hn_reduction reduction = {
    .moved = 18, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .empty = -INFINITY};

HN_REDUCE_OP(reduce_log_sum_exp, "ReduceLogSumExp", 18, HN_TYPES_REDUCE, 0);
