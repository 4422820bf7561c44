/* The n-grams that TfIdfVectorizer counts. */
#ifndef HN_MODEL_OPS_TF_IDF_VECTORIZER_H
#define HN_MODEL_OPS_TF_IDF_VECTORIZER_H

#include "model/ops/common/op.h"

/* Tokens of all n-grams, those of one token first, then those of two... Of equal n-grams the first counts. */
typedef struct hn_tf_idf_pool {
  size_t size, n_counts, n_index, n_weights;
  const int64_t *number, *count,
      *index;                /* tokens that are integers; where n-grams of n begin; [n-gram] column */
  const hone_string *string; /* tokens that are texts */
  const float *weight;       /* [n-gram], NULL: all are 1 */
  int64_t outputs, min_gram, max_gram, skips;
  bool once; /* a column is the weight, however often it is found */
} hn_tf_idf_pool;

/* What the node's attributes say; they stay where they are. */
hone_status hn_tf_idf_pool_of(const hone_node *node, hn_tf_idf_pool *pool, hone_error *error);

#endif
