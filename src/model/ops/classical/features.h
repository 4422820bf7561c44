/* What operators of ai.onnx.ml share: X is a row of features, or a matrix with a row for each sample. */
#ifndef HN_MODEL_OPS_CLASSICAL_FEATURES_H
#define HN_MODEL_OPS_CLASSICAL_FEATURES_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

#define HN_TYPES_FEATURES                                                                                    \
  (HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) | HONE_TYPES(HONE_DTYPE_I64) |                    \
   HONE_TYPES(HONE_DTYPE_I32))
/* Defines the head of an operator of ai.onnx.ml with one input. */
#define HN_FEATURES_OP(type, first, outputs)                                                                 \
  HONE_DESC_HEAD(hone_op_desc), .domain = "ai.onnx.ml", .op_type = (type), .since = (first),                 \
                                HN_INPUTS(1, 1), HN_OUTPUTS(1, outputs), .types = HN_TYPES_FEATURES

/* HONE_ERROR_INPUT unless X has one or two dimensions (or nobody knows). */
hone_status hn_features_rank(const hone_infer *io, hone_error *error);
/* Samples (-1: unknown) of X. */
int64_t hn_features_rows(const hone_tensor_desc *x);
static inline int64_t hn_features_width(const hone_tensor_desc *x) { return x->dim[x->rank - 1]; }
/* The product of a sample and coefficients: so many sums beside each other that none waits for the one before
 * it. */
enum { HN_FEATURES_LANES = 8 };
double hn_features_product(const double *x, const float *v, int64_t n);
/* So many samples at once. */
enum { HN_FEATURES_AT_ONCE = 4 };
/* out[samples][n]: the products of x[samples][width] with n vectors, each as hn_features_product has it, to
 * the bit; apart: the squares of their distances. widened: the vectors in f64, or NULL. samples <=
 * HN_FEATURES_AT_ONCE. */
void hn_features_products(int64_t samples, const double *x, const float *v, const double *widened,
                          int64_t width, int64_t n, bool apart, double *out);
/* Coefficients of several sums, made ready for many samples: those of one feature beside each other, `pitch`
 * of them. */
typedef struct hn_features_turned {
  const double *of;
  const float *v; /* as they were */
  int64_t width, pitch;
} hn_features_turned;
/* Of v[n][width], in the call's scratch. HONE_ERROR_MEMORY */
hone_status hn_features_turn(hone_call *call, const float *v, int64_t width, int64_t n,
                             hn_features_turned *out, hone_error *error);
/* out[samples][pitch]: the sums of x[samples][width]; samples <= HN_FEATURES_AT_ONCE. */
void hn_features_sums(const hn_features_turned *c, const double *x, int64_t samples, double *out);
/* Output 0 is f32 with the dimensions of X. */
hone_status hn_features_like_x(const hone_infer *io, hone_error *error);

/* What becomes of the sums of regressors and classifiers. */
typedef enum hn_transform {
  HN_TRANSFORM_NONE = 0,
  HN_TRANSFORM_SOFTMAX,
  HN_TRANSFORM_LOGISTIC,
  HN_TRANSFORM_SOFTMAX_ZERO, /* Softmax over those that are not 0; these stay 0 */
  HN_TRANSFORM_PROBIT
} hn_transform;

/* Attribute post_transform of a node; HONE_ERROR_INPUT for no such word. */
hone_status hn_transform_read(const hone_node *node, hn_transform *out, hone_error *error);
hone_status hn_transform_known(const hone_node *node, int64_t number, hn_transform *out, hone_error *error);
void hn_transform_row(hn_transform transform, double *score, int64_t n);
/* pair[2] of a classifier of two classes that has one score. */
void hn_transform_pair(hn_transform transform, bool probability, double score, double *pair);

/* The classes of a classifier: texts, or numbers. */
typedef struct hn_labels {
  const hone_string *text;
  const int64_t *number;
  int64_t n;
} hn_labels;

/* From classlabels_strings, or the list of integers of that name. */
hn_labels hn_labels_of(const hone_node *node, const char *integers);
/* Outputs of a classifier: the label of every sample, and `scores` scores for each. */
hone_status hn_labels_infer(const hone_infer *io, const hn_labels *labels, int64_t scores, hone_error *error);
/* Element i of y becomes label k. */
void hn_labels_put(const hn_labels *labels, hone_tensor *y, int64_t i, int64_t k);
/* The first of the greatest. */
int64_t hn_features_most(const double *score, int64_t n);

/* Key equals key: every NaN is the same. */
static inline bool hn_same_feature(double a, double b) { return a == b || (isnan(a) && isnan(b)); }
static inline bool hn_same_text(hone_string a, hone_string b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

#endif
