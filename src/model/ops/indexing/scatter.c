/* Scatter: the name of ScatterElements in opsets 9 and 10, deprecated since. */
#include "model/ops/indexing/scatter_core.h"

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(scatter) = {HN_OP_HEAD,
                  .op_type = "Scatter",
                  .since = 9,
                  .flags = HONE_OP_MOVE,
                  HN_INPUTS(3, 3),
                  HN_OUTPUTS(1, 1),
                  .types = HN_TYPES_ALL,
                  .attrs = attrs,
                  .infer = hn_scatter_infer,
                  .reference = hn_scatter_run};
