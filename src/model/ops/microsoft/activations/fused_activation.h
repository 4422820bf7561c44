/* The functions that ONNX Runtime applies to a product within the same operator. */
#ifndef HN_MODEL_OPS_MICROSOFT_FUSED_ACTIVATION_H
#define HN_MODEL_OPS_MICROSOFT_FUSED_ACTIVATION_H

#include "model/ops/microsoft/common/inner.h"

/* Parameters are attributes of the ONNX operator; where they are attributes no more (Clip), inputs. */
typedef struct hn_fused_activation {
  const hone_op_desc *op; /* NULL: none */
  const char *name[2];
  float value[2];
} hn_fused_activation;

/* Read from `activation` and activation_params, or activation_alpha, _beta and _gamma. */
hone_status hn_fused_activation_of(const hone_node *node, hn_fused_activation *out, hone_error *error);
/* The node's activation, in place. */
hone_status hn_fused_activate(hone_call *call, hone_tensor *y, hone_error *error);

#define HN_FUSED_ACTIVATION_ATTRS                                                                            \
  {.name = "activation", .type = HONE_ATTR_STRING}, {.name = "activation_params", .type = HONE_ATTR_FLOATS}, \
      {.name = "activation_alpha", .type = HONE_ATTR_FLOAT},                                                 \
      {.name = "activation_beta", .type = HONE_ATTR_FLOAT}, {                                                \
    .name = "activation_gamma", .type = HONE_ATTR_FLOAT                                                      \
  }

#endif
