/* Trilu, as ONNX has it at opset 14. */
#include "model/ops/microsoft/common/inner.h"

static const hone_attr_desc attrs[] = {{.name = "upper", .type = HONE_ATTR_INT}, {0}};

HN_SAME_OP(ms_trilu, "Trilu", trilu, 14, 1, 2, HN_TYPES_ALL, attrs, .flags = HONE_OP_MOVE);
