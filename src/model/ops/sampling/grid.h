/* What a grid's coordinate means: which elements of an axis, with which weights. */
#ifndef HN_MODEL_OPS_SAMPLING_GRID_H
#define HN_MODEL_OPS_SAMPLING_GRID_H

#include "model/ops/common/op.h"

enum { HN_GRID_MOST = 4 }; /* taps */
typedef enum { HN_GRID_NEAREST, HN_GRID_LINEAR, HN_GRID_CUBIC } hn_grid_mode;
typedef enum { HN_GRID_ZEROS, HN_GRID_BORDER, HN_GRID_REFLECTION } hn_grid_padding;

typedef struct hn_grid {
  hn_grid_mode mode;
  hn_grid_padding pad;
  bool align;
} hn_grid;

/* The taps of one axis for one point; index < 0: a zero of the padding. */
typedef struct hn_grid_taps {
  int32_t n;
  int64_t index[HN_GRID_MOST];
  double weight[HN_GRID_MOST];
} hn_grid_taps;

/* The attributes of a GridSample; HONE_ERROR_INPUT for words that are none. */
hone_status hn_grid_read(const hone_node *node, hn_grid *grid, hone_error *error);
/* Where coordinate g falls on an axis of `size`, in f32. */
static inline float hn_grid_place(const hn_grid *grid, float g, float size) {
  return grid->align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
}
void hn_grid_find(const hn_grid *grid, float g, int64_t n, hn_grid_taps *taps);

#endif
