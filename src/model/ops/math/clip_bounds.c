#include "model/ops/math/clip_bounds.h"

#include <float.h>

void hn_clip_bounds(const hone_node *node, const hone_tensor *low, const hone_tensor *high, double *lo,
                    double *hi) {
  if (hone_node_opset(node) < 11) {
    *lo = (double)hone_node_float(node, "min", -FLT_MAX);
    *hi = (double)hone_node_float(node, "max", FLT_MAX);
  } else {
    *lo = low ? hn_get_f64(low, 0) : -INFINITY;
    *hi = high ? hn_get_f64(high, 0) : INFINITY;
  }
  if (isnan(*lo)) *lo = -INFINITY;
  if (isnan(*hi)) *hi = INFINITY;
}
