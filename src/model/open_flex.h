/* FlexAttention becomes what ONNX defines it by. */
#ifndef HN_MODEL_OPEN_FLEX_H
#define HN_MODEL_OPEN_FLEX_H

#include "model/ir/graph.h"

/* Every FlexAttention of a model that is resolved and inferred becomes products, Softmax and the nodes of its
 * graphs. *opened: there was one; the model is to be resolved and inferred again. */
hone_status hn_open_flex(hn_model *model, bool *opened, hone_error *error);

#endif
