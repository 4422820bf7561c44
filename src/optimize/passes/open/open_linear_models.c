/* LinearRegressor(x)   ->  Gemm(x, coefficients, intercepts), the function of its sums
 * LinearClassifier(x)  ->  the same; labels[ArgMax(sums)]
 * SVMRegressor(x)      ->  Gemm(kernel(Gemm(x, vectors)), coefficients, rho) of all kernels but RBF
 *
 * Their definitions add up in f64, products have kernels. Of x in f32, rows of features. Distances of RBF
 * would be differences of large numbers. */
#include "model/ops/classical/svm.h"
#include "optimize/passes/common/pass.h"

typedef struct numbers {
  const float *v;
  size_t n;
} numbers;

static numbers of(const hone_node *n, const char *attribute) {
  numbers l;
  l.v = hone_node_floats(n, attribute, &l.n);
  return l;
}

/* x times the rows of w, [rows][width], plus bias[rows] (NULL: none). */
static hn_value *product(hn_pass_context *ctx, hone_node *n, hn_value *x, const float *w, int64_t rows,
                         int64_t width, const float *bias) {
  const hone_tensor_desc matrix = hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){rows, width}),
                         vector = hone_desc(HONE_DTYPE_F32, 1, &rows),
                         like = hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){x->desc.dim[0], rows});
  hn_value *in[] = {x, hn_make_constant(ctx, n->name, &matrix, w),
                    bias ? hn_make_constant(ctx, n->name, &vector, bias) : NULL};
  if (!in[1] || (bias && !in[2])) return NULL;
  hn_value *y = hn_make_newest(ctx, n, "Gemm", in, bias ? 3 : 2, &like);
  if (y && !hn_node_set_int(y->producer, "transB", 1)) return hn_pass_memory(ctx), NULL;
  return y;
}

static bool has_function(hn_transform t) {
  return t == HN_TRANSFORM_NONE || t == HN_TRANSFORM_SOFTMAX || t == HN_TRANSFORM_LOGISTIC;
}

static hn_value *function(hn_pass_context *ctx, hone_node *n, hn_value *v, hn_transform t) {
  if (t == HN_TRANSFORM_LOGISTIC) return hn_make_newest(ctx, n, "Sigmoid", &v, 1, &v->desc);
  if (t == HN_TRANSFORM_NONE) return v;
  hn_value *y = hn_make_newest(ctx, n, "Softmax", &v, 1, &v->desc);
  if (y && !hn_node_set_int(y->producer, "axis", 1)) return hn_pass_memory(ctx), NULL;
  return y;
}

