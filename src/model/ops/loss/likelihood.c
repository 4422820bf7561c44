/* The negative log likelihood of labels. */
#include "model/ops/loss/likelihood.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/index.h"
#include "model/ops/common/move.h"

const hone_attr_desc hn_likelihood_attrs[] = {
    {.name = "reduction", .type = HONE_ATTR_STRING}, {.name = "ignore_index", .type = HONE_ATTR_INT}, {0}};

hone_status hn_likelihood_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *label = io->input[1];
  const char *reduction = hone_node_string(io->node, "reduction", "mean");
  bool each = strcmp(reduction, "none") == 0;
  if (!each && strcmp(reduction, "sum") && strcmp(reduction, "mean"))
    return hn_op_bad(io->node, error, "reduction is '%s'", reduction);
  if (x->rank == 0 || x->rank == 1) return hn_op_bad(io->node, error, "the scores have rank %d", x->rank);
  hone_status status = hn_infer_indices(io, 1, error);
  if (!status) status = hn_infer_same_dtype(io, 0, 2, error);
  if (!status) status = hn_infer_vector(io, 2, x->rank >= 2 ? x->dim[1] : -1, error);
  if (status) return status;
  if (x->rank >= 2 && label->rank >= 0) {
    bool fits = label->rank == x->rank - 1;
    for (int32_t i = 0; fits && i < label->rank; i++) {
      int64_t want = x->dim[i ? i + 1 : 0];
      fits = want < 0 || label->dim[i] < 0 || want == label->dim[i];
    }
    if (!fits) return hn_op_bad(io->node, error, "labels do not have the scores' shape without classes");
  }
  if (each)
    hn_infer_set(io, 0, x->dtype, label->rank, label->dim);
  else
    hn_infer_set(io, 0, x->dtype, 0, NULL);
  return HONE_OK;
}

hone_status hn_likelihood_run(hone_call *call, const double *log_prob, hone_error *error) {
  const hone_tensor_desc *d = &call->input[0]->desc;
  const hone_tensor *label = call->input[1], *weight = hn_call_has(call, 2) ? call->input[2] : NULL;
  hone_tensor *y = call->output[0];
  const char *reduction = hone_node_string(call->node, "reduction", "mean");
  bool each = strcmp(reduction, "none") == 0, mean = strcmp(reduction, "mean") == 0;
  bool ignores = hone_node_has(call->node, "ignore_index");
  int64_t ignored = hone_node_int(call->node, "ignore_index", 0), classes = d->dim[1],
          inner = hn_product(d->dim, 2, d->rank);
  const int64_t *labels = label->desc.dtype == HONE_DTYPE_I64 ? label->data : NULL;
  const float *scores = d->dtype == HONE_DTYPE_F32 ? call->input[0]->data : NULL;
  const bool plain = inner == 1;
  double sum = 0, weights = 0;
  for (int64_t i = 0, n = hn_count(label); i < n; i++) {
    const int64_t c = labels ? labels[i] : hn_get_i64(label, i);
    double loss = 0;
    hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    if (!ignores || c != ignored) {
      if (c < 0 || c >= classes)
        return hn_op_bad(call->node, error, "label %lld of %lld classes", (long long)c, (long long)classes);
      double w = weight ? hn_get_f64(weight, c) : 1;
      const int64_t at = plain ? i * classes + c : (i / inner * classes + c) * inner + i % inner;
      loss = -w * (log_prob ? log_prob[at] : scores ? (double)scores[at] : hn_get_f64(call->input[0], at));
      weights += w;
    }
    sum += loss;
    if (each && y) hn_set_f64(y, i, loss);
  }
  if (!each && y) hn_set_f64(y, 0, mean ? sum / weights : sum);
  return HONE_OK;
}
