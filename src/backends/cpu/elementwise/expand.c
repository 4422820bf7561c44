#include "backends/cpu/elementwise/expand.h"

#include <string.h>

#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "base/fault.h"
#include "base/integers.h"

enum { SEED = 32 }; /* elements from which on a pattern grows by copies of itself */

typedef struct expansion {
  const hn_nest *nest;
  const int64_t *stride;
  hn_isa isa;
  int64_t unit[HN_NEST_RANK]; /* rows of one step of a dimension */
} expansion;

/* Makes `total` elements of a pattern of which `have` are there. */
static void repeat(float *dst, int64_t have, int64_t total) {
  for (int64_t n; have < total; have += n) {
    n = have < total - have ? have : total - have;
    memcpy(dst + have, dst, (size_t)n * sizeof *dst);
  }
}

/* Rows of the innermost two dimensions. */
static void fill_rows(const expansion *e, const float *x, int64_t rows, float *dst) {
  const int32_t last = e->nest->rank - 1;
  const int64_t n = e->nest->dim[last], step = e->stride[last], pitch = e->stride[last - 1];
  const struct hn_pw_ops *ops = hn_pw_find(e->isa);
  const int64_t seed = pitch == 0 && rows * n > SEED ? hn_div_up(SEED, n) : rows;
  if (step == 0 || step == 1)
    ops->rows(dst, x, (size_t)seed, (size_t)n, pitch, step == 1);
  else if (pitch == 1)
    hn_transpose_find(e->isa)->matrix[2](dst, n, x, step, (size_t)n, (size_t)rows);
  else
    for (int64_t r = 0; r < seed; r++)
      for (int64_t i = 0; i < n; i++) dst[r * n + i] = x[r * pitch + i * step];
  repeat(dst, seed * n, rows * n);
}

/* Rows from to end of dimension d and those inside of it, which begin at x. */
static void fill(const expansion *e, int32_t d, const float *x, int64_t from, int64_t end, float *dst) {
  const int64_t unit = e->unit[d], n = e->nest->dim[e->nest->rank - 1];
  if (d == e->nest->rank - 2) {
    fill_rows(e, x + from * e->stride[d], end - from, dst);
    return;
  }
  while (from < end) {
    const int64_t within = from % unit, rest = end - from, some = unit - within < rest ? unit - within : rest;
    int64_t rows = some;
    fill(e, d + 1, x + from / unit * e->stride[d], within, within + some, dst);
    if (some == unit && e->stride[d] == 0) {
      rows = rest / unit * unit;
      repeat(dst, unit * n, (HN_FAULT("expand_repeat") ? unit : rows) * n);
    }
    from += rows, dst += rows * n;
  }
}

void hn_expand_rows(hn_isa isa, const hn_nest *nest, int32_t k, const float *x, int64_t first_row,
                    int64_t rows, float *dst) {
  expansion e = {nest, nest->stride[k], isa, {0}};
  e.unit[nest->rank - 2] = 1;
  for (int32_t d = nest->rank - 2; d > 0; d--) e.unit[d - 1] = e.unit[d] * nest->dim[d];
  fill(&e, 0, x, first_row, first_row + rows, dst);
}
