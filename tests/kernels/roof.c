/* The machine's roofs for one thread, measured: FMA throughput of a tier and read bandwidth at a footprint.
 */
#include "check_internal.h"

#include <stdlib.h>
#include <string.h>

#define FMA_STEP(r) __asm__ volatile(OP : "+v"(r) : "v"(zero)); /* zeros: denormals would be slow */
#define EACH(X) X(r0) X(r1) X(r2) X(r3) X(r4) X(r5) X(r6) X(r7) X(r8) X(r9) X(r10) X(r11)
typedef float v16 __attribute__((vector_size(64)));
typedef float v8 __attribute__((vector_size(32)));

enum { CHAINS = 12, STEPS = 200000 };

#define DEFINE_CHAIN(name, tgt, type)                                                                        \
  __attribute__((target(tgt), noinline)) static void name(void) {                                            \
    type zero = {0}, r0 = zero, r1 = zero, r2 = zero, r3 = zero, r4 = zero, r5 = zero, r6 = zero, r7 = zero, \
         r8 = zero, r9 = zero, r10 = zero, r11 = zero;                                                       \
    for (int i = 0; i < STEPS; i++) {                                                                        \
      EACH(FMA_STEP)                                                                                         \
    }                                                                                                        \
  }
#define OP "vfmadd231ps %1, %1, %0"
DEFINE_CHAIN(chain512, "avx512f", v16)
#undef OP
#define OP "vfmadd231ps %1, %1, %0"
DEFINE_CHAIN(chain256, "avx2,fma", v8)
#undef OP

/* Scalar tier: a multiply and an add are two instructions; count them as the fused pair's two operations. */
__attribute__((noinline)) static void chain1(void) {
  float r[CHAINS] = {0}, zero = 0;
  for (int i = 0; i < STEPS; i++)
    for (int j = 0; j < CHAINS; j++)
      __asm__ volatile("mulss %1, %0\n\taddss %1, %0" : "+x"(r[j]) : "x"(zero));
}

double ck_peak_flops(hn_isa isa) {
  static double peak[HN_ISA_COUNT];
  if (peak[isa] > 0) return peak[isa];
  void (*chain)(void) = isa >= HN_ISA_AVX512 ? chain512 : isa >= HN_ISA_AVX2 ? chain256 : chain1;
  double lanes = isa >= HN_ISA_AVX512 ? 16 : isa >= HN_ISA_AVX2 ? 8 : 1, best = 1;
  for (int i = 0; i < 12; i++) {
    double t = ck_now();
    chain();
    t = ck_now() - t;
    if (t < best) best = t;
  }
  return peak[isa] = 2.0 * lanes * CHAINS * STEPS / best;
}

double ck_read_bandwidth(double footprint) {
  static const size_t size[] = {16u << 10, 512u << 10, 6u << 20, 96u << 20};
  static double bandwidth[4];
  int level = footprint <= 24e3 ? 0 : footprint <= 1e6 ? 1 : footprint <= 16e6 ? 2 : 3;
  if (bandwidth[level] > 0) return bandwidth[level];
  size_t n = size[level];
  unsigned char *p = aligned_alloc(4096, n), *q = aligned_alloc(4096, n);
  if (!p || !q) exit(6);
  memset(p, 1, n);
  memset(q, 1, n);
  double best = 1e9;
  for (int i = 0; i < 10; i++) {
    size_t calls = n < (4u << 20) ? (4u << 20) / n : 1;
    double t = ck_now();
    for (size_t j = 0; j < calls; j++)
      for (size_t k = 0; k < n; k += 256)
        __asm__ volatile(
            "movaps (%0), %%xmm0\n\tmovaps 64(%0), %%xmm1\n\tmovaps 128(%0), %%xmm2\n\tmovaps 192(%0), %%xmm3"
            :
            : "r"(p + k)
            : "xmm0", "xmm1", "xmm2", "xmm3");
    t = (ck_now() - t) / (double)calls;
    if (t < best) best = t;
  }
  free(p);
  free(q);
  return bandwidth[level] = (double)n / best;
}
