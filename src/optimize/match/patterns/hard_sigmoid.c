/* clip(x + 3, 0, 6) / 6 = clip(x / 6 + 1/2, 0, 1) */
#include "optimize/match/patterns/common.h"

#define CLIP "%a = Add(%x, 3)\n%c = Clip(%a, ?%lo, ?%hi)\n"

static bool accepts(const hone_match *m, hone_reason *why) { return hn_clips_to(m, 0, 6, why); }

static bool pointwise(const hone_match *m, hone_pw_op *op, float *alpha, float *beta) {
  (void)m;
  *op = HONE_PW_HARDSIGMOID;
  *alpha = 1.0f / 6;
  *beta = 0.5f;
  return true;
}

static void attrs(const hone_match *m, const hone_attr_sink *sink) {
  (void)m;
  sink->set_float(sink->self, "alpha", 1.0f / 6);
  sink->set_float(sink->self, "beta", 0.5f);
}

const hone_pattern_desc hn_pattern_hard_sigmoid = {
    HONE_DESC_HEAD(hone_pattern_desc),
    .name = "HardSigmoid",
    .text = CLIP "%y = Div(%c, 6)\nor\n" CLIP "%y = Mul(%c, 1/6)",
    .inputs = "%x",
    .accepts = accepts,
    .pointwise = pointwise,
    .attrs = attrs,
};
