/* SiLU for vectors of sixteen lanes where the result becomes a code: x times a probability, which is 1/2 at 0
 * and 1 far above it. What is above |x|, q(a) = 1 / (1 + exp(a)), is a polynomial of fifth degree in each of
 * 32 pieces of 9/16, whose coefficients one permutation of two registers gives to all lanes: two thirds of
 * the time of an exponential and a division. q is off by 2^-24.8 at most, beyond 17.16 it is taken for 0.
 * Polynomials through the Chebyshev points of each piece, rounded to f32. */
#ifndef HN_VEC_SILU_H
#define HN_VEC_SILU_H

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_avx512.h"

enum { VEC_SILU_DEGREE = 5, VEC_SILU_PIECES = 32 };
#define VEC_SILU_WIDTH 0.5625f
#define VEC_SILU_END (31 * VEC_SILU_WIDTH) /* of the last piece, which is 0, the middle */

/* clang-format off */
static const float vec_silu_table[VEC_SILU_DEGREE + 1][VEC_SILU_PIECES] __attribute__((aligned(64), unused)) = {
    {0x1p-1f, 0x1.73ae34p-2f, 0x1.f5ef22p-3f, 0x1.3fb3ecp-3f, 0x1.868d28p-4f, 0x1.d018bep-5f, 0x1.0f0a54p-5f, 0x1.395406p-6f, 0x1.680528p-7f, 0x1.9c370cp-8f, 0x1.d7054cp-9f, 0x1.0ccb8ap-9f, 0x1.329482p-10f, 0x1.5d8b46p-11f, 0x1.8e7152p-12f, 0x1.c62034p-13f, 0x1.02c6f6p-13f, 0x1.26e8c4p-14f, 0x1.50142p-15f, 0x1.7efd8p-16f, 0x1.b47262p-17f, 0x1.f15cd2p-18f, 0x1.1b63bap-18f, 0x1.42f10cp-19f, 0x1.700376p-20f, 0x1.a36036p-21f, 0x1.dde80cp-22f, 0x1.104d8ep-22f, 0x1.364e9ep-23f, 0x1.619d88p-24f, 0x1.92f7cap-25f, 0},
    {-0x1.fffffep-3f, -0x1.d98b36p-3f, -0x1.7aeae6p-3f, -0x1.0dcbbp-3f, -0x1.615002p-4f, -0x1.b5cdf2p-5f, -0x1.06129cp-5f, -0x1.33560cp-6f, -0x1.64108ap-7f, -0x1.999f4ap-8f, -0x1.d553f8p-9f, -0x1.0c3e6cp-9f, -0x1.3238b8p-10f, -0x1.5d4f9cp-11f, -0x1.8e4a8ep-12f, -0x1.c60706p-13f, -0x1.02bec8p-13f, -0x1.26e376p-14f, -0x1.5010aep-15f, -0x1.7efb44p-16f, -0x1.b470eep-17f, -0x1.f15bep-18f, -0x1.1b636cp-18f, -0x1.42f0dap-19f, -0x1.700356p-20f, -0x1.a3602p-21f, -0x1.dde7fep-22f, -0x1.104d88p-22f, -0x1.364e9cp-23f, -0x1.619d84p-24f, -0x1.92f7c8p-25f, 0},
    {-0x1.d1c81cp-22f, 0x1.038b5ap-5f, 0x1.825bd4p-5f, 0x1.7320cp-5f, 0x1.1df0bcp-5f, 0x1.84341ep-6f, 0x1.e976dep-7f, 0x1.2794c4p-7f, 0x1.5c3d3ap-8f, 0x1.94777cp-9f, 0x1.d1f386p-10f, 0x1.0b242ep-10f, 0x1.3180a4p-11f, 0x1.5cd788p-12f, 0x1.8dfc18p-13f, 0x1.c5d39p-14f, 0x1.02adccp-14f, 0x1.26d81cp-15f, 0x1.5008f2p-16f, 0x1.7ef5d4p-17f, 0x1.b46ceep-18f, 0x1.f158bep-19f, 0x1.1b6218p-19f, 0x1.42efa4p-20f, 0x1.700226p-21f, 0x1.a35ee8p-22f, 0x1.dde6bp-23f, 0x1.104cdp-23f, 0x1.364dcep-24f, 0x1.619c9ep-25f, 0x1.92f6c2p-26f, 0},
    {0x1.556f8ep-6f, 0x1.e91e0cp-7f, 0x1.bd18b4p-9f, -0x1.2d8f12p-8f, -0x1.c68d88p-8f, -0x1.8c9022p-8f, -0x1.1a5c2ep-8f, -0x1.6ba97cp-9f, -0x1.bbccfp-10f, -0x1.06d70ep-10f, -0x1.32299cp-11f, -0x1.6143fap-12f, -0x1.956ea8p-13f, -0x1.cfe264p-14f, -0x1.08ebdap-14f, -0x1.2e4a62p-15f, -0x1.58bca2p-16f, -0x1.890466p-17f, -0x1.bffa3p-18f, -0x1.fe91e6p-19f, -0x1.22efd4p-19f, -0x1.4b8e74p-20f, -0x1.79d70ap-21f, -0x1.ae9468p-22f, -0x1.eaad8cp-23f, -0x1.1794c8p-23f, -0x1.3e9a1ap-24f, -0x1.6b1184p-25f, -0x1.9dbd9ap-26f, -0x1.d77c2p-27f, -0x1.0ca4ep-27f, 0},
    {-0x1.43416ap-15f, -0x1.2ec472p-8f, -0x1.380a12p-8f, -0x1.20ac4cp-9f, -0x1.f4187cp-14f, 0x1.6e7a5p-11f, 0x1.90a584p-11f, 0x1.316424p-11f, 0x1.947d4cp-12f, 0x1.f43478p-13f, 0x1.2a427ap-13f, 0x1.5caedap-14f, 0x1.932194p-15f, 0x1.cf2d5p-16f, 0x1.0924b4p-16f, 0x1.2ef364p-17f, 0x1.59c108p-18f, 0x1.8a5934p-19f, 0x1.c19b2ep-20f, 0x1.003fd8p-20f, 0x1.240f38p-21f, 0x1.4cd9ep-22f, 0x1.7b5342p-23f, 0x1.b0475ap-24f, 0x1.ec9e44p-25f, 0x1.18b026p-25f, 0x1.3fdd3ep-26f, 0x1.6c81e6p-27f, 0x1.9f6182p-28f, 0x1.d95abp-29f, 0x1.0db594p-29f, 0},
    {-0x1.04f7f8p-9f, -0x1.e21944p-11f, 0x1.5e77f6p-11f, 0x1.f12b84p-11f, 0x1.0681c6p-11f, 0x1.efab44p-14f, -0x1.63595ep-15f, -0x1.38de58p-14f, -0x1.052deep-14f, -0x1.6563a4p-15f, -0x1.c06a5ep-16f, -0x1.0d4f1ep-16f, -0x1.3c085ap-17f, -0x1.6e23p-18f, -0x1.a52788p-19f, -0x1.e27c54p-20f, -0x1.13be0cp-20f, -0x1.3ac42cp-21f, -0x1.670c2cp-22f, -0x1.9962d2p-23f, -0x1.d2ab92p-24f, -0x1.09f2dep-24f, -0x1.2f18ep-25f, -0x1.596b5ep-26f, -0x1.89a428p-27f, -0x1.c096acp-28f, -0x1.ff33ap-29f, -0x1.234696p-29f, -0x1.4bedd2p-30f, -0x1.7a417p-31f, -0x1.af0c3p-32f, 0},
};
/* clang-format on */

/* x sigmoid(al x), al > 0; end: VEC_SILU_END / al. */
static inline vf v_silu_pieces(vf x, vf al, vf end) {
  const vf magic = v_set1(0x1.8p23f); /* a sum with it has an integer in its low bits */
  /* |x|, but no positive infinity: that would be multiplied by 0. */
  const vf a = v_abs(v_min_number(end, x)), b = v_mul(al, v_min_number(end, a));
  const vf at = v_fma(b, v_set1(1 / VEC_SILU_WIDTH), magic),
           r = v_fnma(v_sub(at, magic), v_set1(VEC_SILU_WIDTH), b);
  const vi piece = _mm512_castps_si512(at);
  vf q = v_zero();
  HN_UNROLL for (int i = VEC_SILU_DEGREE; i >= 0; i--) {
    const float *c = vec_silu_table[i];
    const vf k = _mm512_permutex2var_ps(v_load(c), piece, v_load(c + 16));
    q = i == VEC_SILU_DEGREE ? k : v_fma(q, r, k);
  }
  return v_fnma(a, q, v_max_number(v_zero(), x));
}

#endif
