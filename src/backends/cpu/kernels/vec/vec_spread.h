/* A value of a matrix in all lanes. With AVX-512 the instruction names its address: left to themselves,
 * compilers keep `distance + at` for each `at` in a register. There are not enough of them, so that gcc puts
 * some into vector registers or masks, and brings each back through a port that multiplies: seven times for a
 * hundred products. With AVX2 it has only the stack for them, from where they come for nothing. */
#ifndef HN_VEC_SPREAD_H
#define HN_VEC_SPREAD_H

#include "backends/cpu/kernels/vec/vec.h"

/* p[rows * distance + at]; rows (0 to 2) and at are constant where this is inlined. */
static inline __attribute__((always_inline)) vf v_spread(const float *p, ptrdiff_t distance, const int rows,
                                                         const int at) {
#if VEC_W < 16 || defined(HN_INSTRUMENTED)
  return v_set1(p[rows * distance + at]);
#else
  vf x;
  if (rows == 0)
    __asm__ volatile("vbroadcastss %c2(%1), %0" : "=v"(x) : "r"(p), "i"(4 * at) : "memory");
  else if (rows == 1)
    __asm__ volatile("vbroadcastss %c3(%1,%2,4), %0"
                     : "=v"(x)
                     : "r"(p), "r"(distance), "i"(4 * at)
                     : "memory");
  else
    __asm__ volatile("vbroadcastss %c3(%1,%2,8), %0"
                     : "=v"(x)
                     : "r"(p), "r"(distance), "i"(4 * at)
                     : "memory");
  return x;
#endif
}

/* The vector that begins there: all of it, or its first n lanes and zeros. */
static inline __attribute__((always_inline)) vf v_load_far(const float *p, ptrdiff_t distance,
                                                           const int rows) {
#if VEC_W < 16 || defined(HN_INSTRUMENTED)
  return v_load(p + rows * distance);
#else
  vf x;
  if (rows == 0)
    __asm__ volatile("vmovups (%1), %0" : "=v"(x) : "r"(p) : "memory");
  else if (rows == 1)
    __asm__ volatile("vmovups (%1,%2,4), %0" : "=v"(x) : "r"(p), "r"(distance) : "memory");
  else
    __asm__ volatile("vmovups (%1,%2,8), %0" : "=v"(x) : "r"(p), "r"(distance) : "memory");
  return x;
#endif
}

static inline __attribute__((always_inline)) vf v_loadn_far(const float *p, ptrdiff_t distance,
                                                            const int rows, size_t n) {
#if VEC_W < 16 || defined(HN_INSTRUMENTED)
  return v_loadn(p + rows * distance, n);
#else
  vf x;
  const vm lanes = v_lanes_below(n);
  if (rows == 0)
    __asm__ volatile("vmovups (%1), %0%{%2%}%{z%}" : "=v"(x) : "r"(p), "Yk"(lanes) : "memory");
  else if (rows == 1)
    __asm__ volatile("vmovups (%1,%2,4), %0%{%3%}%{z%}"
                     : "=v"(x)
                     : "r"(p), "r"(distance), "Yk"(lanes)
                     : "memory");
  else
    __asm__ volatile("vmovups (%1,%2,8), %0%{%3%}%{z%}"
                     : "=v"(x)
                     : "r"(p), "r"(distance), "Yk"(lanes)
                     : "memory");
  return x;
#endif
}

/* sum += p[rows * distance + at] * b in every lane. */
static inline __attribute__((always_inline)) void v_fma_spread(vf *sum, const float *p, ptrdiff_t distance,
                                                               const int rows, const int at, vf b) {
#if VEC_W < 16 || defined(HN_INSTRUMENTED)
  v_fma_into(sum, v_set1(p[rows * distance + at]), b);
#else
  if (rows == 0)
    __asm__ volatile("vfmadd231ps %c2(%1)%{1to16%}, %3, %0"
                     : "+v"(*sum)
                     : "r"(p), "i"(4 * at), "v"(b)
                     : "memory");
  else if (rows == 1)
    __asm__ volatile("vfmadd231ps %c3(%1,%2,4)%{1to16%}, %4, %0"
                     : "+v"(*sum)
                     : "r"(p), "r"(distance), "i"(4 * at), "v"(b)
                     : "memory");
  else
    __asm__ volatile("vfmadd231ps %c3(%1,%2,8)%{1to16%}, %4, %0"
                     : "+v"(*sum)
                     : "r"(p), "r"(distance), "i"(4 * at), "v"(b)
                     : "memory");
#endif
}

#endif
