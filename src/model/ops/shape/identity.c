/* Identity: the input. */
#include "model/ops/shape/view.h"

HN_OP(identity) = {HN_OP_HEAD,
                   .op_type = "Identity",
                   .since = 1,
                   .flags = HONE_OP_VIEW | HONE_OP_MOVE,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_ALL,
                   .infer = hn_infer_same,
                   .reference = hn_view_run};
