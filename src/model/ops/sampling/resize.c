/* Resize, opsets 10 to 24: nearest, linear and cubic over any number of axes. */
#include "model/ops/sampling/resample.h"

static const hone_attr_desc attrs[] = {{"mode", HONE_ATTR_STRING, false, 0, 0},
                                       {"coordinate_transformation_mode", HONE_ATTR_STRING, false, 11, 0},
                                       {"cubic_coeff_a", HONE_ATTR_FLOAT, false, 11, 0},
                                       {"exclude_outside", HONE_ATTR_INT, false, 11, 0},
                                       {"extrapolation_value", HONE_ATTR_FLOAT, false, 11, 0},
                                       {"nearest_mode", HONE_ATTR_STRING, false, 11, 0},
                                       {"antialias", HONE_ATTR_INT, false, 18, 0},
                                       {"axes", HONE_ATTR_INTS, false, 18, 0},
                                       {"keep_aspect_ratio_policy", HONE_ATTR_STRING, false, 18, 0},
                                       {0}};

HN_OP(resize) = {HN_OP_HEAD,
                 .op_type = "Resize",
                 .since = 10,
                 HN_INPUTS(1, 4),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_ALL,
                 .attrs = attrs,
                 .infer = hn_resize_infer,
                 .cost = hn_resize_cost,
                 .reference = hn_resize_reference,
                 .host_inputs = 1u << 1 | 1u << 2 | 1u << 3,
                 .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
