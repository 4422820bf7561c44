#include "backends/cuda/libraries/library_step.h"

#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/half.h"
#include "base/integers.h"

int64_t hn_library_padded(int64_t channels, hone_dtype dtype) {
  const int64_t vector = 16 / (int64_t)hone_dtype_size(dtype);
  return hn_fill_up(channels, vector);
}

size_t hn_library_workspace(const hone_step *s) {
  const double wanted = 4 * hn_cuda_bytes(s);
  const size_t least = (size_t)2 << 20, most = (size_t)32 << 20;
  return wanted < (double)least ? least : wanted > (double)most ? most : (size_t)wanted;
}

bool hn_keeps_zero(hone_pw_op act, float alpha, float beta) {
  switch (act) {
  case HONE_PW_SIGMOID:
  case HONE_PW_SOFTPLUS: return false;
  case HONE_PW_CLIP: return alpha <= 0 && beta >= 0;
  case HONE_PW_HARDSIGMOID: return beta <= 0;
  case HONE_PW_RELU:
  case HONE_PW_LEAKYRELU:
  case HONE_PW_ELU:
  case HONE_PW_SILU:
  case HONE_PW_TANH:
  case HONE_PW_GELU_ERF:
  case HONE_PW_GELU_TANH:
  case HONE_PW_HARDSWISH:
  case HONE_PW_MISH: return true;
  default: return false;
  }
}

void hn_library_put(void *to, int64_t at, hone_dtype dtype, float v) {
  if (dtype == HONE_DTYPE_F32)
    ((float *)to)[at] = v;
  else
    ((uint16_t *)to)[at] = dtype == HONE_DTYPE_F16 ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
}

void hn_library_store(const hone_step_tensor *from, int64_t first, int64_t n, void *to, int64_t at,
                      hone_dtype dtype) {
  enum { PIECE = 256 };
  float f[PIECE];
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t count = n - i < PIECE ? n - i : PIECE;
    hn_cuda_constant_f32(from, first + i, count, f);
    for (int64_t k = 0; k < count; k++) hn_library_put(to, at + i + k, dtype, f[k]);
  }
}

/* Rate at which operands of this type are multiplied, FLOP/s. */
static double rate_of(const hone_machine *m, hone_dtype dtype, hone_math math) {
  if (dtype == HONE_DTYPE_I8 || dtype == HONE_DTYPE_F8E4M3FN)
    return 2 * (m->half_flops > 0 ? m->half_flops : 1e13);
  if (dtype != HONE_DTYPE_F32) return m->half_flops > 0 ? m->half_flops : 1e13;
  if (math >= HONE_MATH_TF32 && m->tf32_flops > 0) return m->tf32_flops;
  return m->peak_flops > 0 ? m->peak_flops : 1e12;
}

bool hn_library_exact(hone_dtype dtype, hone_math math) {
  return dtype == HONE_DTYPE_F32 && math < HONE_MATH_TF32;
}

/* Measured on one H200: Gelu behind products of 5 to 19 million values 2.5 ps a value beyond the product,
 * Swish 1.3: the compiled epilogue does nothing else meanwhile. */
double hn_library_functions(const hone_step *s, const hone_machine *m) {
  const double values = (double)hone_desc_count(&s->output[0].desc);
  return 0.2e-12 * 132 / (m->processors ? m->processors : 132) * values * hn_cuda_epilogue_instructions(s);
}

/* Beside the roofs: what a kernel takes before and after its work, and its way along k, which is one after
 * the other (measured on one H200: 1.7 us, and 0.1 us for 64 elements of k; 2.1 us without tensor cores). */
double hn_library_seconds(const hone_machine *machine, hone_dtype dtype, hone_math math, double m, double n,
                          double k, double bytes, double efficiency) {
  const double dram = machine->dram_bytes > 0 ? machine->dram_bytes : 1e12;
  const double compute = 2 * m * n * k / (rate_of(machine, dtype, math) * efficiency);
  const double memory = bytes / (dram * 0.75),
               along = k / 64 * (hn_library_exact(dtype, math) ? 2.1e-6 : 0.1e-6);
  double most = compute > memory ? compute : memory;
  if (along > most) most = along;
  return most + 1.7e-6 + machine->launch_s;
}
