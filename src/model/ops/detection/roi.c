#include "model/ops/detection/roi.h"

hone_status hn_roi_options_of(const hone_node *node, hn_roi_options *o, hone_error *error) {
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
  if (o->ratio < 0 || o->ratio > HN_ROI_SAMPLES)
    return hn_op_bad(node, error, "sampling_ratio is %lld", (long long)o->ratio);
  return HONE_OK;
}

hone_status hn_roi_region_of(const hone_node *node, const hn_roi_options *o, int64_t r,
                             const double corner[4], int64_t image, int64_t images, hn_roi_region *g,
                             hone_error *error) {
  double v[4], offset = o->half_pixel ? 0.5 : 0;
  for (int i = 0; i < 4; i++) {
    v[i] = corner[i] * o->scale - offset;
    if (!isfinite(v[i])) return hn_op_bad(node, error, "region %lld is not finite", (long long)r);
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
  if (!o->ratio && (g->cell_h > HN_ROI_SAMPLES || g->cell_w > HN_ROI_SAMPLES))
    return hn_op_bad(node, error, "region %lld is too large: %g x %g pixels", (long long)r, width, height);
  g->samples_h = o->ratio ? o->ratio : (int64_t)ceil(fmax(g->cell_h, 0));
  g->samples_w = o->ratio ? o->ratio : (int64_t)ceil(fmax(g->cell_w, 0));
  g->image = image;
  if (image < 0 || image >= images)
    return hn_op_bad(node, error, "batch index %lld is out of range", (long long)image);
  return HONE_OK;
}

bool hn_roi_sample_of(double start, double cell, int64_t k, int64_t i, int64_t samples, int64_t size,
                      hn_roi_sample *s) {
  double at = start + ((double)k + ((double)i + 0.5) / (double)samples) * cell;
  if (!(at >= -1 && at <= (double)size)) return false;
  at = fmin(fmax(at, 0), (double)(size - 1));
  s->at[0] = (int64_t)at;
  s->at[1] = s->at[0] + 1 < size ? s->at[0] + 1 : size - 1;
  s->part = at - (double)s->at[0];
  return true;
}
