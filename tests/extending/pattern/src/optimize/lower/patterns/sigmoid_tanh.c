/* 2 sigmoid(2 x) - 1 is tanh(x) */
#include "optimize/lower/patterns/common.h"

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_TANH;
  *alpha = *beta = 0;
  return true;
}

const hone_pattern_desc hn_pattern_sigmoid_tanh = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Tanh",
    .text = "%d = Mul(%x, 2)\n%s = Sigmoid(%d)\n%m = Mul(%s, 2)\n%y = Sub(%m, 1)",
    .inputs = "%x",
    .pointwise = pointwise,
};
