/* SoftmaxCrossEntropyLoss: the negative log likelihood of labels under the softmax of scores over classes
 * (dimension 1); output 1 is the log probability. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/loss/likelihood.h"
#include "model/ops/common/move.h"
#include "model/ops/activation/rows.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_infer_set(io, 1, x->dtype, x->rank, x->dim);
  return hn_likelihood_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t count = hn_count(x), classes = x->desc.dim[1], inner = hn_product(x->desc.dim, 2, x->desc.rank);
  double *log_prob = hn_scratch(call, count, sizeof *log_prob, error);
  double *row = log_prob ? hn_scratch(call, classes, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  hn_load_f64(log_prob, x, 0, count);
  for (int64_t line = 0; count && line < count / classes; line++) {
    double *from = log_prob + line / inner * classes * inner + line % inner;
    const int64_t one = 1;
    hone_status status = line % 256 == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    hn_move(row, &one, from, &inner, &classes, 1, sizeof *row);
    hn_log_softmax_f64(row, row, classes);
    hn_move(from, &inner, row, &one, &classes, 1, sizeof *row);
  }
  if (call->n_outputs > 1 && call->output[1]) hn_store_f64(call->output[1], 0, log_prob, count);
  return hn_likelihood_run(call, log_prob, error);
}

static void cost(const hone_infer *io, hone_cost *c) { hn_cost_flops(c, 5 * hn_known_count(io->input[0])); }

HN_OP(softmax_cross_entropy_loss) = {HN_OP_HEAD,
                                     .op_type = "SoftmaxCrossEntropyLoss",
                                     .since = 12,
                                     HN_INPUTS(2, 3),
                                     HN_OUTPUTS(1, 2),
                                     .types = HN_TYPES_FLOAT,
                                     .attrs = hn_likelihood_attrs,
                                     .infer = infer,
                                     .cost = cost,
                                     .reference = reference};
