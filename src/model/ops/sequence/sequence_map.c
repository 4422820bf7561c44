/* SequenceMap: a body on the tensors at each position of the sequences, which are as long as the first;
 * inputs that are tensors are given to every call. Run by the evaluator (ir/eval_map.c). */
#include "model/ops/control/bodies.h"
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  if (status == HONE_OK && hn_body_outputs(io->node, "body") != io->n_outputs)
    status = hn_op_bad(io->node, error, "the body has %lld outputs, the node %u",
                       (long long)hn_body_outputs(io->node, "body"), io->n_outputs);
  for (uint32_t i = 0; i < io->n_outputs && status == HONE_OK; i++) {
    const hone_dtype d = hn_body_output(io->node, "body", i)->dtype;
    if (!hone_dtype_is_tensor(d))
      status = hn_op_bad(io->node, error, "output %u of the body is %s", i, hone_dtype_name(d));
    else
      hn_infer_set(io, i, HONE_SEQUENCE_OF(d), 0, NULL);
  }
  return status;
}

static const hone_attr_desc attrs[] = {{"body", HONE_ATTR_GRAPH, true, 0, 0}, {0}};

HN_OP(sequence_map) = {HN_OP_HEAD,
                       .op_type = "SequenceMap",
                       .since = 17,
                       .flags = HONE_OP_CONTROL | HONE_OP_ITEMS,
                       HN_INPUTS(1, HONE_VARIADIC),
                       HN_OUTPUTS(1, HONE_VARIADIC),
                       .attrs = attrs,
                       .infer = infer};
