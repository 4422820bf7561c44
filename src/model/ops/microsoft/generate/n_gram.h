/* Hashes of n-grams: what NGramHashMapping and VarlenNGramHashMapping share. */
#ifndef HN_MODEL_OPS_MICROSOFT_N_GRAM_H
#define HN_MODEL_OPS_MICROSOFT_N_GRAM_H

#include "model/ops/common/op.h"

enum { HN_N_GRAM_MOST = 64 };

/* One text of a call: tokens of `ids` from `first` on, behind those of row `row` of `past`. Left-out tensors
 * are NULL. */
typedef struct hn_n_gram_text {
  const hone_tensor *ids, *past, *multipliers, *sizes, *offsets, *segments, *past_segments;
  int64_t first, tokens, row;
  int64_t before, heads; /* before: tokens of the past, one less than the longest n-gram has */
  int64_t fill;          /* stands where no token is */
  bool ends;             /* it also ends a text, and hides what was before */
} hn_n_gram_text;

/* The attributes; *before is one less than max_ngram_size. */
hone_status hn_n_gram_check(const hone_node *node, int64_t *before, int64_t *heads, hone_error *error);
/* HONE_ERROR_INPUT unless all sizes are above 0. */
hone_status hn_n_gram_check_sizes(const hone_node *node, const hone_tensor *sizes, hone_error *error);
/* Token i; those of the past are below 0. */
int64_t hn_n_gram_token(const hn_n_gram_text *t, int64_t i);
/* The hashes of token i, from element `at` of `out` on. */
void hn_n_gram_hash(const hn_n_gram_text *t, int64_t i, hone_tensor *out, int64_t at);

#endif
