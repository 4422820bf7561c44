/* Mixtures of experts (MoE, QMoE): each token is sent to the k experts that its router scores highest, and
 * gets the sum of their answers, weighed by Softmax of the scores.
 *
 *   expert(x) = fc2 act(fc1 x + b1) + b2              act also of two halves of fc1's rows, or of fc1 and fc3
 *
 * Weights are [experts, rows, columns], rows being what they make. */
#ifndef HN_MODEL_OPS_MICROSOFT_EXPERTS_H
#define HN_MODEL_OPS_MICROSOFT_EXPERTS_H

#include "model/ops/microsoft/common/inner.h"

typedef enum hn_expert_act {
  HN_EXPERT_IDENTITY,
  HN_EXPERT_RELU,
  HN_EXPERT_RELU2, /* the square of Relu */
  HN_EXPERT_GELU,  /* by its tanh approximation */
  HN_EXPERT_SILU,
  HN_EXPERT_SWIGLU, /* of a gate and what it lets through */
  HN_EXPERT_GEGLU
} hn_expert_act;

typedef enum hn_expert_pairs {
  HN_EXPERT_ONE,       /* no gate, or one in fc3 */
  HN_EXPERT_ALTERNATE, /* gate and value in turn in fc1's rows */
  HN_EXPERT_HALVES     /* gates first */
} hn_expert_pairs;

typedef struct hn_experts {
  int64_t tokens, hidden, inter, experts, k;
  hn_expert_act act;
  hn_expert_pairs pairs;
  bool third; /* there is fc3 */
  bool normalise, mixer;
  float alpha, beta, limit;
} hn_experts;

/* One matrix of all experts. */
typedef struct hn_expert_matrix {
  const hone_tensor *codes, *scales, *zeros,
      *bias;                          /* scales NULL: plain numbers; zeros and bias may be NULL */
  int64_t rows, columns, bits, block; /* block 0: one scale a row */
} hn_expert_matrix;

/* Read from the node's attributes; sizes are left 0. */
hone_status hn_experts_of(const hone_node *node, hn_experts *out, hone_error *error);
/* Rows of fc1 for each of `inter`: 2 where gates lie there. */
static inline int64_t hn_experts_fusion(const hn_experts *e) { return e->pairs == HN_EXPERT_ONE ? 1 : 2; }
/* Sizes of x and the router's scores (inputs 0 and 1), as far as they are known; checks them. */
hone_status hn_experts_tokens(const hone_infer *io, hn_experts *e, hone_error *error);

/* The experts of one token and their weights, [k] each. scores, and given (may be NULL: weights by Softmax of
 * the scores): [experts]. With `mixer` each of the two is weighed by Softmax of the scores that come near its
 * own, lower by no more than a fiftieth, the first expert's left out for the second (SparseMixer of
 * Phi-3.5-MoE). */
void hn_experts_route(const hn_experts *e, const float *scores, const float *given, int32_t *expert,
                      float *weight);
/* What enters fc2, [inter], of fc1's and fc3's rows (NULL without). */
void hn_experts_activate(const hn_experts *e, const float *first, const float *third, float *out);

/* The whole reference; m: fc1, fc2 and fc3. given: router_weights, or NULL. */
hone_status hn_experts_run(hone_call *call, const hn_experts *e, const hn_expert_matrix m[3],
                           const hone_tensor *given, hone_error *error);

#define HN_EXPERT_ATTRS                                                                                      \
  {.name = "activation_type", .type = HONE_ATTR_STRING}, {.name = "k", .type = HONE_ATTR_INT},               \
      {.name = "normalize_routing_weights", .type = HONE_ATTR_INT},                                          \
      {.name = "use_sparse_mixer", .type = HONE_ATTR_INT}, {.name = "swiglu_fusion", .type = HONE_ATTR_INT}, \
      {.name = "swiglu_limit", .type = HONE_ATTR_FLOAT},                                                     \
      {.name = "swiglu_limit_after_activation", .type = HONE_ATTR_INT},                                      \
      {.name = "activation_alpha", .type = HONE_ATTR_FLOAT}, {                                               \
    .name = "activation_beta", .type = HONE_ATTR_FLOAT                                                       \
  }

#endif
