/* Files that ONNX Runtime laid out for one processor become files for any. */
#ifndef HN_MODEL_OPEN_BLOCKED_H
#define HN_MODEL_OPEN_BLOCKED_H

#include "model/ir/graph.h"

/* Every node of com.microsoft.nchwc becomes nodes that are ONNX's, or FusedConv. The model is sorted, and not
 * resolved yet. */
hone_status hn_open_blocked(hn_model *model, hone_error *error);

#endif
