/* 0.5 x (1 + erf(x / sqrt 2)) in the orders in which exporters write it. */
#include "optimize/match/patterns/common.h"

#define DIV "%d = Div(%x, sqrt(2))\n"
#define MUL "%d = Mul(%x, sqrt(1/2))\n"
#define ERF "%e = Erf(%d)\n%a = Add(%e, 1)\n"
#define LAST "%m = Mul(%x, %a)\n%y = Mul(%m, 0.5)"
#define FIRST "%m = Mul(%x, 0.5)\n%y = Mul(%m, %a)"
#define INNER "%m = Mul(%a, 0.5)\n%y = Mul(%x, %m)"

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_GELU_ERF;
  *alpha = *beta = 0;
  return true;
}

const hone_pattern_desc hn_pattern_gelu_erf = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Gelu",
    .text = DIV ERF LAST "\nor\n" DIV ERF FIRST "\nor\n" DIV ERF INNER "\nor\n" MUL ERF LAST
                         "\nor\n" MUL ERF FIRST "\nor\n" MUL ERF INNER,
    .inputs = "%x",
    .pointwise = pointwise,
};
