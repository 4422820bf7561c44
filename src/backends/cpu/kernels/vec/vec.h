/* One vocabulary of f32 vectors for all tiers, so that a kernel's body is written once and compiled once per
 * tier. The width follows the instruction set that the including file is compiled for (HN_VEC_SCALAR forces
 * one lane): 16 lanes with AVX-512, 8 with AVX2+FMA, else 1. The one-lane form takes its mathematics from
 * libm, which makes the scalar kernels an oracle that shares no approximation with the vector tiers.
 *
 * NaN policy: arithmetic follows IEEE; v_max and v_min return NaN when either operand is NaN.
 * v_fma_into adds a * b to a sum that stays in its register: where sums take nearly all registers, compilers
 * move and spill what they may put elsewhere.
 * Partial loads and stores touch exactly n lanes; lanes past n read as 0. */
#ifndef HN_VEC_H
#define HN_VEC_H

#include <stddef.h>
#include <stdint.h>

#if defined(HN_VEC_SCALAR)
#include "vec_scalar.h"
#elif defined(__AVX512F__)
#include "vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "vec_avx2.h"
#else
#include "vec_scalar.h"
#endif

/* Name of a tier's symbol: HN_TIERED(foo) is foo_avx512, foo_avx2 or foo_scalar. */
#define HN_VEC_CAT2(a, b) a##_##b
#define HN_VEC_CAT(a, b) HN_VEC_CAT2(a, b)
#define HN_TIERED(stem) HN_VEC_CAT(stem, VEC_TIER)

#endif
