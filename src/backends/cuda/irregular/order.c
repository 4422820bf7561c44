#include "backends/cuda/irregular/order.h"

#include <stdio.h>
#include <string.h>

size_t hn_cuda_order(hn_cuda_direct *p, hone_dtype t) {
  const bool wide = hone_dtype_size(t) == 8;
  const int kind = t == HONE_DTYPE_F64 ? 1 : hone_dtype_is_float(t) ? 0 : hone_dtype_is_signed_int(t) ? 2 : 3;
  const size_t n = strlen(p->defines);
  snprintf(p->defines + n, sizeof p->defines - n, "#define HN_KEY %s\n", wide ? "u64" : "u32");
  hn_cuda_direct_define(p, "HN_KIND", kind);
  return wide ? 8 : 4;
}

int64_t hn_cuda_sort_padded(int64_t n) {
  int64_t padded = 1;
  while (padded < n) padded *= 2;
  return padded;
}
