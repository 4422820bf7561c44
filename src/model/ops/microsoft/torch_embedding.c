/* TorchEmbedding: rows of a table, as Gather along axis 0 takes them. What its other inputs say counts in
 * training. */
#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_gather;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_infer two = *io;
  hn_inner n;
  two.n_inputs = 2;
  if (io->input[0]->rank >= 0 && io->input[0]->rank != 2)
    return hn_op_bad(io->node, error, "the table has rank %d", (int)io->input[0]->rank);
  hn_inner_begin(&n, io->node, &hn_op_gather, 13);
  return hn_inner_infer(&two, &n, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner n;
  hn_inner_begin(&n, call->node, &hn_op_gather, 13);
  return hn_inner_run(call, &n, (const hone_tensor *const *)call->input, 2, call->output, 1, error);
}

HN_OP(torch_embedding) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "TorchEmbedding",
                          .since = 1,
                          HN_INPUTS(2, 4),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_NUMBER,
                          .infer = infer,
                          .reference = reference};
