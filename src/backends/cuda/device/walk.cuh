/* Where element i of a walk lies in two tensors. */
#ifndef HN_CUDA_WALK_CUH
#define HN_CUDA_WALK_CUH

#include "divide.cuh"
#include "prelude.cuh"
#include "walk_args.h"

typedef struct hn_walk_at {
  i64 x, y;
} hn_walk_at;

/* rank is w->rank; where it is a constant, nothing is left of the loop. */
HN_FN hn_walk_at hn_walk_ranked(const hn_walk_args *w, int rank, u32 i) {
  hn_walk_at at = {0, 0};
  HN_UNROLL for (int d = rank - 1; d > 0; d--) {
    const u32 q = hn_quotient(i, &w->dim[d]), r = i - q * w->dim[d].by;
    at.x += r * w->x[d], at.y += r * w->y[d];
    i = q;
  }
  if (rank > 0) at.x += i * w->x[0], at.y += i * w->y[0];
  return at;
}
HN_FN hn_walk_at hn_walk(const hn_walk_args *w, u32 i) { return hn_walk_ranked(w, w->rank, i); }

#endif
