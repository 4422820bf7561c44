#include "base/nest.h"

#include <stdlib.h>
#include <string.h>

void hn_nest_begin(hn_nest *nest, int32_t rank, const int64_t *dim) {
  memset(nest, 0, sizeof *nest);
  nest->rank = rank;
  for (int32_t i = 0; i < rank; i++) nest->dim[i] = dim[i];
}

void hn_nest_add(hn_nest *nest, const int64_t *stride) {
  for (int32_t i = 0; i < nest->rank; i++) nest->stride[nest->n][i] = stride[i];
  nest->n++;
}

bool hn_nest_add_broadcast(hn_nest *nest, const hone_tensor_desc *desc) {
  int64_t stride[HN_NEST_RANK] = {0};
  const int32_t lead = nest->rank - desc->rank;
  if (lead < 0 || nest->n == HN_NEST_OPERANDS) return false;
  for (int32_t i = 0; i < desc->rank; i++) {
    if (desc->dim[i] != nest->dim[lead + i] && desc->dim[i] != 1) return false;
    stride[lead + i] = desc->dim[i] == 1 ? 0 : desc->stride[i];
  }
  hn_nest_add(nest, stride);
  return true;
}

static int64_t size_of(int64_t v) { return v < 0 ? -v : v; }

static void swap_dims(hn_nest *nest, int32_t a, int32_t b) {
  int64_t t = nest->dim[a];
  nest->dim[a] = nest->dim[b], nest->dim[b] = t;
  for (int32_t k = 0; k < nest->n; k++) {
    t = nest->stride[k][a];
    nest->stride[k][a] = nest->stride[k][b], nest->stride[k][b] = t;
  }
}

/* True when the pair (i, i + 1) is one evenly stepped dimension for every operand. */
static bool mergeable(const hn_nest *nest, int32_t i) {
  for (int32_t k = 0; k < nest->n; k++)
    if (nest->stride[k][i] != nest->stride[k][i + 1] * nest->dim[i + 1]) return false;
  return true;
}

static void drop_dim(hn_nest *nest, int32_t i) {
  for (int32_t j = i; j + 1 < nest->rank; j++) {
    nest->dim[j] = nest->dim[j + 1];
    for (int32_t k = 0; k < nest->n; k++) nest->stride[k][j] = nest->stride[k][j + 1];
  }
  nest->rank--;
}

void hn_nest_finish(hn_nest *nest) {
  for (int32_t i = nest->rank - 1; i >= 0; i--)
    if (nest->dim[i] == 1) drop_dim(nest, i);
  /* Stable insertion sort by the first operand's step, largest outside. */
  for (int32_t i = 1; i < nest->rank; i++)
    for (int32_t j = i; j > 0 && size_of(nest->stride[0][j - 1]) < size_of(nest->stride[0][j]); j--)
      swap_dims(nest, j - 1, j);
  for (int32_t i = nest->rank - 2; i >= 0; i--)
    if (mergeable(nest, i)) {
      nest->dim[i + 1] *= nest->dim[i];
      drop_dim(nest, i);
    }
  if (nest->rank == 0) {
    nest->rank = 1;
    nest->dim[0] = 1;
    for (int32_t k = 0; k < nest->n; k++) nest->stride[k][0] = 1;
  }
}

int64_t hn_nest_count(const hn_nest *nest) {
  int64_t n = 1;
  for (int32_t i = 0; i < nest->rank; i++) n *= nest->dim[i];
  return n;
}

int64_t hn_nest_offset(const hn_nest *nest, int32_t k, int64_t row, int32_t inner) {
  int64_t at = 0;
  for (int32_t i = nest->rank - 1 - inner; i >= 0; i--) {
    at += row % nest->dim[i] * nest->stride[k][i];
    row /= nest->dim[i];
  }
  return at;
}
