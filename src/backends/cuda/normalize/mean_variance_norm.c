/* MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over the given axes, [0, 2, 3] by default. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  static const int64_t usual[] = {0, 2, 3};
  const int32_t rank = s->input[0].desc.rank;
  size_t n = 0;
  const int64_t *list = hone_node_ints(s->node, "axes", &n);
  if (!n) list = usual, n = 3;
  uint32_t axes = 0;
  if (hone_node_int(s->node, "across_channels", 0) || !hone_node_int(s->node, "normalize_variance", 1))
    return hn_refuse(why, "a form from before opset 9");
  for (size_t i = 0; i < n; i++) {
    const int64_t axis = list[i] < 0 ? list[i] + rank : list[i];
    if (axis < 0 || axis >= rank) return hn_refuse(why, "axis outside the rank");
    axes |= 1u << axis;
  }
  *rows = hn_rows_make(HN_ROWS_STANDARD, axes);
  rows->epsilon = 1e-9f;
  return true;
}

HN_CUDA_ROWS(mean_variance_norm, "MeanVarianceNormalization", read);
