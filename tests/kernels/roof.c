/* The machine's roofs for one thread, measured with the loops of `hone device`: arithmetic of a tier, and
 * what can be read and written at each level of the caches. */
#include "check_internal.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "base/mem.h"
#include "improve/roofs.h"

enum { TRIES = 12 };

/* Work a second of one loop; the best of some tries of about a millisecond. */
static double rate_of(const hn_roof_loop *l, const void *data, size_t bytes) {
  uint64_t sink = 0;
  double best = 0;
  uint64_t rounds = 16;
  for (int i = 0; i < TRIES;) {
    double t = ck_now();
    sink += l->run(rounds, data, bytes);
    t = ck_now() - t;
    if (t < 5e-4 && rounds < (uint64_t)1 << 40) {
      rounds *= 4;
      continue;
    }
    double work = (double)rounds * (l->work > 0 ? l->work : (double)bytes);
    if (work / t > best) best = work / t;
    i++;
  }
  __asm__ volatile("" : : "r"(sink)); /* the loops are not for nothing */
  return best;
}

double ck_peak_flops(hn_isa isa, ck_unit unit) {
  static double peak[HN_ISA_COUNT][CK_UNITS];
  hn_roof_loops loops = hn_roof_loops_of(isa);
  const hn_roof_loop *l = unit == CK_BF16 ? &loops.bf16 : unit == CK_INT8 ? &loops.int8 : &loops.f32;
  if (!l->run) l = &loops.f32;
  if (!(peak[isa][unit] > 0)) peak[isa][unit] = rate_of(l, NULL, 0);
  return peak[isa][unit];
}

/* ---- division: one unit, not pipelined like the rest */

typedef float v16 __attribute__((vector_size(64)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));

#define DIVIDE(name, tgt, type, lanes, op)                                                                   \
  __attribute__((target(tgt), noinline)) static uint64_t name(uint64_t rounds, const void *data, size_t n) { \
    (void)data, (void)n;                                                                                     \
    type x, a, b, c, d;                                                                                      \
    for (int i = 0; i < lanes; i++) x[i] = 1.5f;                                                             \
    a = b = c = d = x;                                                                                       \
    for (uint64_t r = 0; r < rounds; r++)                                                                    \
      __asm__ volatile(op : "=v"(a), "=v"(b), "=v"(c), "=v"(d) : "v"(x));                                    \
    return a[0] + b[0] + c[0] + d[0] > 0;                                                                    \
  }
#define VDIV4 "vdivps %4, %4, %0\n\tvdivps %4, %4, %1\n\tvdivps %4, %4, %2\n\tvdivps %4, %4, %3"
DIVIDE(divide512, "avx512f", v16, 16, VDIV4)
DIVIDE(divide256, "avx2", v8, 8, VDIV4)

__attribute__((noinline)) static uint64_t divide128(uint64_t rounds, const void *data, size_t n) {
  (void)data, (void)n;
  v4 x = {1.5f, 1.5f, 1.5f, 1.5f}, a = x, b = x;
  for (uint64_t r = 0; r < rounds; r++) {
    a = x, b = x;
    __asm__ volatile("divps %2, %0\n\tdivps %2, %1" : "+x"(a), "+x"(b) : "x"(x));
  }
  return a[0] + b[0] > 0;
}

double ck_divide_rate(hn_isa isa) {
  static double rate[HN_ISA_COUNT];
  hn_roof_loop l = isa >= HN_ISA_AVX512 ? (hn_roof_loop){divide512, 64}
                   : isa >= HN_ISA_AVX2 ? (hn_roof_loop){divide256, 32}
                                        : (hn_roof_loop){divide128, 8};
  if (!(rate[isa] > 0)) rate[isa] = rate_of(&l, NULL, 0);
  return rate[isa];
}

/* ---- memory */

