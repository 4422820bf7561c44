#include "backends/cpu/conv/conv_packed.h"

#include "backends/cpu/kernels/features.h"
#include "base/mem.h"

bool hn_conv_packed_of(const hone_step *s, const hone_machine *m, hn_conv_packed *p, hn_conv_attr *a,
                       hone_reason *why) {
  p->isa = hn_isa_of(m->isa);
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  if (!s->input[1].constant) return hn_refuse(why, "weights are known in the run only");
  return hn_epilogue_accepts(s, p->isa, false, why);
}

void hn_conv_packed_place(hn_conv_packed *p, size_t head, size_t floats, size_t scratch) {
  p->weights_at = (int64_t)hn_round_up(head, 64);
  p->bytes = p->weights_at + (int64_t)(floats * sizeof(float));
  p->scratch = scratch;
}