static hn_pass_result done(hn_pass_context *ctx, hone_node *n, hn_value *first, hn_value *second) {
  if (n->out[0] && !hn_replace(ctx, n->out[0], first)) return HN_PASS_FAIL;
  if (n->n_out > 1 && n->out[1] && !hn_replace(ctx, n->out[1], second)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "sums of features are products");
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result regressor(hn_pass_context *ctx, hone_node *n, hn_transform t) {
  const int64_t targets = hone_node_int(n, "targets", 1), width = n->in[0]->desc.dim[1];
  const numbers w = of(n, "coefficients"), b = of(n, "intercepts");
  if (targets < 1 || (t == HN_TRANSFORM_SOFTMAX && targets == 1) || (int64_t)w.n != targets * width)
    return HN_PASS_NONE;
  hn_value *y = product(ctx, n, n->in[0], w.v, targets, width, b.n ? b.v : NULL);
  if (y) y = function(ctx, n, y, t);
  return y ? done(ctx, n, y, NULL) : HN_PASS_FAIL;
}

/* The numbers of classes in a list. */
static hn_value *labels_of(hn_pass_context *ctx, hone_node *n, hn_value *sums, const hn_labels *labels) {
  const hone_tensor_desc like = hone_desc(HONE_DTYPE_I64, 1, sums->desc.dim);
  hn_value *most = hn_make_newest(ctx, n, "ArgMax", &sums, 1, &like);
  if (!most) return NULL;
  if (!hn_node_set_int(most->producer, "axis", 1) || !hn_node_set_int(most->producer, "keepdims", 0))
    return hn_pass_memory(ctx), NULL;
  bool places = true;
  for (int64_t i = 0; i < labels->n; i++) places &= labels->number[i] == i;
  if (places) return most;
  hn_value *list = hn_make_ints(ctx, n->name, labels->number, labels->n);
  return list ? hn_make_newest(ctx, n, "Gather", (hn_value *const[]){list, most}, 2, &like) : NULL;
}

static hn_pass_result classifier(hn_pass_context *ctx, hone_node *n, hn_transform t) {
  const int64_t width = n->in[0]->desc.dim[1];
  const numbers w = of(n, "coefficients"), b = of(n, "intercepts");
  const hn_labels labels = hn_labels_of(n, "classlabels_ints");
  if (labels.n < 2 || !labels.number || (b.n && (int64_t)b.n != labels.n))
    return hn_pass_miss(ctx, "labels are texts, or two of one sum");
  if ((int64_t)w.n != labels.n * width) return HN_PASS_NONE;
  hn_value *sums = product(ctx, n, n->in[0], w.v, labels.n, width, b.n ? b.v : NULL);
  hn_value *label = sums && n->out[0] ? labels_of(ctx, n, sums, &labels) : NULL;
  hn_value *score = sums ? function(ctx, n, sums, t) : NULL;
  return score && (label || !n->out[0]) ? done(ctx, n, label, score) : HN_PASS_FAIL;
}

static hn_value *scalar(hn_pass_context *ctx, hone_node *n, double v) {
  const hone_tensor_desc one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  return hn_make_floats(ctx, n->name, &one, &v);
}

static hn_value *with(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *v, double number) {
  hn_value *by = scalar(ctx, n, number);
  return by ? hn_make_newest(ctx, n, op, (hn_value *const[]){v, by}, 2, &v->desc) : NULL;
}

static hn_pass_result machine(hn_pass_context *ctx, hone_node *n) {
  const int64_t vectors = hone_node_int(n, "n_supports", 0), width = n->in[0]->desc.dim[1];
  hn_svm svm;
  if (hn_svm_read(n, vectors, 1, &svm, NULL) || svm.width != width ||
      (vectors && svm.n_coefficients != vectors) || hone_node_int(n, "one_class", 0))
    return HN_PASS_NONE;
  if (svm.kernel == HN_SVM_RBF) return hn_pass_miss(ctx, "distances are no products");
  const bool straight = !vectors;
  hn_value *v = product(ctx, n, n->in[0], straight ? svm.coefficient : svm.vector, straight ? 1 : vectors,
                        width, straight ? svm.rho : NULL);
  const bool bends = !straight && svm.kernel != HN_SVM_LINEAR;
  if (v && bends) v = with(ctx, n, "Mul", v, svm.gamma);
  if (v && bends) v = with(ctx, n, "Add", v, svm.coef0);
  if (v && bends)
    v = svm.kernel == HN_SVM_POLY ? with(ctx, n, "Pow", v, svm.degree)
                                  : hn_make_newest(ctx, n, "Tanh", &v, 1, &v->desc);
  if (v && !straight) v = product(ctx, n, v, svm.coefficient, 1, vectors, svm.rho);
  return v ? done(ctx, n, v, NULL) : HN_PASS_FAIL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_transform t;
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "ai.onnx.ml") || !n->n_in || !n->in[0] ||
      n->in[0]->desc.dtype != HONE_DTYPE_F32 || n->in[0]->desc.rank != 2 || n->in[0]->desc.dim[1] < 1 ||
      hn_transform_read(n, &t, NULL) || !has_function(t))
    return HN_PASS_NONE;
  if (strcmp(n->op_type, "LinearRegressor") == 0) return regressor(ctx, n, t);
  if (strcmp(n->op_type, "LinearClassifier") == 0) return classifier(ctx, n, t);
  return strcmp(n->op_type, "SVMRegressor") == 0 && t == HN_TRANSFORM_NONE ? machine(ctx, n) : HN_PASS_NONE;
}

HN_PASS(open_linear_models) = {
    .name = "open_linear_models",
    .level = 2,
    .about = "LinearRegressor, LinearClassifier, SVMRegressor of ai.onnx.ml -> Gemm, functions",
    .visit = visit,
    .roots = HN_ROOTS("LinearRegressor", "LinearClassifier", "SVMRegressor")};
