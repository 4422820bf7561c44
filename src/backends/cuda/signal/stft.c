/* STFT by its definition: windowed frames, n terms a bin. */
#include "backends/cuda/signal/fourier.h"
#include "backends/cuda/step/direct.h"
#include "backends/tactic.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const int64_t window = hn_cuda_has(s, 2) ? hone_desc_count(&s->input[2].desc) : x->dim[1];
  int64_t step, n;
  if (!hn_cuda_constant_int(s, 1, 0, &step, why) || !hn_cuda_constant_int(s, 3, window, &n, why))
    return false;
  if (!hone_dtype_is_float(x->dtype) || x->rank < 2 || n < 1 || n > INT32_MAX / 2 || step < 1)
    return hn_refuse(why, "frames of %lld points", (long long)n);
  p->text = "fourier", p->blob = hn_cuda_turns_bytes(n);
  hn_cuda_direct_define(p, "HN_FRAMES", 1);
  p->args.p[0] = n, p->args.p[1] = y->dim[2], p->args.p[2] = y->dim[1], p->args.p[3] = step;
  p->args.p[4] = x->dim[1], p->args.p[5] = x->rank == 3 ? x->dim[2] : 1;
  hn_cuda_direct_add(p, "hn_stft", hone_desc_count(y) / 2, 0);
  return true;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_cuda_direct p = {0};
  hone_reason why = {""};
  (void)m;
  if (!plan(s, &p, &why)) return hn_not_described(s, &why, error);
  hn_cuda_turns(blob, p.args.p[0], false);
  return HONE_OK;
}

HN_CUDA_DIRECT_PACKED(stft, "STFT", plan, prepack);
