/* ReduceMean: the mean over axes; of integers it truncates towards zero. Floats accumulate in f64, integers
 * modulo 2^64. */
#include "model/ops/reduce/reduce.h"

static float f32(const float *x, int64_t n) { return (float)(hn_reduce_sum_f32(x, n) / (double)n); }
static double f64(const double *x, int64_t n) { return hn_reduce_sum_f64(x, n) / (double)n; }

static uint64_t u64(const uint64_t *x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum / (uint64_t)n;
}
static int64_t i64(const int64_t *x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (uint64_t)x[i];
  return (int64_t)sum / n;
}

static const hn_reduction reduction = {
    .moved = 18, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .empty = NAN};

HN_REDUCE_OP(reduce_mean, "ReduceMean", 18, HN_TYPES_REDUCE, HONE_LAST_ALLOWED);
