/* 0.5 x (1 + erf(x / sqrt 2)) in the orders in which exporters write it. */
#include "optimize/match/patterns/gelu.h"

#define DIV "%d = Div(%x, sqrt(2))\n"
#define MUL "%d = Mul(%x, sqrt(1/2))\n"
#define ERF "%e = Erf(%d)\n%a = Add(%e, 1)\n"

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_GELU_ERF;
  *alpha = *beta = 0;
  return true;
}

const hone_pattern_desc hn_pattern_gelu_erf = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Gelu",
    .text = GELU(DIV ERF) "\nor\n" GELU(MUL ERF),
    .inputs = "%x",
    .pointwise = pointwise,
};
