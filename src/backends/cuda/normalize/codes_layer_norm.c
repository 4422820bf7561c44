/* QLinearLayerNormalization: LayerNormalization that dequantises what it reads, or quantises what it makes,
 * or both; inputs as qlinear.h has them. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"
#include "optimize/step/qlinear.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  uint32_t axes;
  if (!hn_rows_axis(s, -1, true, &axes, why)) return false;
  if (axes == 0) return hn_refuse(why, "axis outside the rank");
  *rows = hn_rows_make(HN_ROWS_MOMENTS, axes);
  rows->place = HN_AT_ELEMENT, rows->scale = HN_QNORM_SCALE, rows->shift = HN_QNORM_SHIFT;
  rows->x_scale = HN_QNORM_X_SCALE, rows->x_zero = HN_QNORM_X_ZERO;
  rows->y_scale = HN_QNORM_Y_SCALE, rows->y_zero = HN_QNORM_Y_ZERO;
  rows->epsilon = s->node ? hone_node_float(s->node, "epsilon", 1e-5f) : 1e-5f;
  if (s->input[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "the input is not row-major");
  return true;
}

HN_CUDA_ROWS(codes_layer_norm, "QLinearLayerNormalization", read);
