/* SVMClassifier: every two classes have a machine that decides between them, and the class that most of them
 * choose is the sample's. Scores are the machines' sums, or with prob_a and prob_b the classes'
 * probabilities. Without support vectors every class has a row of coefficients, whose product with the sample
 * is its score. */
#include "model/ops/classical/svm.h"

typedef struct form {
  hn_labels labels;
  hn_svm svm;
  hn_transform transform;
  const int64_t *vectors; /* of each class */
  const float *a, *b;     /* of each machine; NULL: no probabilities */
  int64_t classes, machines, scores;
  bool all_positive;
} form;

static hone_status bad(const hone_node *node, hone_error *error) {
  return hn_op_bad(node, error,
                   "its lists of classes, vectors, coefficients, rho or probabilities do not fit");
}

static hone_status form_of(const hone_node *node, form *f, hone_error *error) {
  size_t n_vectors, n_a, n_b;
  *f = (form){.labels = hn_labels_of(node, "classlabels_ints"), .all_positive = true};
  f->vectors = hone_node_ints(node, "vectors_per_class", &n_vectors);
  f->a = hone_node_floats(node, "prob_a", &n_a);
  f->b = hone_node_floats(node, "prob_b", &n_b);
  f->classes = f->labels.n;
  if (f->classes < 1 || f->classes > 65535) return bad(node, error);
  f->machines = f->classes * (f->classes - 1) / 2;
  int64_t vectors = 0;
  for (size_t i = 0; i < n_vectors; i++)
    if (f->vectors[i] < 0 || __builtin_add_overflow(vectors, f->vectors[i], &vectors))
      return bad(node, error);
  hone_status s = hn_svm_read(node, vectors, f->classes, &f->svm, error);
  if (!s) s = hn_transform_read(node, &f->transform, error);
  if (s) return s;
  if (n_a != n_b) return bad(node, error);
  if (!n_a || !vectors) f->a = f->b = NULL;
  if (vectors && f->classes == 1) return hn_op_refuse(node, error, "it has one class label");
  if (vectors && ((int64_t)n_vectors != f->classes || f->svm.n_rho < f->machines ||
                  (f->classes > 1 && f->svm.n_coefficients / (f->classes - 1) < vectors) ||
                  (f->a && (int64_t)n_a < f->machines)))
    return bad(node, error);
  f->scores = !vectors || f->a ? f->classes : f->classes > 2 ? f->machines : 2;
  for (int64_t i = 0; i < f->svm.n_coefficients; i++)
    if (f->svm.coefficient[i] < 0) f->all_positive = false;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  form f;
  hone_status s = form_of(io->node, &f, error);
  if (!s) s = hn_svm_check(io, &f.svm, error);
  return s ? s : hn_labels_infer(io, &f.labels, f.scores, error);
}

/* What samples need: features and kernels of several, the rest of one. */
typedef struct room {
  double *x, *kernel, *sum, *pair, *score, *square, *work;
  int64_t *votes;
} room;

/* The machines' sums, and their votes. Class i's coefficients against class j stand in row j - 1 where i < j,
 * and in row j where i > j. */
static void decide(const form *f, const room *m) {
  const hn_svm *svm = &f->svm;
  const int64_t n = svm->n_vectors;
  memset(m->votes, 0, (size_t)f->classes * sizeof *m->votes);
  for (int64_t i = 0, from_i = 0, at = 0; i < f->classes; from_i += f->vectors[i++])
    for (int64_t j = i + 1, from_j = from_i + f->vectors[i]; j < f->classes;
         from_j += f->vectors[j++], at++) {
      const double sum =
          (double)svm->rho[at] +
          hn_svm_weighed(svm->coefficient + (j - 1) * n + from_i, m->kernel + from_i, f->vectors[i]) +
          hn_svm_weighed(svm->coefficient + i * n + from_j, m->kernel + from_j, f->vectors[j]);
      m->sum[at] = sum;
      m->votes[sum > 0 ? i : j]++;
    }
}

/* Probabilities of classes from those of pairs: Wu, Lin and Weng, "Probability estimates for multi-class
 * classification by pairwise coupling" (2004), algorithm 2. */
static void couple(int64_t n, const double *pair, double *q, double *p, double *qp) {
  for (int64_t i = 0; i < n; i++) {
    p[i] = 1.0 / (double)n;
    q[i * n + i] = 0;
    for (int64_t j = 0; j < n; j++) {
      if (j == i) continue;
      q[i * n + i] += pair[j * n + i] * pair[j * n + i];
      q[i * n + j] = -pair[j * n + i] * pair[i * n + j];
    }
  }
  for (int pass = 0; pass < 100; pass++) {
    double all = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
      qp[i] = 0;
      for (int64_t j = 0; j < n; j++) qp[i] += q[i * n + j] * p[j];
      all += p[i] * qp[i];
    }
    for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs(qp[i] - all));
    if (worst < 0.005 / (double)n) break;
    for (int64_t i = 0; i < n; i++) {
      const double d = (all - qp[i]) / q[i * n + i];
      p[i] += d;
      all = (all + d * (d * q[i * n + i] + 2 * qp[i])) / (1 + d) / (1 + d);
      for (int64_t j = 0; j < n; j++) qp[j] = (qp[j] + d * q[i * n + j]) / (1 + d), p[j] /= 1 + d;
    }
  }
}

