/* Reductions over any set of axes: an operator states what it does with one run of numbers. */
#ifndef HN_MODEL_OPS_REDUCE_H
#define HN_MODEL_OPS_REDUCE_H

#include "model/ops/common/convert.h"

typedef struct hn_reduction {
  int16_t moved;                           /* opset from which on axes are input 1 */
  float (*f32)(const float *x, int64_t n); /* n > 0; serves the 16-bit floats too */
  double (*f64)(const double *x, int64_t n);
  int64_t (*i64)(const int64_t *x, int64_t n); /* serves all integers but u64; the result wraps */
  uint64_t (*u64)(const uint64_t *x, int64_t n);
  int8_t best;  /* 1: the largest, -1: the smallest element; 0: something else */
  double empty; /* the result for n = 0; infinities become the dtype's limits */
} hn_reduction;

hone_status hn_reduce_infer(const hone_infer *io, const hn_reduction *r, hone_error *error);
hone_status hn_reduce_run(hone_call *call, const hn_reduction *r, hone_error *error);
/* One operation an input element. */
void hn_reduce_cost(const hone_infer *io, hone_cost *cost);

#define HN_TYPES_REDUCE                                                                                      \
  (HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_U32) |   \
   HONE_TYPES(HONE_DTYPE_U64))

/* Elements whose results do not wait for each other. */
enum { HN_REDUCE_LANES = 8 };

/* The function `name` of a reduction: the largest (>) or smallest (<) of x[n]; NaN where one is. */
#define HN_REDUCE_BEST(name, T, better, nan)                                                                 \
  static T name(const T *x, int64_t n) {                                                                     \
    T lane[HN_REDUCE_LANES], strange[HN_REDUCE_LANES], best = x[0], all = 0;                                 \
    for (int k = 0; k < HN_REDUCE_LANES; k++) lane[k] = best, strange[k] = 0;                                \
    int64_t i = 0;                                                                                           \
    for (; i + HN_REDUCE_LANES <= n; i += HN_REDUCE_LANES)                                                   \
      for (int k = 0; k < HN_REDUCE_LANES; k++) {                                                            \
        const T v = x[i + k];                                                                                \
        lane[k] = v better lane[k] ? v : lane[k];                                                            \
        strange[k] += v != v ? 1 : 0;                                                                        \
      }                                                                                                      \
    for (int k = 0; k < HN_REDUCE_LANES; k++) {                                                              \
      best = lane[k] better best ? lane[k] : best;                                                           \
      all += strange[k];                                                                                     \
    }                                                                                                        \
    for (; i < n; i++) {                                                                                     \
      best = x[i] better best ? x[i] : best;                                                                 \
      all += x[i] != x[i] ? 1 : 0;                                                                           \
    }                                                                                                        \
    return all != 0 ? (T)(nan) : best;                                                                       \
  }

/* hn_reduce_<name>: the sum of x[n] in f64. */
#define HN_REDUCE_SUM(name, T)                                                                               \
  static inline double hn_reduce_##name(const T *x, int64_t n) {                                             \
    double lane[HN_REDUCE_LANES] = {0}, sum = 0;                                                             \
    int64_t i = 0;                                                                                           \
    for (; i + HN_REDUCE_LANES <= n; i += HN_REDUCE_LANES)                                                   \
      for (int k = 0; k < HN_REDUCE_LANES; k++) lane[k] += (double)x[i + k];                                 \
    for (int k = 0; k < HN_REDUCE_LANES; k++) sum += lane[k];                                                \
    for (; i < n; i++) sum += (double)x[i];                                                                  \
    return sum;                                                                                              \
  }
HN_REDUCE_SUM(sum_f32, float)
HN_REDUCE_SUM(sum_f64, double)

/* The rest of a reduction's file, after `static const hn_reduction reduction`. move: opset of the axes input.
 */
#define HN_REDUCE_OP(unit, op, move, dtypes, last)                                                           \
  static hone_status infer(const hone_infer *io, hone_error *error) {                                        \
    return hn_reduce_infer(io, &reduction, error);                                                           \
  }                                                                                                          \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_reduce_run(call, &reduction, error);                                                           \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {                                                                    \
      {.name = "axes", .type = HONE_ATTR_INTS, .until = move - 1},                                           \
      {.name = "keepdims", .type = HONE_ATTR_INT},                                                           \
      {.name = "noop_with_empty_axes", .type = HONE_ATTR_INT, .since = move},                                \
      {0}};                                                                                                  \
  HN_OP(unit) = {HN_OP_HEAD,                                                                                 \
                 .op_type = op,                                                                              \
                 .since = 1,                                                                                 \
                 HN_INPUTS(1, 2),                                                                            \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = dtypes,                                                                            \
                 .attrs = attrs,                                                                             \
                 .infer = infer,                                                                             \
                 .cost = hn_reduce_cost,                                                                     \
                 .reference = reference,                                                                     \
                 .host_inputs = 1u << 1,                                                                     \
                 .layouts = last}

#endif
