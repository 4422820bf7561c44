/* RoiAlign's attributes, regions and samples, as the reference and tactics read them. */
#ifndef HN_MODEL_OPS_ROI_H
#define HN_MODEL_OPS_ROI_H

#include "model/ops/common/op.h"

/* A region that asks for more samples a cell than this, in one direction, is no sensible region. */
enum { HN_ROI_SAMPLES = 1 << 14 };

typedef struct hn_roi_options {
  bool max, half_pixel;
  int64_t height, width, ratio; /* cells; samples of a cell in one direction, 0: by its size */
  double scale;
} hn_roi_options;

hone_status hn_roi_options_of(const hone_node *node, hn_roi_options *o, hone_error *error);

/* One region: start and cell size in pixels, samples a cell in both directions. Cells are negative where
 * corners are exchanged; there are no samples then unless the ratio says so. */
typedef struct hn_roi_region {
  double y, x, cell_h, cell_w;
  int64_t samples_h, samples_w, image;
} hn_roi_region;

/* Region r of an image of `images`; corner: x, y of the first and of the last one, as they are given. */
hone_status hn_roi_region_of(const hone_node *node, const hn_roi_options *o, int64_t r,
                             const double corner[4], int64_t image, int64_t images, hn_roi_region *g,
                             hone_error *error);

/* Two neighbours along an axis, and what of a sample is the second one's. */
typedef struct hn_roi_sample {
  int64_t at[2];
  double part;
} hn_roi_sample;

/* Sample i of `samples` in cell k, along an axis of `size` pixels; false: it is outside of the image. */
bool hn_roi_sample_of(double start, double cell, int64_t k, int64_t i, int64_t samples, int64_t size,
                      hn_roi_sample *s);

#endif
