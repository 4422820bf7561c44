/* When a BatchNormalization takes the statistics of its own batch. */
#ifndef HN_MODEL_OPS_TRAINING_H
#define HN_MODEL_OPS_TRAINING_H

#include <hone/plugin.h>

/* Up to opset 13 by the outputs that it names, whether or not anybody reads them (hn_model_resolve forgets
 * trailing ones without a name). */
static inline bool hn_batch_norm_trains(const hone_node *node) {
  return hone_node_opset(node) < 14 ? hone_node_outputs(node) > 1
                                    : hone_node_int(node, "training_mode", 0) != 0;
}

#endif
