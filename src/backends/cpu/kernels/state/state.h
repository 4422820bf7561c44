/* Family "state": what goes from token to token. */
#ifndef HN_KERNELS_STATE_H
#define HN_KERNELS_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

/* A token of linear attention on some columns of a head's state S [d_k, d_v]:
 *   v = beta (v - S' (decay k))  where beta is not NULL;  S = decay S + k v';  y = scale S' q for each query.
 */
typedef struct hn_linear_token {
  float *s; /* row i at s + i * s_row; `columns` of it */
  ptrdiff_t s_row;
  const float *from; /* where S comes from, row i at from + i * from_row; NULL: s */
  ptrdiff_t from_row;
  size_t d_k, columns;
  const float *k, *v;
  const float *decay; /* d_k factors, or NULL */
  const float *beta;  /* one */
  const float *q;     /* query i at q + i * q_row, its result at y + i * y_row */
  ptrdiff_t q_row, y_row;
  size_t queries;
  float scale;
  float *y;
} hn_linear_token;

typedef struct hn_state_ops {
  void (*linear)(const hn_linear_token *t);
  /* y[i] = exp(x[i]) */
  void (*exp)(float *y, const float *x, size_t n);
  /* y[i] = bias + sum of w[k] x[i + k] over k < taps, times its own sigmoid where `swish`. */
  void (*causal)(float *y, const float *x, size_t n, const float *w, size_t taps, float bias, bool swish);
} hn_state_ops;

/* The best table at or below a tier. */
static inline const hn_state_ops *hn_state_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("state", "f32", isa);
  return k ? (const hn_state_ops *)k->ops : NULL;
}

#endif
