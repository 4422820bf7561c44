/* GroupNorm and SkipGroupNorm: normalises groups of channels of each sample, then SiLU where `activation`
 * says so. Channels are the last dimension unless channels_last is 0; gamma and beta may be wider than x. */
#ifndef HN_MODEL_OPS_MICROSOFT_GROUP_NORM_H
#define HN_MODEL_OPS_MICROSOFT_GROUP_NORM_H

#include "model/ops/microsoft/common/inner.h"

typedef struct hn_group_norm {
  int64_t groups;
  bool last, silu;
  float epsilon;
} hn_group_norm;

/* Read from the node's attributes. */
hone_status hn_group_norm_of(const hone_node *node, hn_group_norm *out, hone_error *error);
/* x, gamma and beta, and output 0; *channels: as far as they are known. */
hone_status hn_group_norm_infer(const hone_infer *io, int64_t *channels, hone_error *error);
void hn_group_norm_cost(const hone_infer *io, hone_cost *cost);
/* Of x, which has input 0's dimensions. */
hone_status hn_group_norm_run(hone_call *call, const hone_tensor *x, hone_error *error);

#define HN_GROUP_NORM_ATTRS                                                                                  \
  {.name = "epsilon", .type = HONE_ATTR_FLOAT}, {.name = "groups", .type = HONE_ATTR_INT, .required = true}, \
      {.name = "activation", .type = HONE_ATTR_INT, .required = true}, {                                     \
    .name = "channels_last", .type = HONE_ATTR_INT                                                           \
  }

#endif
