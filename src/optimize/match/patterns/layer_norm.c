/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, over the last dimension */
#include "optimize/match/patterns/common.h"

#define CENTRE "%mu = ReduceMean(%x, ?%axes)\n%d = Sub(%x, %mu)\n"
#define POW "%p = Pow(%d, 2)\n"
#define MUL "%p = Mul(%d, %d)\n"
#define SCALE                                                                                                \
  "%v = ReduceMean(%p, ?%axes2)\n%e = Add(%v, !%eps)\n%q = Sqrt(%e)\n%n = Div(%d, %q)\n%g = Mul(%n, "        \
  "!%gamma)"
#define SHIFT "\n%y = Add(%g, !%beta)"

const hone_pattern_desc hn_pattern_layer_norm = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "LayerNormalization",
    .text = CENTRE POW SCALE SHIFT "\nor\n" CENTRE MUL SCALE SHIFT "\nor\n" CENTRE POW SCALE
                                   "\nor\n" CENTRE MUL SCALE,
    .inputs = "%x %gamma %beta",
    .accepts = hn_normalises_last,
    .attrs = hn_normalisation_attrs,
};
