/* RoiAlign: averages (or takes the largest of) bilinear samples in each cell of each region of interest. */
#include "model/ops/common/bulk.h"

/* A region that asks for more samples a cell than this, in one direction, is no sensible region. */
enum { MAX_SAMPLES = 1 << 14 };

typedef struct options {
  bool max, half_pixel;
  int64_t height, width, ratio;
  double scale;
} options;

static hone_status read_options(const hone_node *node, options *o, hone_error *error) {
  const char *mode = hone_node_string(node, "mode", "avg");
  const char *coord = hone_node_string(node, "coordinate_transformation_mode",
                                       hone_node_opset(node) < 16 ? "output_half_pixel" : "half_pixel");
  o->max = !strcmp(mode, "max");
  o->half_pixel = !strcmp(coord, "half_pixel");
  o->height = hone_node_int(node, "output_height", 1);
  o->width = hone_node_int(node, "output_width", 1);
  o->ratio = hone_node_int(node, "sampling_ratio", 0);
  o->scale = hone_node_float(node, "spatial_scale", 1);
  if (!o->max && strcmp(mode, "avg")) return hn_op_bad(node, error, "mode is \"%s\"", mode);
  if (!o->half_pixel && strcmp(coord, "output_half_pixel"))
    return hn_op_bad(node, error, "coordinate_transformation_mode is \"%s\"", coord);
  if (o->height < 1 || o->width < 1 || o->height > INT32_MAX || o->width > INT32_MAX)
    return hn_op_bad(node, error, "the output is %lld x %lld", (long long)o->height, (long long)o->width);
  if (o->ratio < 0 || o->ratio > MAX_SAMPLES)
    return hn_op_bad(node, error, "sampling_ratio is %lld", (long long)o->ratio);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *rois = io->input[1], *batch = io->input[2];
  options o;
  hone_status s = read_options(io->node, &o, error);
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

/* Four neighbours of a point and their weights; all weights are zero outside of the image. */
typedef struct corners {
  int64_t at[4];
  double weight[4];
} corners;

static void find_corners(double y, double x, int64_t height, int64_t width, corners *c) {
  *c = (corners){{0}, {0}};
  if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return;
  y = fmin(fmax(y, 0), (double)(height - 1));
  x = fmin(fmax(x, 0), (double)(width - 1));
  int64_t y0 = (int64_t)y, x0 = (int64_t)x;
  int64_t y1 = hn_min_i64(y0 + 1, height - 1), x1 = hn_min_i64(x0 + 1, width - 1);
  double ly = y - (double)y0, lx = x - (double)x0;
  const int64_t at[] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  const double w[] = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
  memcpy(c->at, at, sizeof at);
  memcpy(c->weight, w, sizeof w);
}

/* One region: start and cell size in pixels, samples a cell in both directions. */
typedef struct region {
  double y, x, cell_h, cell_w;
  int64_t samples_h, samples_w, image;
} region;

static hone_status read_region(const hone_call *call, const options *o, int64_t r, region *g,
                               hone_error *error) {
  double v[4], offset = o->half_pixel ? 0.5 : 0;
  for (int i = 0; i < 4; i++) {
    v[i] = hn_get_f64(call->input[1], r * 4 + i) * o->scale - offset;
    if (!isfinite(v[i])) return hn_op_bad(call->node, error, "region %lld is not finite", (long long)r);
  }
  double width = v[2] - v[0], height = v[3] - v[1];
  if (!o->half_pixel) { /* malformed regions count as one pixel */
    width = fmax(width, 1);
    height = fmax(height, 1);
  }
  g->x = v[0];
  g->y = v[1];
  g->cell_h = height / (double)o->height;
  g->cell_w = width / (double)o->width;
  if (!o->ratio && (g->cell_h > MAX_SAMPLES || g->cell_w > MAX_SAMPLES))
    return hn_op_bad(call->node, error, "region %lld is too large: %g x %g pixels", (long long)r, width,
                     height);
  g->samples_h =
      o->ratio ? o->ratio : (int64_t)ceil(fmax(g->cell_h, 0)); /* none where corners are exchanged */
  g->samples_w = o->ratio ? o->ratio : (int64_t)ceil(fmax(g->cell_w, 0));
  g->image = hn_get_i64(call->input[2], r);
  if (g->image < 0 || g->image >= call->input[0]->desc.dim[0])
    return hn_op_bad(call->node, error, "batch index %lld is out of range", (long long)g->image);
  return HONE_OK;
}

/* One cell for all channels, result[c] with stride 1. */
static void run_cell(const options *o, const region *g, int64_t ph, int64_t pw, const double *image,
                     int64_t channels, int64_t height, int64_t width, double *result) {
  double count = fmax((double)(g->samples_h * g->samples_w), 1);
  bool first = true;
  for (int64_t c = 0; c < channels; c++) result[c] = 0;
  for (int64_t i = 0; i < g->samples_h; i++)
    for (int64_t j = 0; j < g->samples_w; j++) {
      corners k;
      find_corners(g->y + ((double)ph + ((double)i + 0.5) / (double)g->samples_h) * g->cell_h,
                   g->x + ((double)pw + ((double)j + 0.5) / (double)g->samples_w) * g->cell_w, height, width,
                   &k);
      for (int64_t c = 0; c < channels; c++) {
        const double *plane = image + c * height * width;
        double p[4];
        for (int q = 0; q < 4; q++) p[q] = k.weight[q] * plane[k.at[q]];
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
  options o;
  region g = {0};
  hone_status s = read_options(call->node, &o, error);
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
