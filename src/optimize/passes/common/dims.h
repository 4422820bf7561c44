/* What is known of small integer values (shapes) although a part of them is symbolic. */
#ifndef HN_OPTIMIZE_PASSES_DIMS_H
#define HN_OPTIMIZE_PASSES_DIMS_H

#include "model/ir/graph.h"

enum { HN_DIMS_MAX = 32 };

/* One element: a number, or dimension `axis` of the value `of` (a symbol or unknown), or nothing known (of
 * NULL). */
typedef struct hn_dim {
  bool known;
  int64_t value;
  const hn_value *of;
  int32_t axis;
} hn_dim;

/* Elements of an integer value of rank 0 or 1 into out[HN_DIMS_MAX]; their number, or -1 when not even that
 * is known. */
int32_t hn_dims_of(const hn_value *value, hn_dim out[HN_DIMS_MAX]);
/* The shape by which a Reshape of a value with the descriptor `x` gives one with `y`: numbers, 0 where x has
 * the same symbol at the same place, one -1. False: y is not known up to one dimension, or has one of 0. */
bool hn_dims_reshape(const hone_tensor_desc *x, const hone_tensor_desc *y, int64_t shape[HONE_MAX_RANK]);

#endif
