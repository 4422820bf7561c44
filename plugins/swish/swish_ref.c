/* What Swish computes, in f64 and without any haste: kernels are tested against this. */
#include "swish_op.h"

void swish_ref(const swish_attrs *attrs, const hone_array in[1], const hone_array out[1]) {
  for (int64_t i = 0; i < out[0].count; i++) {
    const double x = in[0].data[i];
    out[0].data[i] = x / (1 + exp(-(double)attrs->beta * x));
  }
}
