/* ArgMin: the index of the smallest element along an axis, the first one or the last one of several. */
#include "model/ops/search/arg.h"

static hone_status reference(hone_call *call, hone_error *error) { return hn_arg_run(call, false, error); }

HN_OP(arg_min) = {HN_OP_HEAD,
                  .op_type = "ArgMin",
                  .since = 1,
                  HN_INPUTS(1, 1),
                  HN_OUTPUTS(1, 1),
                  .types = HN_TYPES_NUMBER,
                  .attrs = hn_arg_attrs,
                  .infer = hn_arg_infer,
                  .reference = reference};
