/* ReverseSequence: of each batch entry the first sequence_lens[i] time steps in reverse order, the others as
 * they are. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *lens = io->input[1];
  int64_t batch = hone_node_int(io->node, "batch_axis", 1), time = hone_node_int(io->node, "time_axis", 0);
  if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
    return hn_op_bad(io->node, error, "batch_axis %lld and time_axis %lld are not 0 and 1", (long long)batch,
                     (long long)time);
  if (x->rank == 0 || x->rank == 1) return hn_op_bad(io->node, error, "the input has rank %d", x->rank);
  if (lens->dtype && lens->dtype != HONE_DTYPE_I64)
    return hn_op_bad(io->node, error, "sequence_lens is %s", hone_dtype_name(lens->dtype));
  if (lens->rank >= 0 && lens->rank != 1)
    return hn_op_bad(io->node, error, "sequence_lens has rank %d", lens->rank);
  if (x->rank > 1 && lens->rank == 1 && x->dim[batch] >= 0 && lens->dim[0] >= 0 &&
      x->dim[batch] != lens->dim[0])
    return hn_op_bad(io->node, error, "%lld lengths for a batch of %lld", (long long)lens->dim[0],
                     (long long)x->dim[batch]);
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t *lens = call->input[1]->data;
  bool batch_first = hone_node_int(call->node, "batch_axis", 1) == 0;
  int64_t batch = x->desc.dim[!batch_first], time = x->desc.dim[batch_first];
  int64_t inner = hn_product(x->desc.dim, 2, x->desc.rank), sb = batch_first ? time : 1,
          st = batch_first ? 1 : batch;
  size_t block = (size_t)inner * hone_dtype_size(x->desc.dtype);
  for (int64_t b = 0; b < batch; b++) {
    if (lens[b] < 0 || lens[b] > time)
      return hn_op_bad(call->node, error, "length %lld is %lld, there are %lld time steps", (long long)b,
                       (long long)lens[b], (long long)time);
    hone_status status = hn_call_check(call, error);
    if (status) return status;
    for (int64_t t = 0; t < time && block; t++) {
      int64_t from = t < lens[b] ? lens[b] - 1 - t : t;
      memcpy((char *)call->output[0]->data + (size_t)(b * sb + t * st) * block,
             (const char *)x->data + (size_t)(b * sb + from * st) * block, block);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "batch_axis", .type = HONE_ATTR_INT}, {.name = "time_axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(reverse_sequence) = {HN_OP_HEAD,
                           .op_type = "ReverseSequence",
                           .since = 10,
                           .flags = HONE_OP_MOVE,
                           HN_INPUTS(2, 2),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_ALL,
                           .attrs = attrs,
                           .infer = infer,
                           .reference = reference};
