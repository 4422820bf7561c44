/* x tanh(log(1 + exp(x))) */
#include "optimize/match/patterns/common.h"

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_MISH;
  *alpha = *beta = 0;
  return true;
}

const hone_pattern_desc hn_pattern_mish = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Mish",
    .text = "%s = Softplus(%x)\n%t = Tanh(%s)\n%y = Mul(%x, %t)",
    .inputs = "%x",
    .pointwise = pointwise,
};
