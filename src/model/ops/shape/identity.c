/* Identity: the input. */
#include "model/ops/shape/view.h"

HN_VIEW_OP(identity, "Identity", 1, .infer = hn_infer_same);
