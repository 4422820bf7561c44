/* Sin: sine of radians. */
#include "base/integers.h"
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

static void loop_f32(const void *from, void *to, int64_t n, const double *param) {
  (void)param;
  for (int64_t i = 0; i < n; i += HN_ANGLE_BLOCK) {
    const int64_t some = hn_min(HN_ANGLE_BLOCK, n - i);
    const float *x = (const float *)from + i;
    float *y = (float *)to + i;
    if (hn_angles_are_small(x, some))
      for (int64_t k = 0; k < some; k++) y[k] = x[k] == 0 ? x[k] : hn_angle_sine(x[k], 0); /* -0 stays -0 */
    else
      for (int64_t k = 0; k < some; k++) y[k] = sinf(x[k]);
  }
}
HN_UNARY_LOOP(f64, double, double, sin(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(sin, "Sin", 7, HN_TYPES_FLOAT, NULL);
