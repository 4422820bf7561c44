/* TransposeMatMul: alpha A' B', the older name of FusedMatMul. */
#include "model/ops/microsoft/products/turned_matmul.h"

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "transA", .type = HONE_ATTR_INT},
                                       {.name = "transB", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(transpose_matmul) = {HONE_DESC_HEAD(hone_op_desc),
                           .domain = "com.microsoft",
                           .op_type = "TransposeMatMul",
                           .since = 1,
                           HN_INPUTS(2, 2),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_FLOAT,
                           .attrs = attrs,
                           .infer = hn_turned_infer,
                           .cost = hn_turned_cost,
                           .reference = hn_turned_run};
