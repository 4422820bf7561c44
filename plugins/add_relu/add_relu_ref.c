/* The sum is rounded as Add rounds it, so that one step and two agree bit for bit: rounding and Relu commute.
 */
#include "add_relu_op.h"

void add_relu_ref(const add_relu_attrs *attrs, const hone_array in[2], const hone_array out[1]) {
  (void)attrs;
  for (int64_t i = 0; i < out[0].count; i++) {
    const double s = in[0].data[i] + in[1].data[i];
    out[0].data[i] = s < 0 ? 0 : s; /* NaN stays */
  }
}
