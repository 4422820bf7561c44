#include "model/ops/classical/features.h"

hone_status hn_features_rank(const hone_infer *io, hone_error *error) {
  const int32_t rank = io->input[0]->rank;
  return rank < 0 || rank == 1 || rank == 2
             ? HONE_OK
             : hn_op_refuse(io->node, error, "X has %d dimensions; a row or a matrix is expected", (int)rank);
}

int64_t hn_features_rows(const hone_tensor_desc *x) {
  return x->rank == 1 ? 1 : x->rank == 2 && x->dim[0] >= 0 ? x->dim[0] : HONE_DIM_UNKNOWN;
}

hone_status hn_features_like_x(const hone_infer *io, hone_error *error) {
  const hone_status s = hn_features_rank(io, error);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_F32, io->input[0]->rank, io->input[0]->dim);
  return s;
}

hone_status hn_transform_known(const hone_node *node, int64_t number, hn_transform *out, hone_error *error) {
  if (number < HN_TRANSFORM_NONE || number > HN_TRANSFORM_PROBIT)
    return hn_op_bad(node, error, "post_transform is %lld; expected 0 to 4", (long long)number);
  if (number == HN_TRANSFORM_PROBIT) return hn_op_refuse(node, error, "post_transform is PROBIT");
  *out = (hn_transform)number;
  return HONE_OK;
}

hone_status hn_transform_read(const hone_node *node, hn_transform *out, hone_error *error) {
  static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const char *said = hone_node_string(node, "post_transform", "NONE");
  for (int64_t i = 0; i < (int64_t)(sizeof names / sizeof *names); i++)
    if (strcmp(said, names[i]) == 0) return hn_transform_known(node, i, out, error);
  return hn_op_bad(node, error, "post_transform is '%.40s'", said);
}

void hn_transform_row(hn_transform transform, double *score, int64_t n) {
  if (transform == HN_TRANSFORM_NONE || !n) return;
  if (transform == HN_TRANSFORM_LOGISTIC) {
    for (int64_t i = 0; i < n; i++) score[i] = 1 / (1 + exp(-score[i]));
    return;
  }
  double most = score[0], sum = 0;
  for (int64_t i = 1; i < n; i++) most = fmax(most, score[i]);
  for (int64_t i = 0; i < n; i++) {
    if (transform == HN_TRANSFORM_SOFTMAX_ZERO && score[i] == 0) continue;
    sum += score[i] = exp(score[i] - most);
  }
  for (int64_t i = 0; i < n && sum > 0; i++) score[i] /= sum;
}
