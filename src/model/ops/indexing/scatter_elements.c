/* ScatterElements: a copy of the data in which updates replace, or are combined with, the elements that
 * indices name along one axis. */
#include "model/ops/indexing/scatter_core.h"

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT},
                                       {.name = "reduction", .type = HONE_ATTR_STRING, .since = 16},
                                       {0}};

HN_OP(scatter_elements) = {HN_OP_HEAD,
                           .op_type = "ScatterElements",
                           .since = 11,
                           HN_INPUTS(3, 3),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_ALL,
                           .attrs = attrs,
                           .infer = hn_scatter_infer,
                           .reference = hn_scatter_run};
