/* Conversion of whole tensors between dtypes, as Cast and CastLike do it. */
#ifndef HN_MODEL_OPS_CAST_H
#define HN_MODEL_OPS_CAST_H

#include "model/ops/common/convert.h"

/* y = x in y's dtype. Floats to integers truncate: 8, 16 and unsigned 32 bits wrap (as C compilers do through i64), wider
 * ones saturate; NaN gives 0. To bool: x != 0. Strings: decimal numbers, "NaN", "INF", "-INF"; floats print with as
 * many digits as tell them apart. A string that is no number is an error. */
hone_status hn_cast_run(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error);

#endif
