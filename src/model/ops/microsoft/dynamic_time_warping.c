/* DynamicTimeWarping: the cheapest path from the first to the last element of a matrix of costs, by steps
 * down, right or both; its rows and columns, [2, points]. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { BOTH, DOWN, RIGHT };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank >= 0 && x->rank != 2 && !(x->rank == 3 && (x->dim[0] < 0 || x->dim[0] == 1)))
    return hn_op_bad(io->node, error, "the input is no matrix, but of rank %d", (int)x->rank);
  for (int32_t i = x->rank - 2; i >= 0 && i < x->rank; i++)
    if (x->dim[i] == 0) return hn_op_bad(io->node, error, "the matrix is empty");
  hn_infer_set(io, 0, HONE_DTYPE_I32, 2, (const int64_t[]){2, HONE_DIM_UNKNOWN});
  return HONE_OK;
}

/* A path has m + n - 1 points at most. */
static hone_status most(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const hone_status s = infer(io, error);
  if (!s && io->output[0] && x->rank >= 2 && x->dim[x->rank - 2] >= 0 && x->dim[x->rank - 1] >= 0)
    io->output[0]->dim[1] = x->dim[x->rank - 2] + x->dim[x->rank - 1] - 1;
  return s;
}

/* step[r][c]: by which the cheapest way to an element comes. Of equal ways the step right is taken. */
static hone_status find(hone_call *call, int64_t m, int64_t n, uint8_t *step, float *cost,
                        hone_error *error) {
  float *last = cost, *now = cost + n + 1; /* with a column of infinity before them */
  for (int64_t c = 0; c <= n; c++) last[c] = c ? INFINITY : 0;
  for (int64_t r = 0; r < m; r++) {
    const hone_status s = hn_call_check(call, error);
    if (s) return s;
    now[0] = INFINITY;
    for (int64_t c = 0; c < n; c++) {
      const float both = last[c], down = last[c + 1], right = now[c];
      const int by = both < down && both < right ? BOTH : down < both && down < right ? DOWN : RIGHT;
      step[r * n + c] = (uint8_t)by;
      now[c + 1] = ((const float *)call->input[0]->data)[r * n + c] + (by == BOTH   ? both
                                                                       : by == DOWN ? down
                                                                                    : right);
    }
    float *swap = last;
    last = now, now = swap;
  }
  return HONE_OK;
}

/* Back from the last element to the first; returns the points of the path, whose rows and columns go to
 * y[2][points]. Where costs are NaN a step may lead out of the matrix: along its edge then. */
static int64_t walk(const uint8_t *step, int64_t m, int64_t n, int32_t *y, int64_t points) {
  int64_t r = m - 1, c = n - 1, found = 0;
  for (;; found++) {
    if (y) y[points - 1 - found] = (int32_t)r, y[2 * points - 1 - found] = (int32_t)c;
    if (r == 0 && c == 0) return found + 1;
    const int by = r == 0 ? RIGHT : c == 0 ? DOWN : step[r * n + c];
    r -= by != RIGHT, c -= by != DOWN;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *x = &call->input[0]->desc;
  const int64_t m = x->dim[x->rank - 2], n = x->dim[x->rank - 1];
  uint8_t *step = hn_scratch(call, m, (size_t)n, error);
  float *cost = step ? hn_scratch(call, n + 1, 2 * sizeof *cost, error) : NULL;
  if (!cost) return HONE_ERROR_MEMORY;
  hone_status s = find(call, m, n, step, cost, error);
  if (s) return s;
  const int64_t points = walk(step, m, n, NULL, 0);
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){2, points});
  s = call->alloc_output(call, 0, &d, error);
  if (!s) walk(step, m, n, call->output[0]->data, points);
  return s;
}

HN_OP(dynamic_time_warping) = {HONE_DESC_HEAD(hone_op_desc),
                               .domain = "com.microsoft",
                               .op_type = "DynamicTimeWarping",
                               .since = 1,
                               .flags = HONE_OP_DATA_DEPENDENT,
                               HN_INPUTS(1, 1),
                               HN_OUTPUTS(1, 1),
                               .types = HONE_TYPES(HONE_DTYPE_F32),
                               .infer = infer,
                               .most = most,
                               .reference = reference};
