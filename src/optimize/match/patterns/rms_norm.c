/* x / sqrt(mean(x^2) + eps) * gamma, over the last dimension */
#include "optimize/match/patterns/common.h"

#define POW "%p = Pow(%x, 2)\n"
#define MUL "%p = Mul(%x, %x)\n"
/* TensorFlow's converter makes averages of pictures of means. */
#define ROOT "%v = ReduceMean|GlobalAveragePool(%p, ?%axes)\n%e = Add(%v, !%eps)\n%q = Sqrt(%e)\n"
#define DIV "%n = Div(%x, %q)\n%y = Mul(%n, !%gamma)"
#define INV "%r = Reciprocal(%q)\n%n = Mul(%x, %r)\n%y = Mul(%n, !%gamma)"
#define ONE "%r = Div(1, %q)\n%n = Mul(%x, %r)\n%y = Mul(%n, !%gamma)"

const hone_pattern_desc hn_pattern_rms_norm = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "RMSNormalization",
    .text = POW ROOT DIV "\nor\n" POW ROOT INV "\nor\n" POW ROOT ONE "\nor\n" MUL ROOT DIV
                         "\nor\n" MUL ROOT INV "\nor\n" MUL ROOT ONE,
    .inputs = "%x %gamma",
    .accepts = hn_normalises_last,
    .attrs = hn_normalisation_attrs,
};
