/* ReduceMax: the largest element over axes; NaN wins. */
#include "model/ops/reduce/reduce.h"

HN_REDUCE_BEST(f32, float, >, NAN)
HN_REDUCE_BEST(f64, double, >, NAN)
HN_REDUCE_BEST(i64, int64_t, >, 0)
HN_REDUCE_BEST(u64, uint64_t, >, 0)

static const hn_reduction reduction = {
    .moved = 18, .f32 = f32, .f64 = f64, .i64 = i64, .u64 = u64, .best = 1, .empty = -INFINITY};

HN_REDUCE_OP(reduce_max, "ReduceMax", 18,
             (HN_TYPES_REDUCE | HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8) | HN_TYPES_BOOL),
             HONE_LAST_ALLOWED);
