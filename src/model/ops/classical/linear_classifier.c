/* LinearClassifier: the class with the greatest product of a sample and its coefficients. Two classes may
 * have one row of coefficients: its product is above 0 for the second. */
#include "model/ops/classical/features.h"

typedef struct form {
  hn_labels labels;
  const float *coefficient, *intercept;
  int64_t rows, scores, width; /* rows of coefficients, scores of a sample, coefficients in a row */
  hn_transform transform;
} form;

static hone_status form_of(const hone_node *node, form *f, hone_error *error) {
  size_t coefficients, intercepts;
  f->labels = hn_labels_of(node, "classlabels_ints");
  f->coefficient = hone_node_floats(node, "coefficients", &coefficients);
  f->intercept = hone_node_floats(node, "intercepts", &intercepts);
  if (!intercepts) f->intercept = NULL;
  f->rows = f->scores = intercepts ? (int64_t)intercepts : f->labels.n;
  if (!f->labels.n || (f->labels.n != f->rows && !(f->labels.n == 2 && f->rows == 1)))
    return hn_op_bad(node, error, "%lld class labels for %zu intercepts", (long long)f->labels.n, intercepts);
  if (coefficients % (size_t)f->rows)
    return hn_op_bad(node, error, "%zu coefficients for %lld classes", coefficients, (long long)f->rows);
  if (f->rows == 1 && f->labels.n == 2) f->scores = 2;
  f->width = (int64_t)coefficients / f->rows;
  return hn_transform_read(node, &f->transform, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  form f;
  hone_status s = form_of(io->node, &f, error);
  if (!s) s = hn_labels_infer(io, &f.labels, f.scores, error);
  if (!s && x->rank > 0 && hn_features_width(x) >= 0 && hn_features_width(x) != f.width)
    s = hn_op_bad(io->node, error, "X has %lld features, %lld coefficients a class expected",
                  (long long)hn_features_width(x), (long long)f.width);
  return s;
}

/* score[f->scores] of a sample, of which its products are there; the label that it gets. */
static int64_t classify(const form *f, double *score) {
  for (int64_t k = 0; k < f->rows && f->intercept; k++) score[k] += (double)f->intercept[k];
  const int64_t label = f->scores > f->rows ? score[0] > 0 : hn_features_most(score, f->rows);
  if (f->scores > f->rows)
    hn_transform_pair(f->transform, true, score[0], score);
  else
    hn_transform_row(f->transform, score, f->rows);
  return label;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  form f;
  hn_features_turned turned;
  hone_status s = form_of(call->node, &f, error);
  if (!s) s = hn_features_turn(call, f.coefficient, f.width, f.rows, &turned, error);
  if (s) return s;
  double *row = hn_scratch(call, HN_FEATURES_AT_ONCE * f.width, sizeof *row, error);
  double *product = hn_scratch(call, HN_FEATURES_AT_ONCE * turned.pitch, sizeof *product, error);
  double *score = hn_scratch(call, f.scores, sizeof *score, error);
  if (!row || !product || !score) return HONE_ERROR_MEMORY;
  for (int64_t r = 0, some, rows = hn_features_rows(&x->desc); r < rows; r += some) {
    some = hn_min(HN_FEATURES_AT_ONCE, rows - r);
    if (r % 64 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, r * f.width, some * f.width);
    hn_features_sums(&turned, row, some, product);
    for (int64_t k = r; k < r + some; k++) {
      memcpy(score, product + (k - r) * turned.pitch, (size_t)f.rows * sizeof *score);
      const int64_t label = classify(&f, score);
      if (call->output[0]) hn_labels_put(&f.labels, call->output[0], k, label);
      if (call->n_outputs > 1 && call->output[1])
        hn_store_f64(call->output[1], k * f.scores, score, f.scores);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "classlabels_ints", .type = HONE_ATTR_INTS},
                                       {.name = "classlabels_strings", .type = HONE_ATTR_STRINGS},
                                       {.name = "coefficients", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "intercepts", .type = HONE_ATTR_FLOATS},
                                       {.name = "multi_class", .type = HONE_ATTR_INT},
                                       {.name = "post_transform", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(linear_classifier) = {HN_FEATURES_OP("LinearClassifier", 1, 2), .attrs = attrs, .infer = infer,
                            .reference = reference};
