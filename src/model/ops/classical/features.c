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

double hn_features_product(const double *x, const float *v, int64_t n) {
  double sum[HN_FEATURES_LANES] = {0}, all = 0;
  int64_t i = 0;
  for (; i + HN_FEATURES_LANES <= n; i += HN_FEATURES_LANES)
    for (int k = 0; k < HN_FEATURES_LANES; k++) sum[k] += x[i + k] * (double)v[i + k];
  for (; i < n; i++) all += x[i] * (double)v[i];
  for (int half = HN_FEATURES_LANES / 2; half; half /= 2)
    for (int k = 0; k < half; k++) sum[k] += sum[k + half];
  return all + sum[0];
}

hone_status hn_features_like_x(const hone_infer *io, hone_error *error) {
  const hone_status s = hn_features_rank(io, error);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_F32, io->input[0]->rank, io->input[0]->dim);
  return s;
}

hone_status hn_transform_known(const hone_node *node, int64_t number, hn_transform *out, hone_error *error) {
  if (number < HN_TRANSFORM_NONE || number > HN_TRANSFORM_PROBIT)
    return hn_op_bad(node, error, "post_transform is %lld; expected 0 to 4", (long long)number);
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

/* The inverse of the normal distribution function, with Winitzki's approximation of the inverse error
 * function (a = 0.147), as ONNX Runtime has it. */
static double probit(double p) {
  const double a = 0.147, x = 2 * p - 1, l = log((1 - x) * (1 + x)), v = 2 / (3.14159 * a) + l / 2;
  const double inverse = sqrt(sqrt(v * v - l / a) - v);
  return 1.41421356 * (x < 0 ? -inverse : inverse);
}

static double logistic(double x) { return 1 / (1 + exp(-x)); }

void hn_transform_row(hn_transform transform, double *score, int64_t n) {
  if (transform == HN_TRANSFORM_NONE || !n) return;
  if (transform == HN_TRANSFORM_LOGISTIC || transform == HN_TRANSFORM_PROBIT) {
    for (int64_t i = 0; i < n; i++)
      score[i] = transform == HN_TRANSFORM_PROBIT ? probit(score[i]) : logistic(score[i]);
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

void hn_transform_pair(hn_transform transform, bool probability, double score, double *pair) {
  if (transform == HN_TRANSFORM_LOGISTIC) {
    pair[0] = logistic(-score), pair[1] = logistic(score);
  } else {
    pair[0] = probability ? 1 - score : -score, pair[1] = score;
  }
}

hn_labels hn_labels_of(const hone_node *node, const char *integers) {
  size_t texts, numbers;
  hn_labels l = {.text = hone_node_strings(node, "classlabels_strings", &texts)};
  l.number = hone_node_ints(node, integers, &numbers);
  if (!texts) l.text = NULL;
  l.n = (int64_t)(l.text ? texts : numbers);
  return l;
}

hone_status hn_labels_infer(const hone_infer *io, const hn_labels *labels, int64_t scores,
                            hone_error *error) {
  const hone_status s = hn_features_rank(io, error);
  if (s) return s;
  if (!labels->n) return hn_op_bad(io->node, error, "it has no class labels");
  const int64_t dim[] = {hn_features_rows(io->input[0]), scores};
  hn_infer_set(io, 0, labels->text ? HONE_DTYPE_STRING : HONE_DTYPE_I64, 1, dim);
  hn_infer_set(io, 1, HONE_DTYPE_F32, 2, dim);
  return HONE_OK;
}

void hn_labels_put(const hn_labels *labels, hone_tensor *y, int64_t i, int64_t k) {
  if (labels->text)
    ((hone_string *)y->data)[i] = labels->text[k];
  else
    ((int64_t *)y->data)[i] = labels->number[k];
}

int64_t hn_features_most(const double *score, int64_t n) {
  int64_t most = 0;
  for (int64_t i = 1; i < n; i++)
    if (score[i] > score[most]) most = i;
  return most;
}
