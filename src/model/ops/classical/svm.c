#include "model/ops/classical/svm.h"

#include "base/wide.h"
#include "model/ops/common/tanh.h"

static hone_status read_kernel(const hone_node *node, hn_svm *out, hone_error *error) {
  static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const char *said = hone_node_string(node, "kernel_type", "LINEAR");
  size_t n;
  const float *params = hone_node_floats(node, "kernel_params", &n);
  if (n && n != 3) return hn_op_bad(node, error, "kernel_params has %zu numbers, 3 expected", n);
  if (n) out->gamma = (double)params[0], out->coef0 = (double)params[1], out->degree = (double)params[2];
  for (int i = 0; i < 4; i++)
    if (strcmp(said, names[i]) == 0) return out->kernel = (hn_svm_kernel)i, HONE_OK;
  return hn_op_bad(node, error, "kernel_type is '%.40s'; expected LINEAR, POLY, RBF or SIGMOID", said);
}

hone_status hn_svm_read(const hone_node *node, int64_t n_vectors, int64_t rows, hn_svm *out,
                        hone_error *error) {
  size_t vectors, coefficients, rho;
  *out = (hn_svm){.n_vectors = n_vectors};
  out->vector = hone_node_floats(node, "support_vectors", &vectors);
  out->coefficient = hone_node_floats(node, "coefficients", &coefficients);
  out->rho = hone_node_floats(node, "rho", &rho);
  out->n_coefficients = (int64_t)coefficients, out->n_rho = (int64_t)rho;
  if (!coefficients || !rho) return hn_op_bad(node, error, "it has no coefficients or no rho");
  const size_t all = n_vectors ? vectors : coefficients;
  const int64_t n = n_vectors ? n_vectors : rows;
  if (n < 1 || all % (size_t)n || !all)
    return hn_op_bad(node, error, "%zu numbers for %lld vectors", all, (long long)n);
  out->width = (int64_t)all / n;
  const hone_status s = read_kernel(node, out, error);
  if (!n_vectors) out->kernel = HN_SVM_LINEAR;
  return s;
}

hone_status hn_svm_check(const hone_infer *io, const hn_svm *svm, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const hone_status s = hn_features_rank(io, error);
  if (!s && x->rank > 0 && hn_features_width(x) >= 0 && hn_features_width(x) != svm->width)
    return hn_op_bad(io->node, error, "X has %lld features, %lld expected", (long long)hn_features_width(x),
                     (long long)svm->width);
  return s;
}

enum { MOST_DEGREE = 16 };

/* Small whole degrees by products: pow takes longer than all of the sum. */
HN_WIDE_BODY void powers_body(double *v, int64_t n, double gamma, double coef0, int degree) {
  enum { BLOCK = 64 };
  for (int64_t at = 0; at < n; at += BLOCK) {
    double of[BLOCK], r[BLOCK];
    const int64_t some = n - at < BLOCK ? n - at : BLOCK;
    for (int64_t k = 0; k < some; k++) of[k] = gamma * v[at + k] + coef0, r[k] = 1;
    for (int left = degree; left; left >>= 1) {
      for (int64_t k = 0; left & 1 && k < some; k++) r[k] *= of[k];
      for (int64_t k = 0; k < some; k++) of[k] *= of[k];
    }
    memcpy(v + at, r, (size_t)some * sizeof *r);
  }
}
HN_WIDE(void, powers, powers_body, (double *v, int64_t n, double gamma, double coef0, int degree),
        (v, n, gamma, coef0, degree))

static void polynomials(const hn_svm *svm, double *v, int64_t n) {
  if (svm->degree >= 0 && svm->degree <= MOST_DEGREE && svm->degree == floor(svm->degree))
    powers(v, n, svm->gamma, svm->coef0, (int)svm->degree);
  else
    for (int64_t k = 0; k < n; k++) v[k] = pow(svm->gamma * v[k] + svm->coef0, svm->degree);
}

HN_WIDE_BODY void sigmoid_body(double *v, int64_t n, double gamma, double coef0) {
  for (int64_t k = 0; k < n; k++) v[k] = hn_tanh(gamma * v[k] + coef0);
}
HN_WIDE(void, sigmoid, sigmoid_body, (double *v, int64_t n, double gamma, double coef0), (v, n, gamma, coef0))

hone_status hn_svm_widen(hone_call *call, hn_svm *svm, int64_t rows, hone_error *error) {
  enum { FROM = 4 }; /* rows: making f64 costs about one */
  if (rows < FROM || !svm->n_vectors) return HONE_OK;
  double *to = hn_scratch(call, svm->n_vectors * svm->width, sizeof *to, error);
  for (int64_t i = 0; to && i < svm->n_vectors * svm->width; i++) to[i] = (double)svm->vector[i];
  svm->widened = to;
  return to ? HONE_OK : HONE_ERROR_MEMORY;
}

void hn_svm_kernels_of(const hn_svm *svm, int64_t samples, const double *x, const float *v, int64_t n,
                       double *out) {
  hn_features_products(samples, x, v, v == svm->vector ? svm->widened : NULL, svm->width, n,
                       svm->kernel == HN_SVM_RBF, out);
  n *= samples;
  switch (svm->kernel) {
  case HN_SVM_RBF:
    for (int64_t k = 0; k < n; k++) out[k] = exp(-svm->gamma * out[k]);
    break;
  case HN_SVM_POLY: polynomials(svm, out, n); break;
  case HN_SVM_SIGMOID: sigmoid(out, n, svm->gamma, svm->coef0); break;
  default: break;
  }
}

enum { LANES = 8, CHAINS = 4 };

typedef double wide __attribute__((vector_size(LANES * sizeof(double))));
typedef float narrow __attribute__((vector_size(LANES * sizeof(float))));

/* Four chains of additions at once, each of which waits for the one before it. */
HN_WIDE_BODY double weighed_body(const float *c, const double *kernel, int64_t n) {
  wide sum[CHAINS] = {{0}};
  int64_t k = 0;
  for (; k + CHAINS * LANES <= n; k += CHAINS * LANES)
#pragma GCC unroll 4
    for (int j = 0; j < CHAINS; j++) {
      narrow of;
      wide with;
      memcpy(&of, c + k + j * LANES, sizeof of);
      memcpy(&with, kernel + k + j * LANES, sizeof with);
      sum[j] += __builtin_convertvector(of, wide) * with;
    }
  const wide all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (; k < n; k++) total += (double)c[k] * kernel[k];
  return total + (((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7])));
}
HN_WIDE(double, weighed, weighed_body, (const float *c, const double *kernel, int64_t n), (c, kernel, n))

double hn_svm_weighed(const float *coefficient, const double *kernel, int64_t n) {
  return weighed(coefficient, kernel, n);
}
