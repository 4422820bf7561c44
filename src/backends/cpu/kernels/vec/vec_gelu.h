/* GELU for vectors of sixteen lanes: x times a probability, which is 1/2 at 0 and 1 beyond 6. What is above
 * |x|, q(a), is a polynomial of fifth degree in each of sixteen pieces of 3/8, whose coefficients one
 * permutation of a register gives to all lanes: half of the instructions that an exponential takes. q is off
 * by 2^-25 at most, beyond 5.4375 it is taken for 0. Polynomials through the Chebyshev points of each piece,
 * computed with 40 digits, rounded to f32. */
#ifndef HN_VEC_GELU_H
#define HN_VEC_GELU_H

#include "backends/cpu/kernels/vec/vec_avx512.h"

enum { VEC_GELU_DEGREE = 5 };

typedef float vec_gelu_table[VEC_GELU_DEGREE + 1][VEC_W];

/* clang-format off */
/* by erf: q = erfc(a / sqrt 2) / 2 */
static const vec_gelu_table vec_gelu_by_erf __attribute__((aligned(64), unused)) = {
    {0x1p-1f, 0x1.6a527ap-2f, 0x1.d022p-3f, 0x1.0ad7dap-3f, 0x1.11a46ep-4f, 0x1.f20392p-6f, 0x1.90924cp-7f, 0x1.1bee6ap-8f, 0x1.61de22p-10f, 0x1.8301dp-12f, 0x1.72d988p-14f, 0x1.36ff0cp-16f, 0x1.c80834p-19f, 0x1.2415cep-21f, 0x1.46a3b4p-24f, 0},
    {-0x1.988452p-2f, -0x1.7cc794p-2f, -0x1.345d6p-2f, -0x1.b1ec62p-3f, -0x1.094086p-3f, -0x1.19bfa4p-4f, -0x1.0402ep-5f, -0x1.a0f22cp-7f, -0x1.227214p-8f, -0x1.5f90f6p-10f, -0x1.71b932p-12f, -0x1.51cfaep-14f, -0x1.0c29b4p-16f, -0x1.71e59ep-19f, -0x1.bb4aep-22f, 0},
    {-0x1.5dd7b2p-22f, 0x1.1d93c6p-4f, 0x1.ce89dap-4f, 0x1.e828fap-4f, 0x1.8de142p-4f, 0x1.0824acp-4f, 0x1.2484aep-5f, 0x1.119fccp-6f, 0x1.b3a9dap-8f, 0x1.289ddp-9f, 0x1.5a914p-11f, 0x1.5c46eap-13f, 0x1.2d8d6cp-15f, 0x1.c2829cp-18f, 0x1.22a02p-20f, 0},
    {0x1.105f9ap-4f, 0x1.b44e64p-5f, 0x1.67c342p-6f, -0x1.3357e8p-7f, -0x1.ba1494p-6f, -0x1.d88402p-6f, -0x1.6019fep-6f, -0x1.9959bep-7f, -0x1.8343c2p-8f, -0x1.306a5ap-9f, -0x1.9272c6p-11f, -0x1.c2d2d8p-13f, -0x1.ae1efep-15f, -0x1.5ecb7p-17f, -0x1.ea74a4p-20f, 0},
    {-0x1.10b09p-14f, -0x1.0dee3cp-6f, -0x1.7533f2p-6f, -0x1.191786p-6f, -0x1.902094p-8f, 0x1.61947ep-9f, 0x1.8ec862p-8f, 0x1.61d0e6p-8f, 0x1.b46c2p-9f, 0x1.a17ea6p-10f, 0x1.4332d2p-11f, 0x1.9dc242p-13f, 0x1.bb8eeap-15f, 0x1.917268p-17f, 0x1.347aa2p-19f, 0},
    {-0x1.3f2c28p-7f, -0x1.b7a22ap-8f, 0x1.0ea8acp-13f, 0x1.5751a8p-8f, 0x1.7eb0fep-8f, 0x1.aeb1eep-9f, 0x1.f2c78cp-12f, -0x1.f5ae38p-11f, -0x1.214676p-10f, -0x1.799202p-11f, -0x1.683ba8p-12f, -0x1.0e685cp-13f, -0x1.4a104ap-15f, -0x1.4d8368p-17f, -0x1.1a1b12p-19f, 0},
};
/* clang-format on */

static inline vf v_gelu_pieces(vf x, const vec_gelu_table c) {
  const vf end = v_set1(5.625f), magic = v_set1(0x1.8p23f); /* a sum with it has an integer in its low bits */
  /* |x|, but no positive infinity: that would be multiplied by 0. */
  const vf a = v_abs(v_min_number(end, x)), b = v_min_number(end, a);
  const vf at = v_fma(b, v_set1(0x1.555556p+1f), magic), r = v_fnma(v_sub(at, magic), v_set1(0.375f), b);
  const vi piece = _mm512_castps_si512(at);
  vf q = _mm512_permutexvar_ps(piece, v_load(c[VEC_GELU_DEGREE]));
  for (int i = VEC_GELU_DEGREE - 1; i >= 0; i--) q = v_fma(q, r, _mm512_permutexvar_ps(piece, v_load(c[i])));
  return v_fnma(a, q, v_max_number(v_zero(), x));
}

#endif