#define WRITE(name, tgt, width, op)                                                                          \
  __attribute__((target(tgt), noinline)) static uint64_t name(uint64_t rounds, const void *data, size_t n) { \
    for (uint64_t r = 0; r < rounds; r++)                                                                    \
      for (size_t k = 0; k + 4 * width <= n; k += 4 * width)                                                 \
        __asm__ volatile(op : : "r"((const char *)data + k) : "memory");                                     \
    return n;                                                                                                \
  }
WRITE(write512, "avx512f", 64,
      "vmovaps %%zmm0, (%0)\n\tvmovaps %%zmm0, 64(%0)\n\tvmovaps %%zmm0, 128(%0)\n\tvmovaps %%zmm0, 192(%0)")
WRITE(write256, "avx2", 32,
      "vmovaps %%ymm0, (%0)\n\tvmovaps %%ymm0, 32(%0)\n\tvmovaps %%ymm0, 64(%0)\n\tvmovaps %%ymm0, 96(%0)")
WRITE(write128, "sse2", 16,
      "movaps %%xmm0, (%0)\n\tmovaps %%xmm0, 16(%0)\n\tmovaps %%xmm0, 32(%0)\n\tmovaps %%xmm0, 48(%0)")

enum { LEVELS = 3 }; /* L1, L2, and what lies beyond */

static double rate_at(hn_isa isa, bool write, int level) {
  static double rate[HN_ISA_COUNT][2][LEVELS];
  const hn_cpu_info *cpu = hn_cpu();
  const size_t size[LEVELS] = {cpu->l1d / 2, cpu->l2 / 2, 4 * cpu->l2};
  double *r = &rate[isa][write][level];
  if (*r > 0) return *r;
  void *p = aligned_alloc(4096, hn_round_up(size[level], 4096));
  if (!p) exit(6);
  memset(p, 0, size[level]);
  hn_roof_loops loops = hn_roof_loops_of(isa);
  hn_roof_loop w = {isa >= HN_ISA_AVX512 ? write512 : isa >= HN_ISA_AVX2 ? write256 : write128, 0};
  *r = rate_of(write ? &w : &loops.read, p, size[level] / 512 * 512);
  free(p);
  return *r;
}

/* The part of the footprint that a level can hold comes from it at best. */
static double seconds_for(hn_isa isa, bool write, double bytes, double footprint) {
  const hn_cpu_info *cpu = hn_cpu();
  const double room[LEVELS] = {(double)cpu->l1d, (double)cpu->l2, 1e300};
  double from = 0, seconds = 0;
  if (!(footprint > 0)) return 0;
  for (int level = 0; level < LEVELS && from < footprint; level++) {
    double to = room[level] < footprint ? room[level] : footprint;
    seconds += bytes * (to - from) / footprint / rate_at(isa, write, level);
    from = to;
  }
  return seconds;
}

/* Baseline vectors have no fused multiply-add: two instructions there. */
static double operations(hn_isa isa, const ck_work *w) {
  return w->flops + (isa >= HN_ISA_AVX2 ? 2 : 1) * w->instructions;
}

double ck_roof_seconds(hn_isa isa, const ck_work *w, const char **which) {
  const double footprint = w->read + w->written;
  const struct {
    const char *name;
    double seconds;
  } roof[] = {{w->unit == CK_F32    ? "arithmetic"
               : w->unit == CK_BF16 ? "bf16"
                                    : "int8",
               operations(isa, w) / ck_peak_flops(isa, w->unit)},
              {"division", w->divisions > 0 ? w->divisions / ck_divide_rate(isa) : 0},
              {"reading", seconds_for(isa, false, w->read, footprint)},
              {"writing", seconds_for(isa, true, w->written, footprint)}};
  double most = 0;
  *which = "";
  for (size_t i = 0; i < sizeof roof / sizeof *roof; i++)
    if (roof[i].seconds > most) most = roof[i].seconds, *which = roof[i].name;
  return most;
}
