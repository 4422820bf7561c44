/* Orders of elements, and a stable sort of indices by any order. */
#ifndef HN_MODEL_OPS_ORDER_H
#define HN_MODEL_OPS_ORDER_H

#include "model/ops/common/convert.h"

/* Number keys whose integer order is the elements' order: NaN above everything, -0 equal to 0. n elements
 * from `first`. Not for strings. */
#define HN_ORDER_NAN INT64_MAX /* the key of a NaN, where elements are floats */
void hn_order_keys(int64_t *keys, const void *src, hone_dtype dtype, int64_t first, int64_t n);

/* < 0, 0 or > 0. */
typedef int (*hn_compare)(const void *context, int64_t a, int64_t b);
/* Sorts index[n] stably; spare has n entries. */
void hn_sort(int64_t *index, int64_t *spare, int64_t n, hn_compare compare, const void *context);

/* Sorts n keys and their indices stably, by digits: both are moved. spare_keys and spare have n entries. */
void hn_sort_keys(int64_t *keys, int64_t *index, int64_t *spare_keys, int64_t *spare, int64_t n);

#endif
