/* CastLike: elements in the dtype of another tensor. */
#include "model/ops/math/cast_core.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_infer_set(io, 0, io->input[1]->dtype, io->input[0]->rank, io->input[0]->dim);
  return hn_cast_check(io->node, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_cast_run(call, call->input[0], call->output[0], error);
}

static const hone_attr_desc attrs[] = {
    {.name = "saturate", .type = HONE_ATTR_INT, .since = 19},      /* float8 only */
    {.name = "round_mode", .type = HONE_ATTR_STRING, .since = 24}, /* float8 only */
    {0}};

HN_OP(cast_like) = {HN_OP_HEAD,      .op_type = "CastLike", .since = 15,
                    HN_INPUTS(2, 2), HN_OUTPUTS(1, 1),      .types = HN_TYPES_ALL | HN_TYPES_NARROW,
                    .attrs = attrs,  .infer = infer,        .reference = reference};
