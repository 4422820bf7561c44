/* Pad: elements added (or, for negative pads, removed) at both ends of dimensions: a constant, or the input's
 * own elements mirrored, repeated at the edge, or wrapped around. */
#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

typedef enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP } pad_mode;

static hone_status mode_of(const hone_node *node, pad_mode *mode, hone_error *error) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  const char *name = hone_node_string(node, "mode", "constant");
  for (int i = 0; i < 4; i++)
    if (strcmp(name, names[i]) == 0) {
      *mode = (pad_mode)i;
      return i == WRAP && hone_node_opset(node) < 19 ? hn_op_bad(node, error, "mode wrap came with opset 19")
                                                     : HONE_OK;
    }
  return hn_op_bad(node, error, "mode is '%s'", name);
}

static const char *attr_name(const hone_node *node) {
  return hone_node_opset(node) < 2 ? "paddings" : "pads";
}

/* Pads of every dimension from those of the listed axes. */
static hone_status spread(const hone_node *node, const hn_list *pads, hn_list *axes, int32_t rank,
                          int64_t *begin, int64_t *end, hone_error *error) {
  if (!pads->given) return hn_op_bad(node, error, "pads are missing");
  int32_t n = axes->given ? axes->n : rank;
  if (pads->n != 2 * n) return hn_op_bad(node, error, "%d pads for %d dimensions", pads->n, n);
  for (int32_t i = 0; i < rank; i++) begin[i] = end[i] = 0;
  if (axes->given) {
    hone_status status = hn_list_axes(node, axes, rank, error);
    if (status) return status;
  }
  for (int32_t i = 0; i < n; i++) {
    int32_t d = axes->given ? (int32_t)axes->at[i] : i;
    begin[d] = pads->at[i];
    end[d] = pads->at[n + i];
  }
  return HONE_OK;
}

/* What negative pads leave of a dimension. */
typedef struct extent {
  int64_t first, dim;
} extent;

