/* Dropout that is known to drop nothing: the identity, with a mask of ones. */

#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  if (hn_cuda_has(s, 2)) { /* training with a ratio above 0 draws numbers, on the host */
    const hone_step_tensor *t = &s->input[2];
    float ratio = 0.5f;
    if (hn_cuda_has(s, 1) && !hn_cuda_constant_f32(&s->input[1], 0, 1, &ratio))
      return hn_refuse(why, "the ratio is not known");
    if (!t->constant || t->desc.dtype != HONE_DTYPE_BOOL ||
        (*(const unsigned char *)t->constant && ratio != 0))
      return hn_refuse(why, "training, or perhaps training");
  }
  p->text = "statistics";
  hn_cuda_direct_define(p, "HN_DROPOUT", 1);
  hn_cuda_direct_add(p, "hn_dropout", hone_desc_count(&s->input[0].desc), 0);
  return true;
}

hn_cuda_direct_tactic(dropout, "Dropout", plan);
