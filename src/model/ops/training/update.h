/* Operators that update parameters: R and T, and then for each of n tensors the parameters, all of them,
 * their gradients, and what the optimizer keeps of each. */
#ifndef HN_MODEL_OPS_TRAINING_UPDATE_H
#define HN_MODEL_OPS_TRAINING_UPDATE_H

#include "model/ops/common/bulk.h"

#define HN_UPDATE_TYPES (HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64))
#define HN_UPDATE_HEAD(type)                                                                                 \
  HONE_DESC_HEAD(hone_op_desc), .domain = "ai.onnx.preview.training", .op_type = (type), .since = 1,         \
                                HN_INPUTS(2, HONE_VARIADIC), HN_OUTPUTS(1, HONE_VARIADIC),                   \
                                .types = HN_UPDATE_TYPES

/* One element: x its parameter, kept what is kept of it; both are replaced. */
typedef void (*hn_update)(const void *rule, double gradient, double *x, double *kept);

/* Outputs: new parameters, then what is kept. kept: tensors for each parameter, at most 2. */
hone_status hn_update_infer(const hone_infer *io, uint32_t kept, hone_error *error);
hone_status hn_update_all(hone_call *call, uint32_t kept, hn_update update, const void *rule,
                          hone_error *error);
/* The learning rate, and how often it was applied. */
double hn_update_rate(const hone_call *call);
double hn_update_count(const hone_call *call);

#endif
