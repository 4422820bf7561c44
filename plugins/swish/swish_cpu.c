/* Swish on the processor: n elements, which other threads' pieces lie around. Compiled once for each
 * instruction set; hone/kernel.h says what a hone_vf can do. */
#include "swish_op.h"

void HONE_KERNEL(swish)(const swish_attrs *attrs, const float *x, float *y, int64_t n) {
  const hone_vf beta = hone_all(attrs->beta);
  for (int64_t i = 0; i < n; i += HONE_LANES) {
    const int k = hone_lanes(n - i); /* the last ones may be fewer */
    hone_ahead(x + i);
    hone_ahead_written(y + i);
    const hone_vf v = hone_load(x + i, k);
    hone_store(y + i, v * hone_sigmoid(beta * v), k);
  }
}
