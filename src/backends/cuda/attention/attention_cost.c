#include "backends/cuda/attention/attention_cost.h"

#include "backends/cuda/step/step.h"

double hn_cuda_attention_seconds(const hone_step *s, const hone_machine *m, double flops, hone_dtype type,
                                 bool split3) {
  const double rate = type != HONE_DTYPE_F32 ? m->half_flops : m->tf32_flops / (split3 ? 3 : 1);
  return hn_cuda_seconds(m, flops, rate, hn_cuda_bytes(s), 0.3);
}
