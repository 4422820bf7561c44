/* RoiAlign: averages (or takes the largest of) bilinear samples in each cell of each region of interest. */
#include "model/ops/common/bulk.h"
#include "model/ops/detection/roi.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *rois = io->input[1], *batch = io->input[2];
  hn_roi_options o;
  hone_status s = hn_roi_options_of(io->node, &o, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s) s = hn_infer_dtype_in(io, 2, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_vector(io, 2, rois->rank == 2 ? rois->dim[0] : -1, error);
  if (s) return s;
  if (x->rank >= 0 && x->rank != 4)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 4", (int)x->rank);
  if (rois->rank >= 0 && (rois->rank != 2 || (rois->dim[1] >= 0 && rois->dim[1] != 4)))
    return hn_op_bad(io->node, error, "the regions are not a list of four coordinates");
  int64_t regions = rois->rank == 2 && rois->dim[0] >= 0 ? rois->dim[0]
                    : batch->rank == 1                   ? batch->dim[0]
                                                         : HONE_DIM_UNKNOWN;
  const int64_t dims[] = {regions, x->rank == 4 ? x->dim[1] : HONE_DIM_UNKNOWN, o.height, o.width};
  hn_infer_set(io, 0, x->dtype, 4, dims);
  return HONE_OK;
}

/* Four neighbours of a point and their weights. */
typedef struct corners {
  int64_t at[4];
  double weight[4];
} corners;

/* False: the point is outside of the image. */
static bool find_corners(const hn_roi_region *g, int64_t ph, int64_t i, int64_t pw, int64_t j, int64_t height,
                         int64_t width, corners *c) {
  hn_roi_sample y, x;
  if (!hn_roi_sample_of(g->y, g->cell_h, ph, i, g->samples_h, height, &y) ||
      !hn_roi_sample_of(g->x, g->cell_w, pw, j, g->samples_w, width, &x))
    return false;
  for (int q = 0; q < 4; q++) {
    c->at[q] = y.at[q >> 1] * width + x.at[q & 1];
    c->weight[q] = (q >> 1 ? y.part : 1 - y.part) * (q & 1 ? x.part : 1 - x.part);
  }
  return true;
}

static hone_status read_region(const hone_call *call, const hn_roi_options *o, int64_t r, hn_roi_region *g,
                               hone_error *error) {
  double corner[4];
  for (int i = 0; i < 4; i++) corner[i] = hn_get_f64(call->input[1], r * 4 + i);
  return hn_roi_region_of(call->node, o, r, corner, hn_get_i64(call->input[2], r),
                          call->input[0]->desc.dim[0], g, error);
}

/* One cell for all channels, result[c] with stride 1. */
static void run_cell(const hn_roi_options *o, const hn_roi_region *g, int64_t ph, int64_t pw,
                     const double *image, int64_t channels, int64_t height, int64_t width, double *result) {
  double count = fmax((double)(g->samples_h * g->samples_w), 1);
  bool first = true;
  for (int64_t c = 0; c < channels; c++) result[c] = 0;
  for (int64_t i = 0; i < g->samples_h; i++)
    for (int64_t j = 0; j < g->samples_w; j++) {
      corners k;
      const bool inside = find_corners(g, ph, i, pw, j, height, width, &k);
      for (int64_t c = 0; c < channels; c++) {
        const double *plane = image + c * height * width;
        double p[4] = {0};
        for (int q = 0; q < 4 && inside; q++) p[q] = k.weight[q] * plane[k.at[q]];
        /* "max" is defined over the weighted corners, not over their sum. */
        double v = o->max ? fmax(fmax(p[0], p[1]), fmax(p[2], p[3])) : (p[0] + p[1] + p[2] + p[3]) / count;
        result[c] = !o->max ? result[c] + v : first ? v : fmax(result[c], v);
      }
      first = false;
    }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  int64_t channels = x->desc.dim[1], height = x->desc.dim[2], width = x->desc.dim[3];
  hn_roi_options o;
  hn_roi_region g = {0};
  hone_status s = hn_roi_options_of(call->node, &o, error);
  if (s || hn_count(y) == 0) return s;
  if (height * width == 0) return hn_op_bad(call->node, error, "the input is empty");
  const double *data = hn_all_f64(call, x, error);
  double *cell = data ? hn_scratch(call, channels, sizeof *cell, error) : NULL;
  if (!cell) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < y->desc.dim[0]; r++) {
    if ((s = read_region(call, &o, r, &g, error))) return s;
    for (int64_t ph = 0; ph < o.height; ph++)
      for (int64_t pw = 0; pw < o.width; pw++) {
        if (call->stopped(call)) return HONE_ERROR_CANCELLED;
        run_cell(&o, &g, ph, pw, data + g.image * channels * height * width, channels, height, width, cell);
        for (int64_t c = 0; c < channels; c++)
          hn_set_f64(y, ((r * channels + c) * o.height + ph) * o.width + pw, cell[c]);
      }
  }
  return HONE_OK;
}

/* Four samples a cell when their number depends on the regions. */
static void cost(const hone_infer *io, hone_cost *cost) {
  double ratio = (double)hone_node_int(io->node, "sampling_ratio", 0);
  double samples = ratio > 0 ? ratio * ratio : 4;
  hn_cost_flops(cost, io->output[0] ? 8 * samples * hn_known_count(io->output[0]) : 0);
}

static const hone_attr_desc attrs[] = {{"coordinate_transformation_mode", HONE_ATTR_STRING, false, 16, 0},
                                       {"mode", HONE_ATTR_STRING, false, 0, 0},
                                       {"output_height", HONE_ATTR_INT, false, 0, 0},
                                       {"output_width", HONE_ATTR_INT, false, 0, 0},
                                       {"sampling_ratio", HONE_ATTR_INT, false, 0, 0},
                                       {"spatial_scale", HONE_ATTR_FLOAT, false, 0, 0},
                                       {0}};

HN_OP(roi_align) = {HN_OP_HEAD,       .op_type = "RoiAlign",   .since = 10,    HN_INPUTS(3, 3),
                    HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
                    .cost = cost,     .reference = reference};
