/* LayerNormalization: inputs x, scale, shift; outputs the result, mean and inverse deviation. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  uint32_t axes;
  if (!hn_rows_axis(s, -1, true, &axes, why)) return false;
  if (axes == 0) return hn_refuse(why, "axis outside the rank");
  *rows = hn_rows_make(HN_ROWS_MOMENTS, axes);
  rows->place = HN_AT_ELEMENT, rows->scale = 1, rows->shift = 2, rows->mean = 1, rows->inv_std = 2;
  rows->epsilon = s->node ? hone_node_float(s->node, "epsilon", 1e-5f) : 1e-5f;
  if (s->input[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "the input is not row-major");
  return true;
}

HN_CUDA_ROWS(layer_norm, "LayerNormalization", read);
