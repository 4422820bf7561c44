/* Resampling as Resize and Upsample define it: separable, one table of source indices and weights for each
 * axis. Coordinates are computed in f32, as other runtimes do, so that nearest-neighbour ties fall the same
 * way. */
#ifndef HN_MODEL_OPS_RESAMPLE_H
#define HN_MODEL_OPS_RESAMPLE_H

#include "model/ops/common/bulk.h"

typedef enum { HN_RESIZE_NEAREST, HN_RESIZE_LINEAR, HN_RESIZE_CUBIC } hn_resize_mode;
typedef enum {
  HN_COORD_HALF_PIXEL,
  HN_COORD_HALF_PIXEL_SYMMETRIC,
  HN_COORD_PYTORCH_HALF_PIXEL,
  HN_COORD_ALIGN_CORNERS,
  HN_COORD_ASYMMETRIC,
  HN_COORD_TF_CROP,
  HN_COORD_TF_HALF_PIXEL_NN
} hn_resize_coord;
typedef enum {
  HN_NEAREST_ROUND_PREFER_FLOOR,
  HN_NEAREST_ROUND_PREFER_CEIL,
  HN_NEAREST_FLOOR,
  HN_NEAREST_CEIL,
  HN_NEAREST_UNNAMED /* before opset 11: down when enlarging, up when reducing */
} hn_resize_nearest;

/* What a Resize or Upsample node means, for any opset. */
typedef struct hn_resize {
  hn_resize_mode mode;
  hn_resize_coord coord;
  hn_resize_nearest nearest;
  float cubic_a, extrapolation;
  bool exclude_outside, antialias;
  int32_t rank;
  int64_t in[HONE_MAX_RANK], out[HONE_MAX_RANK];
  float scale[HONE_MAX_RANK];
  float length[HONE_MAX_RANK]; /* out before rounding: scale * in, where scales were given */
  float start[HONE_MAX_RANK], end[HONE_MAX_RANK]; /* region of tf_crop_and_resize */
} hn_resize;

/* Reads attributes and, where the values are known, roi, scales and sizes; *known says whether all sizes came
 * out. input[] and value[] are the node's inputs (value entries NULL where unknown). x's rank must be known.
 */
hone_status hn_resize_init(hn_resize *r, const hone_node *node, const hone_tensor_desc *const *input,
                           const hone_tensor *const *value, uint32_t n_inputs, bool *known,
                           hone_error *error);

/* Sources of one axis: output o is the sum of weight[o * taps + t] * in[index[o * taps + t]], t < taps.
 * Indices are within the input. outside[o]: the whole output element is the extrapolation value. */
typedef struct hn_resample_axis {
  int64_t taps;
  int64_t *index;
  float *weight;
  bool *outside;
  bool identity; /* out == in and every element is its own source */
} hn_resample_axis;

/* Number of taps of an axis, to size the tables with. */
int64_t hn_resample_taps(const hn_resize *r, int32_t axis);
/* True where no element of the axis moves, but for roundings of coordinates. A scale may leave the length and
 * yet move what lies along it, and so do coordinates that end half an element behind. */
bool hn_resample_is_still(const hn_resize *r, int32_t axis);
/* Fills the tables, which the caller has allocated: index and weight out[axis] * taps, outside out[axis]. */
void hn_resample_fill(const hn_resize *r, int32_t axis, hn_resample_axis *table);

hone_status hn_resize_infer(const hone_infer *io, hone_error *error);
void hn_resize_cost(const hone_infer *io, hone_cost *cost);
hone_status hn_resize_reference(hone_call *call, hone_error *error);

#endif
