/* f32 to e4m3: 4 bits of mantissa with the hidden one, the largest number 448, no infinity. Ties to even; what is larger
 * becomes the largest, NaN stays NaN. */
#ifndef HN_E4M3_CUH
#define HN_E4M3_CUH

#include "prelude.cuh"

#define HN_E4M3_MOST 448.0f

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
HN_FN u32 hn_e4m3x2(float low, float high) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
  return r;
}
#else
HN_FN u32 hn_e4m3(float x) {
  const u32 sign = hn_bits(x) >> 24 & 0x80;
  if (x != x) return sign | 0x7f;
  const float size = fminf(fabsf(x), HN_E4M3_MOST);
  u32 u = hn_bits(size);
  /* Below 2^-6 steps of 2^-9: added to this, the bits of a number say how many. */
  if (size < 0x1p-6f) return sign | (hn_bits(size + 0x1p14f) - hn_bits(0x1p14f));
  u += 0x7ffff + (u >> 20 & 1);
  return sign | ((u >> 20) - (120 << 3));
}
HN_FN u32 hn_e4m3x2(float low, float high) { return hn_e4m3(low) | hn_e4m3(high) << 8; }
#endif

#endif
