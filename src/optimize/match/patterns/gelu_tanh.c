/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
#include "optimize/match/patterns/gelu.h"

/* 0.044715 x^3: a power, or products in one of the orders in which they are written. */
#define POW "%p = Pow(%x, 3)\n%q = Mul(%p, 0.044715)\n"
#define CUBE "%s = Mul(%x, %x)\n%p = Mul(%s, %x)\n%q = Mul(%p, 0.044715)\n"
#define INSIDE "%s = Mul(%x, 0.044715)\n%p = Mul(%x, %s)\n%q = Mul(%x, %p)\n"
#define SQUARE "%s = Mul(%x, %x)\n%p = Mul(%s, 0.044715)\n%q = Mul(%x, %p)\n"
#define TANH "%r = Add(%x, %q)\n%t = Mul(%r, sqrt(2/pi))\n%u = Tanh(%t)\n%a = Add(%u, 1)\n"
/* sqrt(2/pi) x (1 + 0.044715 x^2) */
#define OUTSIDE                                                                                              \
  "%b = Mul(%x, sqrt(2/pi))\n%s = Mul(%x, 0.044715)\n%p = Mul(%s, %x)\n%r = Add(%p, 1)\n"                    \
  "%t = Mul(%b, %r)\n%u = Tanh(%t)\n%a = Add(%u, 1)\n"

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_GELU_TANH;
  *alpha = *beta = 0;
  return true;
}

static void attrs(const hone_match *m, const hone_attr_sink *sink) {
  (void)m;
  sink->set_string(sink->self, "approximate", "tanh");
}

const hone_pattern_desc hn_pattern_gelu_tanh = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Gelu",
    .text = GELU(POW TANH) "\nor\n" GELU(CUBE TANH) "\nor\n" GELU(INSIDE TANH) "\nor\n" GELU(
        SQUARE TANH) "\nor\n" GELU(OUTSIDE),
    .inputs = "%x",
    .pointwise = pointwise,
    .attrs = attrs,
};
