/* GatedDeltaNet: LinearAttention (ops/attention/linear.h) on tokens in a row, with what comes before it:
 *
 *   g = decay,  -exp(a_log) softplus(decay + dt_bias)  or  bound sigmoid(exp(a_log) (decay + dt_bias))
 *   beta = beta or sigmoid(beta);  q, k as they are or of length 1
 *   S = exp(g) S,  S = S + k (beta (v - S' k))',  y = scale S' q       without exp(g), without beta and S' k:
 *                                                                      as update_rule says
 *
 * Tokens lie [tokens, heads, size] or [batch, tokens, heads, size]; queries, keys and values in one operand
 * or in three; the states [batch, heads, d_v, d_k]. One head of queries and keys is shared by several of
 * values. Sequences are of one length, or lie between the numbers of cu_seqlens. */
#ifndef HN_MODEL_OPS_GATED_DELTA_NET_H
#define HN_MODEL_OPS_GATED_DELTA_NET_H

#include "model/ops/common/bulk.h"

enum {
  HN_GDN_Q,
  HN_GDN_K,
  HN_GDN_V,
  HN_GDN_CU,
  HN_GDN_DECAY,
  HN_GDN_BETA,
  HN_GDN_STATE,
  HN_GDN_A,
  HN_GDN_DT
};
enum { HN_GDN_Y, HN_GDN_FINAL };

typedef enum hn_gdn_gate { HN_GDN_PLAIN, HN_GDN_SOFTPLUS, HN_GDN_SIGMOID } hn_gdn_gate;

typedef struct hn_gdn {
  int64_t tokens, batch, k_heads, heads, d_k, d_v; /* tokens: of all sequences; < 0: not known */
  int64_t width; /* of a token of queries, keys and values in one; 0: apart */
  int32_t lead;  /* dimensions that count tokens; < 0: not known */
  bool gated, delta, norms, beta_sigmoid;
  hn_gdn_gate gate;
  double scale; /* 0: 1 / sqrt(d_k) */
  double bound;
} hn_gdn;

#define HN_GDN_NORM_EPS 1e-12 /* below the root: sqrt(x x + eps) */

/* What the node and its operands (NULL: left out; at least up to HN_GDN_DT) say; HONE_ERROR_INPUT where they
 * do not fit each other. */
hone_status hn_gdn_find(const hone_node *node, const hone_tensor_desc *const *in, hn_gdn *out,
                        hone_error *error);
/* The first token of sequence i, and of i + 1: its end. cu: NULL or the starts. */
static inline int64_t hn_gdn_start(const hn_gdn *n, const int32_t *cu, int64_t i) {
  return cu ? cu[i] : i * (n->tokens / n->batch);
}
/* HONE_ERROR_INPUT unless the numbers begin with 0, do not fall and end with the number of tokens. */
hone_status hn_gdn_check_starts(const hone_node *node, const hn_gdn *n, const int32_t *cu, hone_error *error);

#endif
