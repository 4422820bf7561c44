/* Support vector machines: kernels between a sample and vectors. */
#ifndef HN_MODEL_OPS_CLASSICAL_SVM_H
#define HN_MODEL_OPS_CLASSICAL_SVM_H

#include "model/ops/classical/features.h"

typedef enum hn_svm_kernel { HN_SVM_LINEAR = 0, HN_SVM_POLY, HN_SVM_RBF, HN_SVM_SIGMOID } hn_svm_kernel;

typedef struct hn_svm {
  hn_svm_kernel kernel;
  double gamma, coef0, degree;
  const float *vector, *coefficient, *rho;
  const double *widened;    /* the vectors; NULL: not made */
  int64_t n_vectors, width; /* 0 vectors: coefficients take their place, and the kernel is linear */
  int64_t n_coefficients, n_rho;
} hn_svm;

/* What both machines have; n_vectors is that of the node, rows: of coefficients where there are no vectors.
 * HONE_ERROR_INPUT where the lists are of no use. */
hone_status hn_svm_read(const hone_node *node, int64_t n_vectors, int64_t rows, hn_svm *out,
                        hone_error *error);
/* HONE_ERROR_INPUT unless X has the features of a vector. */
hone_status hn_svm_check(const hone_infer *io, const hn_svm *svm, hone_error *error);
/* Makes f64 of the vectors where so many samples are worth it. HONE_ERROR_MEMORY */
hone_status hn_svm_widen(hone_call *call, hn_svm *svm, int64_t rows, hone_error *error);
/* out[samples][n]: the kernels of x[samples][width] and n vectors (or rows of coefficients); samples <=
 * HN_FEATURES_AT_ONCE. */
void hn_svm_kernels_of(const hn_svm *svm, int64_t samples, const double *x, const float *vectors, int64_t n,
                       double *out);
/* The sum of n kernels, each times its coefficient. */
double hn_svm_weighed(const float *coefficient, const double *kernel, int64_t n);

#endif
