/* x sigmoid(beta x): SiLU for beta = 1, Swish otherwise */
#include "optimize/match/patterns/common.h"

static double beta_of(const hone_match *m) {
  double beta = 1;
  hn_constant_scalar(hn_match_get(m, "beta"), &beta);
  return beta;
}

static bool accepts(const hone_match *m, hone_reason *why) {
  const hn_value *beta = hn_match_get(m, "beta");
  double v;
  return !beta || hn_constant_scalar(beta, &v) ||
         HN_REFUSE(why, "'%.80s' is more than one number", beta->name);
}

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  *op = HONE_PW_SILU;
  *alpha = (float)beta_of(m);
  *beta = 0;
  return true;
}

static void attrs(const hone_match *m, const hone_attr_sink *sink) {
  sink->set_float(sink->self, "alpha", (float)beta_of(m));
}

const hone_pattern_desc hn_pattern_silu = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "Swish",
    .text = "%s = Sigmoid(%x)\n%y = Mul(%x, %s)\n"
            "or\n%b = Mul(%x, !%beta)\n%s = Sigmoid(%b)\n%y = Mul(%x, %s)",
    .inputs = "%x",
    .accepts = accepts,
    .pointwise = pointwise,
    .attrs = attrs,
};
