/* ReduceProd: products over merged axes. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_prod, "ReduceProd", HN_REDUCE_PROD, HN_FINISH_NONE, false);
