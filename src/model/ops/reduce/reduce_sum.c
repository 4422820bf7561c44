/* ReduceSum: the sum over axes. Floats accumulate in f64, integers modulo 2^64. */
#include "model/ops/reduce/reduce.h"

static float f32(const float *x, int64_t n) { return (float)hn_reduce_sum_f32(x, n); }
static double f64(const double *x, int64_t n) { return hn_reduce_sum_f64(x, n); }

static uint64_t u64(const uint64_t *x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum;
}
static int64_t i64(const int64_t *x, int64_t n) { return (int64_t)u64((const uint64_t *)x, n); }

static const hn_reduction reduction = {
    .moved = 13, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .empty = 0};

HN_REDUCE_OP(reduce_sum, "ReduceSum", 13, HN_TYPES_REDUCE, HONE_LAST_ALLOWED);
