/* Layer normalisation over trailing axes of row-major tensors, with the additions that may precede it. */
#ifndef HN_CPU_NORMALIZE_LAYER_NORM_H
#define HN_CPU_NORMALIZE_LAYER_NORM_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

/* Which of the step's tensors play which role; HN_NO_TENSOR where there is none. */
typedef struct hn_layer_norm_roles {
  uint32_t residual, bias, gamma, beta; /* inputs */
  uint32_t mean, inv_std, sum;          /* outputs */
  bool rms;                             /* no mean is subtracted */
  float epsilon;                        /* when the attribute is absent */
} hn_layer_norm_roles;

#define HN_NO_TENSOR 0xffffffffu

typedef hn_layer_norm_roles hn_layer_norm_config;

/* The inputs X, Scale, B with the outputs Y, Mean, InvStdDev; input, skip, gamma, beta, bias with the result,
 * mean, inverse deviation and the sum; X and Scale, x / sqrt(mean(x^2) + epsilon) * scale. */
#define HN_LAYER_NORM                                                                                        \
  .residual = HN_NO_TENSOR, .bias = HN_NO_TENSOR, .gamma = 1, .beta = 2, .mean = 1, .inv_std = 2,            \
  .sum = HN_NO_TENSOR, .epsilon = 1e-5f
#define HN_SKIP_LAYER_NORM                                                                                   \
  .residual = 1, .bias = 4, .gamma = 2, .beta = 3, .mean = 1, .inv_std = 2, .sum = 3, .epsilon = 1e-12f
#define HN_RMS_NORM                                                                                          \
  .residual = HN_NO_TENSOR, .bias = HN_NO_TENSOR, .gamma = 1, .beta = HN_NO_TENSOR, .mean = HN_NO_TENSOR,    \
  .inv_std = HN_NO_TENSOR, .sum = HN_NO_TENSOR, .rms = true, .epsilon = 1e-5f

HN_FAMILY_PACKED(hn_layer_norm);

#define hn_cpu_layer_norm_tactic(NAME, ANCHOR, ...)                                                          \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 3, hn_layer_norm, __VA_ARGS__)

#endif
