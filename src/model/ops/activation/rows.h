/* Softmax and its relatives: a function of rows along an axis. */
#ifndef HN_MODEL_OPS_ROWS_H
#define HN_MODEL_OPS_ROWS_H

#include "model/ops/common/convert.h"

/* A function of n numbers; x and y may be the same. */
typedef void (*hn_row_f32)(const float *x, float *y, int64_t n);
typedef void (*hn_row_f64)(const double *x, double *y, int64_t n);
/* n numbers of a narrower type, in place; `spare` has room for them in that type. */
typedef void (*hn_row_narrow)(float *x, void *spare, hone_dtype type, int64_t n);

/* Which elements are one row: from opset 13 on those along `axis` (default -1); before that all from `axis`
 * (default 1) to the last dimension together. */
hone_status hn_rows_infer(const hone_infer *io, hone_error *error);
/* Narrower types are computed by f32 and rounded at the end where `narrow` is NULL. */
hone_status hn_rows_run(hone_call *call, hn_row_f32 f32, hn_row_f64 f64, hn_row_narrow narrow,
                        hone_error *error);
/* Maximum, difference, exponential, sum, quotient: 5 an element. */
void hn_rows_cost(const hone_infer *io, hone_cost *cost);

extern const hone_attr_desc hn_rows_attrs[];
#define HN_ROWS_ARITY HN_INPUTS(1, 1), HN_OUTPUTS(1, 1)

/* x - max - log(sum exp): also what the cross-entropy losses need. */
void hn_log_softmax_f32(const float *x, float *y, int64_t n);
void hn_log_softmax_f64(const double *x, double *y, int64_t n);

#endif
