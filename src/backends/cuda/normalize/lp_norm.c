/* LpNormalization: divides by the L1 or L2 norm along one axis; a zero norm leaves zeros. */
#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

static bool read(const hone_step *s, hn_rows *rows, hone_reason *why) {
  uint32_t axes;
  if (!hn_rows_axis(s, -1, false, &axes, why)) return false;
  *rows = hn_rows_make(hone_node_int(s->node, "p", 2) == 1 ? HN_ROWS_NORM1 : HN_ROWS_NORM2, axes);
  return true;
}

HN_CUDA_ROWS(lp_norm, "LpNormalization", read);
