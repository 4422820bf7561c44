/* AffineGrid: the sampling grid of GridSample for an affine map theta of normalised coordinates, 2-D or 3-D.
 */
#include "model/ops/common/bulk.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *theta = io->input[0];
  int64_t size[5], dims[5];
  hone_status s = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  int64_t n = hn_infer_ints(io, 1, size, 5);
  int32_t axes = n == 4 || n == 5 ? (int32_t)n - 2 : 0;
  if (n != -1 && !axes) return hn_op_bad(io->node, error, "size does not have 4 or 5 values");
  if (theta->rank >= 0) {
    if (theta->rank != 3)
      return hn_op_bad(io->node, error, "theta has rank %d, expected 3", (int)theta->rank);
    if (theta->dim[1] >= 0) {
      int64_t rows = theta->dim[1];
      if ((rows != 2 && rows != 3) || (axes && rows != axes) ||
          (theta->dim[2] >= 0 && theta->dim[2] != rows + 1))
        return hn_op_bad(io->node, error, "theta is %lld x %lld", (long long)rows, (long long)theta->dim[2]);
      axes = (int32_t)rows;
    }
    if (n > 0 && theta->dim[0] >= 0 && theta->dim[0] != size[0])
      return hn_op_bad(io->node, error, "theta has a batch of %lld, size %lld", (long long)theta->dim[0],
                       (long long)size[0]);
  }
  if (!axes) return hn_infer_set(io, 0, theta->dtype, -1, NULL), HONE_OK;
  dims[0] = n > 0 ? size[0] : theta->dim[0];
  for (int32_t d = 0; d < axes; d++) dims[1 + d] = n > 0 ? size[2 + d] : HONE_DIM_UNKNOWN;
  for (int32_t d = 0; n > 0 && d <= axes; d++)
    if (dims[d] < 0) return hn_op_bad(io->node, error, "size holds %lld", (long long)dims[d]);
  dims[axes + 1] = axes;
  hn_infer_set(io, 0, theta->dtype, axes + 2, dims);
  return HONE_OK;
}

/* Normalised coordinate of element i of n. */
static double place(int64_t i, int64_t n, bool align) {
  if (align) return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : -1;
  return -1 + (2 * (double)i + 1) / (double)n;
}

/* Row after row of the last axis: along it the first coordinate alone changes. */
static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  const int32_t axes = y->desc.rank - 2, rows = axes + 1;
  const bool align = hone_node_int(call->node, "align_corners", 0) != 0;
  const int64_t points = hn_dims(&y->desc, 1, axes + 1), row = y->desc.dim[axes];
  const double *theta = hn_all_f64(call, call->input[0], error);
  double *first = theta ? hn_scratch(call, row, sizeof *first, error) : NULL,
         *out = first ? hn_scratch(call, row * axes, sizeof *out, error) : NULL;
  if (!out) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < row; i++) first[i] = place(i, row, align);
  for (int64_t n = 0; n < y->desc.dim[0]; n++, theta += axes * rows)
    for (int64_t p = 0; p < points; p += row) {
      double at[4];
      int64_t left = p / row;
      for (int32_t d = axes - 2; d >= 0; d--) { /* the last axis is the first coordinate */
        at[axes - 1 - d] = place(left % y->desc.dim[1 + d], y->desc.dim[1 + d], align);
        left /= y->desc.dim[1 + d];
      }
      at[axes] = 1;
      for (int32_t r = 0; r < axes; r++)
        for (int64_t i = 0; i < row; i++) {
          double sum = theta[r * rows] * first[i];
          for (int32_t c = 1; c <= axes; c++) sum += theta[r * rows + c] * at[c];
          out[i * axes + r] = sum;
        }
      hn_store_f64(y, (n * points + p) * axes, out, row * axes);
    }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, io->output[0] ? 8 * hn_known_count(io->output[0]) : 0);
}

static const hone_attr_desc attrs[] = {{"align_corners", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_OP(affine_grid) = {HN_OP_HEAD,       .op_type = "AffineGrid", .since = 20,           HN_INPUTS(2, 2),
                      HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT, .attrs = attrs,        .infer = infer,
                      .cost = cost,     .reference = reference,  .host_inputs = 1u << 1};
