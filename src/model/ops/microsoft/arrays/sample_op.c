/* SampleOp: the input, as an example of an operator. */
#include "model/ops/shape/view.h"

HN_OP(sample_op) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "SampleOp",
                    .since = 1,
                    .flags = HONE_OP_VIEW | HONE_OP_MOVE,
                    HN_INPUTS(1, 1),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_ALL,
                    .infer = hn_infer_same,
                    .reference = hn_view_run};
