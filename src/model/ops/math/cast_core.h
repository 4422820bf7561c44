/* Conversion of whole tensors between dtypes, as Cast and CastLike do it. */
#ifndef HN_MODEL_OPS_CAST_CORE_H
#define HN_MODEL_OPS_CAST_CORE_H

#include "model/ops/common/convert.h"

/* y = x in y's dtype. Floats to integers truncate: unsigned ones and those of 8 and 16 bits wrap (by way of
 * i64), i32 and i64 saturate; NaN gives 0. To bool: x != 0. Strings: decimal numbers, "NaN", "INF", "-INF";
 * floats print with as many digits as tell them apart. A string that is no number is an error. */
/* Narrow floats that do not hold a number follow the node's attributes saturate and round_mode. */
hone_status hn_cast_run(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error);

/* HONE_ERROR_INPUT unless round_mode is one that is defined. */
hone_status hn_cast_check(const hone_node *node, hone_error *error);

#endif
