/* Upsample: Resize's forerunner; scales are an attribute in opset 7 and an input in opset 9. Before opset 7
 * two attributes say those of height and width. */
#include "model/ops/sampling/resample.h"

static const hone_attr_desc attrs[] = {{"mode", HONE_ATTR_STRING, false, 0, 0},
                                       {"scales", HONE_ATTR_FLOATS, false, 7, 8},
                                       {"height_scale", HONE_ATTR_FLOAT, true, 0, 6},
                                       {"width_scale", HONE_ATTR_FLOAT, true, 0, 6},
                                       {0}};

HN_OP(upsample) = {HN_OP_HEAD,
                   .op_type = "Upsample",
                   .since = 1,
                   .until = 9,
                   HN_INPUTS(1, 2),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_ALL,
                   .attrs = attrs,
                   .infer = hn_resize_infer,
                   .cost = hn_resize_cost,
                   .reference = hn_resize_reference,
                   .host_inputs = 1u << 1,
                   .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
