/* Pad, as ONNX has it at opset 11, and with the mode wrap of opset 19. */
#include "model/ops/microsoft/common/inner.h"

static const hone_attr_desc attrs[] = {{.name = "mode", .type = HONE_ATTR_STRING}, {0}};

HN_SAME_OP(ms_pad, "Pad", pad, 19, 2, 3, HN_TYPES_ALL, attrs, .flags = HONE_OP_MOVE,
           .host_inputs = 1u << 1 | 1u << 2);
