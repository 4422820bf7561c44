/* Slice: elements from start to end (exclusive) in steps, along some axes; as numpy's x[start:end:step], but
 * a start before the first element is the first one in both directions. */
#include "model/ops/common/axes.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

typedef struct slice {
  hn_list starts, ends, axes, steps;
} slice;

/* A bound counted from the start, clamped to what the direction allows. */
static int64_t clamp(int64_t v, int64_t dim, int64_t low, int64_t high) {
  if (v < 0) v = v < -dim ? low : v + dim;
  return v < low ? low : v > high ? high : v;
}

/* Start and number of elements of one axis; step is not 0. */
static void range(int64_t start, int64_t end, int64_t step, int64_t dim, int64_t *first, int64_t *count) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  start = clamp(start, dim, dim ? 0 : low, high);
  end = clamp(end, dim, low, high);
  int64_t length = step > 0 ? end - start : start - end;
  uint64_t stride = step > 0 ? (uint64_t)step : 0u - (uint64_t)step;
  *first = start;
  *count = length <= 0 ? 0 : (int64_t)(((uint64_t)length + stride - 1) / stride);
}

/* Checks the lists against each other and fills in defaults. */
static hone_status check(const hone_node *node, slice *s, int32_t rank, hone_error *error) {
  if (!s->starts.given || !s->ends.given) return hn_op_bad(node, error, "starts or ends are missing");
  if (s->starts.n != s->ends.n || (s->axes.given && s->axes.n != s->starts.n) ||
      (s->steps.given && s->steps.n != s->starts.n))
    return hn_op_bad(node, error, "starts, ends, axes and steps differ in length");
  if (!s->axes.given) {
    s->axes.n = s->starts.n;
    for (int32_t i = 0; i < s->axes.n; i++) s->axes.at[i] = i;
  }
  for (int32_t i = 0; i < s->starts.n; i++) {
    if (!s->steps.given) s->steps.at[i] = 1;
    if (s->steps.at[i] == 0) return hn_op_bad(node, error, "step %d is 0", i);
  }
  return hn_list_axes(node, &s->axes, rank, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  slice s;
  hone_status status = hn_list_infer(io, "starts", 10, 1, &s.starts, error);
  if (!status) status = hn_list_infer(io, "ends", 10, 2, &s.ends, error);
  if (!status) status = hn_list_infer(io, "axes", 10, 3, &s.axes, error);
  if (!status) status = hn_list_infer(io, "steps", 10, 4, &s.steps, error);
  if (status) return status;
  hone_tensor_desc y = *x;
  bool known = s.starts.known && s.ends.known && s.axes.known && s.steps.known;
  if (x->rank >= 0 && known) {
    status = check(io->node, &s, x->rank, error);
    if (status) return status;
    for (int32_t i = 0; i < s.starts.n; i++) {
      int64_t first, *d = &y.dim[s.axes.at[i]];
      if (*d >= 0)
        range(s.starts.at[i], s.ends.at[i], s.steps.at[i], *d, &first, d);
      else if (s.starts.at[i] != 0 || s.ends.at[i] < INT32_MAX || s.steps.at[i] != 1)
        *d = HONE_DIM_UNKNOWN;
    }
  } else if (x->rank >= 0) {
    bool some = s.axes.known && s.axes.given; /* only these change */
    if (some) {
      status = hn_list_axes(io->node, &s.axes, x->rank, error);
      if (status) return status;
    }
    for (int32_t i = 0; i < (some ? s.axes.n : x->rank); i++)
      y.dim[some ? s.axes.at[i] : i] = HONE_DIM_UNKNOWN;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  int32_t rank = x->desc.rank;
  slice s;
  hone_status status = hn_list_call(call, "starts", 10, 1, &s.starts, error);
  if (!status) status = hn_list_call(call, "ends", 10, 2, &s.ends, error);
  if (!status) status = hn_list_call(call, "axes", 10, 3, &s.axes, error);
  if (!status) status = hn_list_call(call, "steps", 10, 4, &s.steps, error);
  if (!status) status = check(call->node, &s, rank, error);
  if (status || hn_count(y) == 0) return status;
  int64_t from[HONE_MAX_RANK], to[HONE_MAX_RANK], at = 0;
  hn_strides(x->desc.dim, rank, from);
  hn_strides(y->desc.dim, rank, to);
  for (int32_t i = 0; i < s.starts.n; i++) {
    int64_t first, count, axis = s.axes.at[i];
    range(s.starts.at[i], s.ends.at[i], s.steps.at[i], x->desc.dim[axis], &first, &count);
    at += first * from[axis];
    /* A step longer than the axis is used once only, so its product may not matter, but must not overflow. */
    if (count > 1) from[axis] *= s.steps.at[i];
  }
  hn_move(y->data, to, hn_at(x, at), from, y->desc.dim, rank, hone_dtype_size(x->desc.dtype));
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "starts", .type = HONE_ATTR_INTS, .required = true, .until = 9},
    {.name = "ends", .type = HONE_ATTR_INTS, .required = true, .until = 9},
    {.name = "axes", .type = HONE_ATTR_INTS, .until = 9},
    {0}};

HN_OP(slice) = {HN_OP_HEAD,
                .op_type = "Slice",
                .since = 1,
                .flags = HONE_OP_MOVE,
                HN_INPUTS(1, 5),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_ALL,
                .attrs = attrs,
                .infer = infer,
                .reference = reference,
                .host_inputs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                .layouts = HONE_LAST_ALLOWED};
