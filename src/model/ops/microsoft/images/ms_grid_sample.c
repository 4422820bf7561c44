/* GridSample, as ONNX has it at opset 16. */
#include "model/ops/microsoft/common/inner.h"

static const hone_attr_desc attrs[] = {{.name = "align_corners", .type = HONE_ATTR_INT},
                                       {.name = "mode", .type = HONE_ATTR_STRING},
                                       {.name = "padding_mode", .type = HONE_ATTR_STRING},
                                       {0}};

HN_SAME_OP(ms_grid_sample, "GridSample", grid_sample, 16, 2, 2, HN_TYPES_NUMBER | HN_TYPES_BOOL, attrs);
