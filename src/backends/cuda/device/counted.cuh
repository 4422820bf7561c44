/* What steps leave for the host to know the dimensions of their outputs (counted_args.h). */
#ifndef HN_COUNTED_CUH
#define HN_COUNTED_CUH

#include "counted_args.h"
#include "direct.cuh"

HN_FN void hn_count_out(const hn_direct_args *a, int output, int dim, i64 n) {
  ((i64 *)a->work)[output * HN_COUNTED_RANK + dim] = n + 1;
}
HN_FN i64 hn_counted(const hn_direct_args *a, int output, int dim) {
  return ((const i64 *)a->work)[output * HN_COUNTED_RANK + dim] - 1;
}

#endif
