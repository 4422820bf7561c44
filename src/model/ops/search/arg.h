/* ArgMax and ArgMin: the place of the best element along an axis. */
#ifndef HN_MODEL_OPS_ARG_H
#define HN_MODEL_OPS_ARG_H

#include "model/ops/common/op.h"

hone_status hn_arg_infer(const hone_infer *io, hone_error *error);
hone_status hn_arg_run(hone_call *call, bool largest, hone_error *error);
extern const hone_attr_desc hn_arg_attrs[];

#endif
