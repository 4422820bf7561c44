/* Operators that give the same elements another shape. */
#ifndef HN_MODEL_OPS_VIEW_H
#define HN_MODEL_OPS_VIEW_H

#include "model/ops/common/move.h"

/* Reference of all of them: output 0 gets input 0's elements in order. */
hone_status hn_view_run(hone_call *call, hone_error *error);

/* The descriptor of one; behind `most` (inputs) what else it has. */
#define HN_VIEW_OP(name, type, most, ...)                                                                    \
  HN_OP(name) = {HN_OP_HEAD,                                                                                 \
                 .op_type = type,                                                                            \
                 .since = 1,                                                                                 \
                 .flags = HONE_OP_VIEW | HONE_OP_MOVE,                                                       \
                 HN_INPUTS(1, most),                                                                         \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = HN_TYPES_ALL | HN_TYPES_NARROW,                                                    \
                 .reference = hn_view_run,                                                                   \
                 __VA_ARGS__}

#endif
