/* NhwcMaxPool: MaxPool of codes whose channels are the last dimension. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/pooling/pool.h"

extern const hone_op_desc hn_op_max_pool;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner pool;
  hn_inner_same(&pool, io->node, &hn_op_max_pool, 12);
  return hn_inner_infer_last(io, &pool, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner pool;
  hn_inner_same(&pool, call->node, &hn_op_max_pool, 12);
  return hn_inner_run_last(call, &pool, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       {.name = "ceil_mode", .type = HONE_ATTR_INT},
                                       {.name = "dilations", .type = HONE_ATTR_INTS},
                                       {0}};

HN_OP(nhwc_max_pool) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "NhwcMaxPool",
                        .since = 1,
                        HN_INPUTS(1, 1),
                        HN_OUTPUTS(1, 1),
                        .types = HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8) |
                                 HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16),
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
