/* Col2Im: adds the columns that sliding blocks were unfolded into back to the image, in any number of
 * dimensions. */
#include "base/wide.h"
#include "model/ops/common/bulk.h"

enum { MAX_AXES = HONE_MAX_RANK - 2 };

typedef struct geometry {
  int32_t n;
  int64_t image[MAX_AXES], block[MAX_AXES], blocks[MAX_AXES]; /* blocks: how many fit along each axis */
  int64_t stride[MAX_AXES], dilation[MAX_AXES], pad[MAX_AXES];
  int64_t taps, places; /* elements of a block, number of blocks */
} geometry;

static hone_status read_list(const hone_node *node, const char *name, int64_t *out, size_t n, int64_t least,
                             hone_error *error) {
  size_t count = 0;
  const int64_t *v = hone_node_ints(node, name, &count);
  if (count && count != n) return hn_op_bad(node, error, "%s has %zu values, expected %zu", name, count, n);
  for (size_t i = 0; i < n; i++) {
    out[i] = count ? v[i] : least; /* the default of all three is their least value */
    if (out[i] < least || out[i] > INT32_MAX)
      return hn_op_bad(node, error, "%s holds %lld", name, (long long)out[i]);
  }
  return HONE_OK;
}

/* From known image and block sizes. */
static hone_status init(geometry *g, const hone_node *node, hone_error *error) {
  int64_t pads[2 * MAX_AXES];
  hone_status s = read_list(node, "strides", g->stride, (size_t)g->n, 1, error);
  if (!s) s = read_list(node, "dilations", g->dilation, (size_t)g->n, 1, error);
  if (!s) s = read_list(node, "pads", pads, 2 * (size_t)g->n, 0, error);
  if (s) return s;
  g->taps = g->places = 1;
  for (int32_t d = 0; d < g->n; d++) {
    if (g->image[d] < 1 || g->block[d] < 1 || g->image[d] > INT32_MAX || g->block[d] > INT32_MAX)
      return hn_op_bad(node, error, "image or block size %lld, %lld", (long long)g->image[d],
                       (long long)g->block[d]);
    int64_t room = g->image[d] + pads[d] + pads[g->n + d] - ((g->block[d] - 1) * g->dilation[d] + 1);
    if (room < 0) return hn_op_bad(node, error, "a block is larger than the padded image");
    g->pad[d] = pads[d];
    g->blocks[d] = room / g->stride[d] + 1;
    if (__builtin_mul_overflow(g->taps, g->block[d], &g->taps) ||
        __builtin_mul_overflow(g->places, g->blocks[d], &g->places))
      return hn_op_bad(node, error, "the blocks are too large");
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dims[HONE_MAX_RANK];
  geometry g;
  if (x->rank >= 0 && x->rank != 3)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 3", (int)x->rank);
  int64_t n = hn_infer_ints(io, 1, g.image, MAX_AXES), m = hn_infer_ints(io, 2, g.block, MAX_AXES);
  if (n == -2 || m == -2) return hn_op_refuse(io->node, error, "more than %d spatial dimensions", MAX_AXES);
  if (n == 0 || m == 0 || (n > 0 && m > 0 && n != m))
    return hn_op_bad(io->node, error, "image_shape has %lld values, block_shape %lld", (long long)n,
                     (long long)m);
  if (n < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  dims[0] = x->rank == 3 ? x->dim[0] : HONE_DIM_UNKNOWN;
  dims[1] = HONE_DIM_UNKNOWN;
  for (int64_t d = 0; d < n; d++) dims[2 + d] = g.image[d];
  if (m > 0) {
    g.n = (int32_t)n;
    hone_status s = init(&g, io->node, error);
    if (s) return s;
    if (x->rank == 3 && x->dim[1] >= 0) {
      if (x->dim[1] % g.taps)
        return hn_op_bad(io->node, error, "%lld rows do not divide into blocks of %lld", (long long)x->dim[1],
                         (long long)g.taps);
      dims[1] = x->dim[1] / g.taps;
    }
    if (x->rank == 3 && x->dim[2] >= 0 && x->dim[2] != g.places)
      return hn_op_bad(io->node, error, "the input has %lld columns, %lld blocks fit", (long long)x->dim[2],
                       (long long)g.places);
  }
  hn_infer_set(io, 0, x->dtype, (int32_t)n + 2, dims);
  return HONE_OK;
}

/* line[i step] += row[i] */
HN_WIDE_BODY void add_f32_body(double *restrict line, const float *restrict row, int64_t n, int64_t step) {
  enum { BLOCK = 16 };
  const int64_t whole = step == 1 ? n - n % BLOCK : 0;
  for (int64_t j = 0; j < whole; j += BLOCK)
    for (int64_t i = j; i < j + BLOCK; i++) line[i] += (double)row[i];
  for (int64_t i = whole; i < n; i++) line[i * step] += (double)row[i];
}
HN_WIDE(void, add_f32, add_f32_body, (double *line, const float *row, int64_t n, int64_t step),
        (line, row, n, step))

static void add_f64(double *line, const double *row, int64_t n, int64_t step) {
  if (step == 1)
    for (int64_t i = 0; i < n; i++) line[i] += row[i];
  else
    for (int64_t i = 0; i < n; i++) line[i * step] += row[i];
}

/* Adds one row of the columns (one element of every block, f32 or f64) to a plane of the image. */
static void add_row(const geometry *g, int64_t tap, const void *row, bool narrow, double *plane) {
  int64_t offset[MAX_AXES], at[MAX_AXES] = {0};
  for (int32_t d = g->n - 1; d >= 0; d--) {
    offset[d] = tap % g->block[d] * g->dilation[d] - g->pad[d];
    tap /= g->block[d];
  }
  /* Along the last axis: the blocks from `first` on, before `end`, whose element lies inside. */
  const int32_t last = g->n - 1;
  const int64_t row_blocks = g->blocks[last], step = g->stride[last], before = -offset[last];
  const int64_t first = before > 0 ? hn_div_up(before, step) : 0,
                end = hn_min(row_blocks, hn_div_up(g->image[last] - offset[last], step));
  for (int64_t p = 0; p < g->places; p += row_blocks) {
    int64_t to = 0;
    bool inside = true;
    for (int32_t d = 0; d < last; d++) {
      int64_t i = at[d] * g->stride[d] + offset[d];
      inside = inside && i >= 0 && i < g->image[d];
      to = to * g->image[d] + i;
    }
    if (inside) {
      double *line = plane + to * g->image[last] + first * step + offset[last];
      if (first >= end)
        ; /* all of it lies outside */
      else if (narrow)
        add_f32(line, (const float *)row + p + first, end - first, step);
      else
        add_f64(line, (const double *)row + p + first, end - first, step);
    }
    for (int32_t d = last - 1; d >= 0 && ++at[d] == g->blocks[d]; d--) at[d] = 0;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  geometry g = {.n = y->desc.rank - 2};
  hn_tensor_ints(call->input[1], g.image, MAX_AXES);
  hn_tensor_ints(call->input[2], g.block, MAX_AXES);
  hone_status s = init(&g, call->node, error);
  if (s) return s;
  int64_t planes = y->desc.dim[0] * y->desc.dim[1], size = hn_dims(&y->desc, 2, y->desc.rank);
  double *plane = hn_scratch(call, size, sizeof *plane, error);
  double *row = plane ? hn_scratch(call, g.places, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  const bool narrow = x->desc.dtype == HONE_DTYPE_F32;
  for (int64_t p = 0; p < planes; p++) {
    memset(plane, 0, (size_t)size * sizeof *plane);
    for (int64_t t = 0; t < g.taps; t++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      const int64_t at = (p * g.taps + t) * g.places;
      if (!narrow) hn_load_f64(row, x, at, g.places);
      add_row(&g, t, narrow ? (const void *)((const float *)x->data + at) : row, narrow, plane);
    }
    hn_store_f64(y, p * size, plane, size);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_cost_flops(cost, hn_known_count(io->input[0])); }

static const hone_attr_desc attrs[] = {{"dilations", HONE_ATTR_INTS, false, 0, 0},
                                       {"pads", HONE_ATTR_INTS, false, 0, 0},
                                       {"strides", HONE_ATTR_INTS, false, 0, 0},
                                       {0}};

HN_OP(col2im) = {HN_OP_HEAD,
                 .op_type = "Col2Im",
                 .since = 18,
                 HN_INPUTS(3, 3),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_NUMBER,
                 .attrs = attrs,
                 .infer = infer,
                 .cost = cost,
                 .reference = reference,
                 .host_inputs = 1u << 1 | 1u << 2};
