/* Range of numbers that are known when the step is planned. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"
#include "model/ops/common/convert.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const bool real = hone_dtype_is_float(s->output[0].desc.dtype);
  for (uint32_t i = 0; i < 3; i++)
    if (!s->input[i].constant) return hn_refuse(why, "input %u is not known", i);
  for (int k = 0; k < 2; k++) {
    const hone_step_tensor *t = &s->input[2 * k]; /* start and delta */
    const hone_tensor value = {t->desc, (void *)(uintptr_t)t->constant};
    if (real)
      p->args.f[k] = hn_get_f64(&value, 0);
    else
      p->args.p[k] = hn_get_i64(&value, 0);
  }
  p->text = "fill";
  hn_cuda_direct_define(p, "HN_FLOATING", real);
  hn_cuda_direct_add(p, "hn_range", hone_desc_count(&s->output[0].desc), 0);
  return true;
}

hn_cuda_direct_tactic(range, "Range", plan);
