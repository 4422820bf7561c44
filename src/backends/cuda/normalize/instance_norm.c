/* InstanceNormalization: every plane by its own moments, then scale and shift by channel. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank < 3) return hn_refuse(why, "no spatial dimensions");
  *rows = hn_rows_make(HN_ROWS_MOMENTS, ((1u << x->rank) - 1u) & ~3u);
  rows->place = HN_AT_PLANE, rows->planes = x->dim[1] > 0 ? x->dim[1] : 1, rows->scale = 1, rows->shift = 2;
  rows->epsilon = hone_node_float(s->node, "epsilon", 1e-5f);
  return true;
}

HN_CUDA_ROWS(instance_norm, "InstanceNormalization", read);
