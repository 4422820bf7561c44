/* How scattered updates meet what is there. */
#ifndef HN_MODEL_OPS_COMBINE_H
#define HN_MODEL_OPS_COMBINE_H

#include "model/ops/common/op.h"

typedef enum hn_combine {
  HN_COMBINE_NONE,
  HN_COMBINE_ADD,
  HN_COMBINE_MUL,
  HN_COMBINE_MAX,
  HN_COMBINE_MIN
} hn_combine;

/* The node's attribute `reduction`; HONE_ERROR_INPUT when it is not known at this opset. */
hone_status hn_combine_of(const hone_node *node, hn_combine *out, hone_error *error);
/* dst[i] = dst[i] combined with src[i] for n elements. Refuses strings for anything but NONE. bool: ADD and
 * MAX are or, MUL and MIN are and. */
hone_status hn_combine_apply(const hone_node *node, hn_combine how, hone_dtype dtype, void *dst,
                             const void *src, int64_t n, hone_error *error);

#endif
