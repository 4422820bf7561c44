#include "backends/cuda/normalize/walk.h"

#include <string.h>

#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"
#include "base/nest.h"

bool hn_cuda_walk(hn_walk_args *walk, int32_t rank, const int64_t *dim, const int64_t *x, const int64_t *y,
                  uint32_t which, int64_t *count, hone_reason *why) {
  int64_t d[HONE_MAX_RANK], sx[HONE_MAX_RANK], sy[HONE_MAX_RANK];
  int32_t n = 0;
  *count = 1;
  for (int32_t i = 0; i < rank; i++) {
    if (!(which >> i & 1)) continue;
    d[n] = dim[i], sx[n] = x[i], sy[n] = y ? y[i] : 0;
    n++;
    if (dim[i] > INT32_MAX || (*count *= dim[i]) > INT32_MAX)
      return hn_refuse(why, "more than 2^31 elements in a walk");
  }
  memset(walk, 0, sizeof *walk);
  hn_nest nest;
  hn_nest_begin(&nest, n, d);
  hn_nest_add(&nest, sx);
  hn_nest_add(&nest, sy);
  hn_nest_finish(&nest);
  if (nest.rank > HN_WALK_RANK) return hn_refuse(why, "more than %d dimensions", HN_WALK_RANK);
  walk->rank = nest.rank;
  for (int32_t i = 0; i < nest.rank; i++) {
    walk->dim[i] = hn_cuda_divisor(nest.dim[i] > 0 ? (uint32_t)nest.dim[i] : 1);
    walk->x[i] = nest.stride[0][i], walk->y[i] = nest.stride[1][i];
  }
  return true;
}

bool hn_cuda_walk_vectors(hn_walk_args *walk, int width, bool with_y, int64_t *count) {
  if (walk->rank < 1 || width < 2) return false;
  const int32_t last = walk->rank - 1;
  if (walk->x[last] != 1 || (with_y && walk->y[last] != 1) || walk->dim[last].by % (uint32_t)width)
    return false;
  for (int32_t i = 0; i < last; i++)
    if (walk->x[i] % width || (with_y && walk->y[i] % width)) return false;
  walk->dim[last] = hn_cuda_divisor(walk->dim[last].by / (uint32_t)width);
  walk->x[last] *= width, walk->y[last] *= width;
  *count /= width;
  return true;
}

bool hn_cuda_reduced_strides(const hone_tensor_desc *x, const hone_tensor_desc *y, uint32_t axes,
                             int64_t *stride, hone_reason *why) {
  int32_t at = 0;
  for (int32_t i = 0; i < x->rank; i++) {
    const bool reduced = axes >> i & 1;
    if (!reduced && (at >= y->rank || y->dim[at] != x->dim[i]))
      return hn_refuse(why, "the output's dimension %d does not fit", (int)at);
    stride[i] = reduced ? 0 : y->stride[at];
    if (!reduced || y->rank == x->rank) at++;
  }
  return true;
}
