/* Operators that give the same elements another shape. */
#ifndef HN_MODEL_OPS_VIEW_H
#define HN_MODEL_OPS_VIEW_H

#include "model/ops/common/move.h"

/* Reference of all of them: output 0 gets input 0's elements in order. */
hone_status hn_view_run(hone_call *call, hone_error *error);

#endif
