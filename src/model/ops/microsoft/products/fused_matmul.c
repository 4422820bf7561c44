/* FusedMatMul: alpha A' B', with dimensions of A and B in another order. */
#include "model/ops/microsoft/products/turned_matmul.h"

static const hone_attr_desc attrs[] = {HN_TURNED_ATTRS, {0}};

HN_OP(fused_matmul) = {HONE_DESC_HEAD(hone_op_desc),
                       .domain = "com.microsoft",
                       .op_type = "FusedMatMul",
                       .since = 1,
                       HN_INPUTS(2, 2),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_FLOAT,
                       .attrs = attrs,
                       .infer = hn_turned_infer,
                       .cost = hn_turned_cost,
                       .reference = hn_turned_run};
