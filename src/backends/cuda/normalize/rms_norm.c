/* RMSNormalization: x / sqrt(mean(x^2) + epsilon) * scale over trailing axes. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  uint32_t axes;
  if (!hn_rows_axis(s, -1, true, &axes, why)) return false;
  if (axes == 0) return hn_refuse(why, "axis outside the rank");
  *rows = hn_rows_make(HN_ROWS_RMS, axes);
  rows->place = HN_AT_ELEMENT, rows->scale = 1;
  rows->epsilon = s->node ? hone_node_float(s->node, "epsilon", 1e-5f) : 1e-5f;
  if (s->input[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "the input is not row-major");
  int64_t n = 1;
  for (int32_t i = 0; i < s->input[0].desc.rank; i++)
    if (axes >> i & 1) n *= s->input[0].desc.dim[i];
  if (hone_desc_known(&s->input[1].desc) && hone_desc_count(&s->input[1].desc) != n)
    return hn_refuse(why, "scale has not one value an element of a row");
  return true;
}

HN_CUDA_ROWS(rms_norm, "RMSNormalization", read);
