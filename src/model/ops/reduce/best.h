/* ReduceMax and ReduceMin. */
#ifndef HN_MODEL_OPS_REDUCE_BEST_H
#define HN_MODEL_OPS_REDUCE_BEST_H

#include "model/ops/common/convert.h"

bool hn_reduce_best_takes(hone_dtype t);
/* on: the dimensions that are reduced; input and output have elements. */
hone_status hn_reduce_best(hone_call *call, const bool *on, bool largest, hone_error *error);

#endif
