/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
#include "optimize/match/patterns/gelu.h"

#define POW "%p = Pow(%x, 3)\n"
#define CUBE "%s = Mul(%x, %x)\n%p = Mul(%s, %x)\n"
#define TANH                                                                                                 \
  "%q = Mul(%p, 0.044715)\n%r = Add(%x, %q)\n%t = Mul(%r, sqrt(2/pi))\n%u = Tanh(%t)\n%a = Add(%u, 1)\n"

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
    .text = GELU(POW TANH) "\nor\n" GELU(CUBE TANH),
    .inputs = "%x",
    .pointwise = pointwise,
    .attrs = attrs,
};
