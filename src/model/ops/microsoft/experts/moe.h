/* The operands of MoE, for its reference and its tactic. */
#ifndef HN_MODEL_OPS_MICROSOFT_MOE_H
#define HN_MODEL_OPS_MICROSOFT_MOE_H

#include "model/ops/microsoft/experts/experts.h"

enum { HN_MOE_X, HN_MOE_ROUTER, HN_MOE_FC1, HN_MOE_B1, HN_MOE_FC2, HN_MOE_B2, HN_MOE_FC3, HN_MOE_B3 };

#endif
