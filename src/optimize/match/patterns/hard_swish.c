/* x clip(x / 6 + 1/2, 0, 1), also as x clip(x + 3, 0, 6) / 6 */
#include "optimize/match/patterns/common.h"

#define CLIP "%a = Add(%x, 3)\n%c = Clip(%a, ?%lo, ?%hi)\n"

static bool accepts(const hone_match *m, hone_reason *why) { return hn_clips_to(m, 0, 6, why); }

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_HARDSWISH;
  *alpha = 1.0f / 6;
  *beta = 0.5f;
  return true;
}

const hone_pattern_desc hn_pattern_hard_swish = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "HardSwish",
    .text = "%h = HardSigmoid(%x) {alpha=0.166666667, beta=0.5}\n%y = Mul(%x, %h)\n"
            "or\n" CLIP "%m = Mul(%x, %c)\n%y = Div(%m, 6)\n"
            "or\n" CLIP "%m = Mul(%x, %c)\n%y = Mul(%m, 1/6)\n"
            "or\n" CLIP "%m = Div(%c, 6)\n%y = Mul(%x, %m)\n"
            "or\n" CLIP "%m = Mul(%c, 1/6)\n%y = Mul(%x, %m)",
    .inputs = "%x",
    .accepts = accepts,
    .pointwise = pointwise,
};