static extent left_over(int64_t dim, int64_t begin, int64_t end) {
  int64_t from = begin < -dim ? dim : begin < 0 ? -begin : 0, cut = end < -dim ? dim : end < 0 ? -end : 0;
  return (extent){from, from + cut < dim ? dim - from - cut : 0};
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  hn_list pads, axes;
  pad_mode mode;
  int64_t begin[HONE_MAX_RANK], end[HONE_MAX_RANK];
  hone_status status = mode_of(io->node, &mode, error);
  if (!status) status = hn_list_infer(io, attr_name(io->node), 11, 1, &pads, error);
  if (!status) status = hn_list_infer(io, "", 0, 3, &axes, error);
  if (!status) status = hn_infer_same_dtype(io, 0, 2, error);
  if (status) return status;
  if (hn_has_input(io, 2) && hone_desc_known(io->input[2]) && hone_desc_count(io->input[2]) != 1)
    return hn_op_bad(io->node, error, "constant_value has %lld elements",
                     (long long)hone_desc_count(io->input[2]));
  if (y.rank >= 0 && pads.known && axes.known) {
    status = spread(io->node, &pads, &axes, y.rank, begin, end, error);
    if (status) return status;
    for (int32_t i = 0; i < y.rank; i++) {
      int64_t old = y.dim[i];
      if (old < 0) {
        if (begin[i] || end[i]) y.dim[i] = HONE_DIM_UNKNOWN;
        continue;
      }
      if (__builtin_add_overflow(old, begin[i], &y.dim[i]) ||
          __builtin_add_overflow(y.dim[i], end[i], &y.dim[i]))
        return hn_op_bad(io->node, error, "the result is too large");
      if (y.dim[i] < 0)
        return hn_op_bad(io->node, error, "dimension %d becomes %lld", i, (long long)y.dim[i]);
      bool nothing = begin[i] < -old || end[i] < -old || left_over(old, begin[i], end[i]).dim == 0;
      if (mode != CONSTANT && nothing && y.dim[i] > 0)
        return hn_op_bad(io->node, error, "dimension %d has no elements to pad with", i);
    }
  } else
    for (int32_t i = 0; i < y.rank; i++) y.dim[i] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

/* Where the element at place i of the result comes from; -1: the constant. */
static int64_t source(pad_mode mode, int64_t i, int64_t begin, extent e) {
  i -= begin > 0 ? begin : 0;
  if (i >= 0 && i < e.dim) return e.first + i;
  if (mode == CONSTANT) return -1;
  if (mode == EDGE) return e.first + (i < 0 ? 0 : e.dim - 1);
  int64_t period = mode == WRAP ? e.dim : e.dim > 1 ? 2 * (e.dim - 1) : 1, r = i % period;
  if (r < 0) r += period;
  return e.first + (r < e.dim ? r : period - r);
}

/* Maximal runs of the last dimension that are copied or filled as a whole. */
typedef struct run {
  int64_t to, from, n; /* from -1: constant */
} run;

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  int32_t rank = x->desc.rank, last = rank - 1;
  hn_list pads, axes;
  pad_mode mode;
  int64_t begin[HONE_MAX_RANK], end[HONE_MAX_RANK], from[HONE_MAX_RANK], index[HONE_MAX_RANK] = {0},
                                                                         total = 0;
  hone_status status = mode_of(call->node, &mode, error);
  if (!status) status = hn_list_call(call, attr_name(call->node), 11, 1, &pads, error);
  if (!status) status = hn_list_call(call, "", 0, 3, &axes, error);
  if (!status) status = spread(call->node, &pads, &axes, rank, begin, end, error);
  if (status) return status;
  size_t size = hone_dtype_size(x->desc.dtype);
  char value[sizeof(hone_string)] = {0};
  if (hn_call_has(call, 2))
    memcpy(value, call->input[2]->data, size);
  else {
    double v = hone_node_opset(call->node) < 11 ? hone_node_float(call->node, "value", 0) : 0;
    hn_write_f64(value, x->desc.dtype, 0, &v, 1); /* strings stay empty */
  }
  if (hn_count(y) == 0) return HONE_OK;
  if (rank == 0) {
    memcpy(y->data, x->data, size);
    return HONE_OK;
  }
  if (hn_count(x) == 0) {
    hn_fill(y->data, value, hn_count(y), size);
    return HONE_OK;
  }
  hn_strides(x->desc.dim, rank, from);
  extent left[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) left[i] = left_over(x->desc.dim[i], begin[i], end[i]);
  int64_t width = y->desc.dim[last];
  run *runs = hn_scratch(call, width, sizeof *runs, error);
  if (!runs) return HONE_ERROR_MEMORY;
  int64_t n_runs = 0;
  for (int64_t j = 0; j < width; j++) {
    int64_t s = source(mode, j, begin[last], left[last]);
    run *r = n_runs ? &runs[n_runs - 1] : NULL;
    if (r && (s < 0 ? r->from < 0 : r->from >= 0 && s == r->from + r->n))
      r->n++;
    else
      runs[n_runs++] = (run){j, s, 1};
  }
  int64_t rows = hn_count(y) / width;
  char *to = y->data;
  for (int64_t row = 0; row < rows; row++, to += (size_t)width * size) {
    int64_t at = 0;
    bool filled = false;
    for (int32_t d = 0; d < last; d++) {
      int64_t s = source(mode, index[d], begin[d], left[d]);
      filled |= s < 0;
      at += s * from[d];
    }
    if ((total += width) >= HN_STOP_EVERY) {
      total = 0;
      status = hn_call_check(call, error);
      if (status) return status;
    }
    if (filled) hn_fill(to, value, width, size);
    for (int64_t k = 0; k < n_runs && !filled; k++) {
      char *dst = to + (size_t)runs[k].to * size;
      if (runs[k].from < 0)
        hn_fill(dst, value, runs[k].n, size);
      else
        memcpy(dst, hn_at(x, at + runs[k].from), (size_t)runs[k].n * size);
    }
    for (int32_t d = last - 1; d >= 0 && ++index[d] == y->desc.dim[d]; d--) index[d] = 0;
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "mode", .type = HONE_ATTR_STRING},
    {.name = "paddings", .type = HONE_ATTR_INTS, .required = true, .until = 1},
    {.name = "pads", .type = HONE_ATTR_INTS, .required = true, .since = 2, .until = 10},
    {.name = "value", .type = HONE_ATTR_FLOAT, .until = 10},
    {0}};

HN_OP(pad) = {HN_OP_HEAD,
              .op_type = "Pad",
              .since = 1,
              .flags = HONE_OP_MOVE,
              HN_INPUTS(1, 4),
              HN_OUTPUTS(1, 1),
              .types = HN_TYPES_ALL,
              .attrs = attrs,
              .infer = infer,
              .reference = reference,
              .host_inputs = 1u << 1 | 1u << 2 | 1u << 3,
              .layouts = HONE_LAST_ALLOWED};
