/* GatherND, as ONNX has it at opset 11. */
#include "model/ops/microsoft/common/inner.h"

HN_SAME_OP(ms_gather_nd, "GatherND", gather_nd, 11, 2, 2, HN_TYPES_ALL, NULL, .flags = HONE_OP_MOVE);
