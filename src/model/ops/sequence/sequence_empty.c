/* SequenceEmpty: a sequence with nothing in it, of a type that attribute dtype names. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const int64_t d = hone_node_int(io->node, "dtype", HONE_DTYPE_F32);
  if (d <= 0 || d >= HONE_DTYPE_COUNT)
    return hn_op_bad(io->node, error, "dtype %lld is no type", (long long)d);
  hn_infer_whole(io, HONE_SEQUENCE_OF((hone_dtype)d));
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  hn_items_give(call, 0, NULL);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "dtype", .type = HONE_ATTR_INT}, {0}};

HN_OP(sequence_empty) = {HN_OP_HEAD,
                         .op_type = "SequenceEmpty",
                         .since = 11,
                         .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                         HN_INPUTS(0, 0),
                         HN_OUTPUTS(1, 1),
                         .attrs = attrs,
                         .infer = infer,
                         .reference = reference};
