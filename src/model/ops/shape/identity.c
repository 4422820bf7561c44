/* Identity: the input, whatever it is. */
#include "model/ops/shape/view.h"

HN_OP(identity) = {HN_OP_HEAD,
                   .op_type = "Identity",
                   .since = 1,
                   .flags = HONE_OP_VIEW | HONE_OP_MOVE | HONE_OP_ITEMS,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1),
                   .infer = hn_infer_same,
                   .reference = hn_view_run};
