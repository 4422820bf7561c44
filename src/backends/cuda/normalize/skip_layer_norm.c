/* SkipLayerNormalization: LayerNormalization of input + skip + bias. Inputs input, skip, gamma, beta, bias;
 * outputs the result, mean, inverse deviation and the sum. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank < 1) return hn_refuse(why, "a scalar");
  *rows = hn_rows_make(HN_ROWS_MOMENTS, 1u << (x->rank - 1));
  rows->place = HN_AT_ELEMENT, rows->scale = 2, rows->shift = 3, rows->skip = 1, rows->bias = 4;
  rows->mean = 1, rows->inv_std = 2, rows->sum = 3;
  rows->epsilon = s->node ? hone_node_float(s->node, "epsilon", 1e-12f) : 1e-12f;
  if (x->layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "the input is not row-major");
  return true;
}

HN_CUDA_ROWS(skip_layer_norm, "SkipLayerNormalization", read);