static void probabilities(const form *f, const room *m) {
  const int64_t n = f->classes;
  for (int64_t i = 0, at = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++, at++) {
      const double p = 1 / (1 + exp(m->sum[at] * (double)f->a[at] + (double)f->b[at]));
      m->pair[i * n + j] = fmin(fmax(p, 1e-7), 1 - 1e-7);
      m->pair[j * n + i] = 1 - m->pair[i * n + j];
    }
  couple(n, m->pair, m->square, m->score, m->work);
}

static int64_t most_voted(const form *f, const int64_t *votes) {
  int64_t most = 0;
  for (int64_t i = 1; i < f->classes; i++)
    if (votes[i] > votes[most]) most = i;
  return most;
}

static int64_t by_machines(const form *f, const room *m) {
  decide(f, m);
  if (f->a) {
    probabilities(f, m);
    hn_transform_row(f->transform, m->score, f->scores);
  } else if (f->machines == 1) {
    hn_transform_pair(f->transform, f->transform != HN_TRANSFORM_NONE, m->sum[0], m->score);
  } else {
    memcpy(m->score, m->sum, (size_t)f->machines * sizeof *m->score);
    hn_transform_row(f->transform, m->score, f->scores);
  }
  return most_voted(f, m->votes);
}

/* Of two classes the second is chosen, too, where the greater score is above 0 (above 1/2 where no
 * coefficient is negative): so ONNX Runtime has it. */
static int64_t by_rows(const form *f, const room *m) {
  for (int64_t k = 0; k < f->classes; k++) m->score[k] = m->kernel[k] + (double)f->svm.rho[0];
  int64_t label = hn_features_most(m->score, f->classes);
  if (f->classes == 2 && (f->all_positive ? m->score[label] >= 0.5 : m->score[label] > 0)) label = 1;
  hn_transform_row(f->transform, m->score, f->scores);
  return label;
}

static hone_status room_of(hone_call *call, const form *f, room *m, hone_error *error) {
  const int64_t square = f->a ? f->classes * f->classes : 0,
                kernels = f->svm.n_vectors ? f->svm.n_vectors : f->classes;
  *m = (room){.x = hn_scratch(call, HN_FEATURES_AT_ONCE * f->svm.width, sizeof *m->x, error),
              .kernel = hn_scratch(call, HN_FEATURES_AT_ONCE * kernels, sizeof *m->kernel, error),
              .sum = hn_scratch(call, f->svm.n_vectors ? f->machines : 0, sizeof *m->sum, error),
              .pair = hn_scratch(call, square, sizeof *m->pair, error),
              .square = hn_scratch(call, square, sizeof *m->square, error),
              .work = hn_scratch(call, f->a ? f->classes : 0, sizeof *m->work, error),
              .score = hn_scratch(call, hn_max(f->scores, 2), sizeof *m->score, error),
              .votes = hn_scratch(call, f->classes, sizeof *m->votes, error)};
  return m->x && m->kernel && m->sum && m->pair && m->square && m->work && m->score && m->votes
             ? HONE_OK
             : HONE_ERROR_MEMORY;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  form f;
  room m;
  hone_status s = form_of(call->node, &f, error);
  if (!s) s = room_of(call, &f, &m, error);
  if (!s) s = hn_svm_widen(call, &f.svm, hn_features_rows(&x->desc), error);
  if (s) return s;
  const int64_t n = f.svm.n_vectors ? f.svm.n_vectors : f.classes;
  double *const kernel = m.kernel;
  for (int64_t r = 0, rows = hn_features_rows(&x->desc); r < rows; r++) {
    const int64_t at = r % HN_FEATURES_AT_ONCE, some = hn_min(HN_FEATURES_AT_ONCE, rows - r);
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    if (at == 0) {
      hn_load_f64(m.x, x, r * f.svm.width, some * f.svm.width);
      hn_svm_kernels_of(&f.svm, some, m.x, f.svm.n_vectors ? f.svm.vector : f.svm.coefficient, n, kernel);
    }
    m.kernel = kernel + at * n;
    const int64_t label = f.svm.n_vectors ? by_machines(&f, &m) : by_rows(&f, &m);
    if (call->output[0]) hn_labels_put(&f.labels, call->output[0], r, label);
    if (call->n_outputs > 1 && call->output[1])
      hn_store_f64(call->output[1], r * f.scores, m.score, f.scores);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "classlabels_ints", .type = HONE_ATTR_INTS},
                                       {.name = "classlabels_strings", .type = HONE_ATTR_STRINGS},
                                       {.name = "coefficients", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "kernel_params", .type = HONE_ATTR_FLOATS},
                                       {.name = "kernel_type", .type = HONE_ATTR_STRING},
                                       {.name = "post_transform", .type = HONE_ATTR_STRING},
                                       {.name = "prob_a", .type = HONE_ATTR_FLOATS},
                                       {.name = "prob_b", .type = HONE_ATTR_FLOATS},
                                       {.name = "rho", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "support_vectors", .type = HONE_ATTR_FLOATS},
                                       {.name = "vectors_per_class", .type = HONE_ATTR_INTS},
                                       {0}};

HN_OP(svm_classifier) = {HN_FEATURES_OP("SVMClassifier", 1, 2), .attrs = attrs, .infer = infer,
                         .reference = reference};
