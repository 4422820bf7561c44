/* ScatterElements and its first name, Scatter. */
#ifndef HN_MODEL_OPS_SCATTER_CORE_H
#define HN_MODEL_OPS_SCATTER_CORE_H

#include "model/ops/common/op.h"

hone_status hn_scatter_infer(const hone_infer *io, hone_error *error);
hone_status hn_scatter_run(hone_call *call, hone_error *error);

#endif
