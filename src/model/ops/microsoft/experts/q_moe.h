/* The operands of QMoE, for its reference and its tactic. */
#ifndef HN_MODEL_OPS_MICROSOFT_Q_MOE_H
#define HN_MODEL_OPS_MICROSOFT_Q_MOE_H

#include "model/ops/microsoft/experts/experts.h"

enum {
  HN_QMOE_X,
  HN_QMOE_ROUTER,
  HN_QMOE_FC1, /* codes, scales and bias of fc1, fc2 and fc3 */
  HN_QMOE_FC2 = HN_QMOE_FC1 + 3,
  HN_QMOE_FC3 = HN_QMOE_FC2 + 3,
  HN_QMOE_ZEROS = HN_QMOE_FC3 + 3, /* of each */
  HN_QMOE_WEIGHTS = HN_QMOE_ZEROS + 3
};

/* Width of the codes of fc1, fc2 or fc3. */
int64_t hn_q_moe_bits(const hone_node *node, int which);

#endif
