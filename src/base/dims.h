/* Products of a tensor's dimensions. */
#ifndef HN_BASE_DIMS_H
#define HN_BASE_DIMS_H

#include <hone/tensor.h>

/* Of the dimensions from `from` to `to` - 1; 1 where there are none. All known. */
static inline int64_t hn_dims(const hone_tensor_desc *d, int32_t from, int32_t to) {
  int64_t n = 1;
  for (int32_t i = from; i < to; i++) n *= d->dim[i];
  return n;
}

#endif
