/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, over the last dimension */
#include "optimize/match/patterns/common.h"

#define CENTRE "%mu = ReduceMean(%x, ?%axes)\n%d = Sub(%x, %mu)\n"
#define POW "%p = Pow(%d, 2)\n"
#define MUL "%p = Mul(%d, %d)\n"
#define SCALE                                                                                                \
  "%v = ReduceMean(%p, ?%axes2)\n%e = Add(%v, !%eps)\n%q = Sqrt(%e)\n%n = Div(%d, %q)\n%g = Mul(%n, "        \
  "!%gamma)"
#define SHIFT "\n%y = Add(%g, !%beta)"
/* As TensorFlow writes it: x s + (beta - mean s), s being gamma / sqrt(variance + eps). Its converter makes
 * averages of pictures of the means. */
#define MEAN "ReduceMean|GlobalAveragePool"
#define MOMENTS                                                                                              \
  "%mu = " MEAN "(%x, ?%axes)\n%d = Sub(%x, %mu)\n%p = Mul(%d, %d)\n%v = " MEAN "(%p, ?%axes2)\n"            \
  "%e = Add(%v, !%eps)\n%q = Sqrt(%e)\n%r = Reciprocal(%q)\n%s = Mul(%r, !%gamma)\n"
#define APART "%m = Mul(%mu, %s)\n%b = Sub(!%beta, %m)\n%a = Mul(%x, %s)\n%y = Add(%a, %b)"
#define NO_SHIFT "%m = Mul(%mu, %s)\n%b = Neg(%m)\n%a = Mul(%x, %s)\n%y = Add(%a, %b)"
#define CENTRED "%g = Mul(%d, %s)"

const hone_pattern_desc hn_pattern_layer_norm = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "LayerNormalization",
    .text = CENTRE POW SCALE SHIFT "\nor\n" CENTRE MUL SCALE SHIFT "\nor\n" CENTRE POW SCALE
                                   "\nor\n" CENTRE MUL SCALE "\nor\n" MOMENTS APART "\nor\n" MOMENTS NO_SHIFT
                                   "\nor\n" MOMENTS CENTRED SHIFT "\nor\n" MOMENTS CENTRED,
    .inputs = "%x %gamma %beta",
    .accepts = hn_normalises_last,
    .attrs = hn_normalisation_attrs,
};
