/* MaxRoiPool: the largest element in each cell of each region; regions are rounded to pixels. An empty cell
 * gives 0. */
#include "model/ops/common/bulk.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *rois = io->input[1];
  size_t n = 0;
  const int64_t *shape = hone_node_ints(io->node, "pooled_shape", &n);
  if (n != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    return hn_op_bad(io->node, error, "pooled_shape is not two positive numbers");
  if (x->rank >= 0 && x->rank != 4)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 4", (int)x->rank);
  if (rois->rank >= 0 && (rois->rank != 2 || (rois->dim[1] >= 0 && rois->dim[1] != 5)))
    return hn_op_bad(io->node, error, "the regions are not a list of an index and four coordinates");
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (s) return s;
  const int64_t dims[] = {rois->rank == 2 ? rois->dim[0] : HONE_DIM_UNKNOWN,
                          x->rank == 4 ? x->dim[1] : HONE_DIM_UNKNOWN, shape[0], shape[1]};
  hn_infer_set(io, 0, x->dtype, 4, dims);
  return HONE_OK;
}

/* Pixels [*lo, *hi) of cell i of n cells, for a region that starts at pixel `start` and covers `size` pixels.
 */
static void cell_range(double start, double size, int64_t i, int64_t n, int64_t limit, int64_t *lo,
                       int64_t *hi) {
  double cell = size / (double)n, top = (double)limit;
  *lo = (int64_t)fmin(fmax(floor((double)i * cell) + start, 0), top);
  *hi = (int64_t)fmin(fmax(ceil((double)(i + 1) * cell) + start, 0), top);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const double scale = hone_node_float(call->node, "spatial_scale", 1);
  int64_t channels = x->desc.dim[1], height = x->desc.dim[2], width = x->desc.dim[3], at = 0;
  int64_t rows = y->desc.dim[2], cols = y->desc.dim[3];
  const double *data = hn_all_f64(call, x, error);
  if (!data) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < y->desc.dim[0]; r++) {
    double v[5];
    for (int i = 0; i < 5; i++) {
      v[i] = hn_get_f64(call->input[1], r * 5 + i);
      if (!isfinite(v[i])) return hn_op_bad(call->node, error, "region %lld is not finite", (long long)r);
      if (i) v[i] = round(v[i] * scale);
    }
    if (!(v[0] >= 0 && v[0] < (double)x->desc.dim[0]))
      return hn_op_bad(call->node, error, "batch index %g is out of range", v[0]);
    const double *image = data + (int64_t)v[0] * channels * height * width;
    double w = fmax(v[3] - v[1] + 1, 1), h = fmax(v[4] - v[2] + 1, 1);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t ph = 0; ph < rows; ph++) {
        if (call->stopped(call)) return HONE_ERROR_CANCELLED;
        for (int64_t pw = 0; pw < cols; pw++) {
          int64_t y0, y1, x0, x1;
          cell_range(v[2], h, ph, rows, height, &y0, &y1);
          cell_range(v[1], w, pw, cols, width, &x0, &x1);
          double best = y0 < y1 && x0 < x1 ? -INFINITY : 0;
          for (int64_t i = y0; i < y1; i++)
            for (int64_t j = x0; j < x1; j++) best = fmax(best, image[(c * height + i) * width + j]);
          hn_store_f64(y, at++, &best, 1);
        }
      }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {"pooled_shape", HONE_ATTR_INTS, true, 0, 0}, {"spatial_scale", HONE_ATTR_FLOAT, false, 0, 0}, {0}};

HN_OP(max_roi_pool) = {HN_OP_HEAD,      .op_type = "MaxRoiPool", .since = 1,
                       HN_INPUTS(2, 2), HN_OUTPUTS(1, 1),        .types = HN_TYPES_FLOAT,
                       .attrs = attrs,  .infer = infer,          .reference = reference};
