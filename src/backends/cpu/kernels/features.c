#include "backends/cpu/kernels/features.h"

#include <hone/plugin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const isa_names[HN_ISA_COUNT] = {"scalar",     "avx2",       "avx512",
                                                    "avx512vnni", "avx512bf16", "amx"};

const char *hn_isa_name(hn_isa isa) { return (unsigned)isa < HN_ISA_COUNT ? isa_names[isa] : "unknown"; }

hn_isa hn_isa_parse(const char *name) {
  for (int i = 0; i < HN_ISA_COUNT; i++)
    if (!strcmp(name, isa_names[i])) return (hn_isa)i;
  return HN_ISA_COUNT;
}

hn_isa hn_isa_of(uint32_t bits) {
  if (!(bits & HONE_ISA_AVX2)) return HN_ISA_SCALAR;
  if (!(bits & HONE_ISA_AVX512)) return HN_ISA_AVX2;
  if (!(bits & HONE_ISA_AVX512VNNI)) return HN_ISA_AVX512;
  if (!(bits & HONE_ISA_AVX512BF16)) return HN_ISA_AVX512VNNI;
  return bits & HONE_ISA_AMX ? HN_ISA_AMX : HN_ISA_AVX512BF16;
}

static hn_cpu_info info;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
typedef struct regs {
  uint32_t a, b, c, d;
} regs;

static regs cpuid(uint32_t leaf, uint32_t sub) {
  regs r;
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(sub));
  return r;
}

static uint64_t xgetbv0(void) {
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}

static int bit(uint32_t word, int n) { return (int)(word >> n & 1u); }

/* Linux gives the 8 KiB of tile state to processes that ask (Documentation/arch/x86/xstate.rst); threads
 * inherit the permission. */
static bool permit_tiles(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static hn_isa detect_isa(void) {
  if (cpuid(0, 0).a < 7) return HN_ISA_SCALAR;
  regs l1 = cpuid(1, 0), l7 = cpuid(7, 0);
  if (!bit(l1.c, 27)) return HN_ISA_SCALAR; /* the operating system does not save extended state */
  uint64_t xcr0 = xgetbv0();
  if ((xcr0 & 0x6) != 0x6) return HN_ISA_SCALAR;
  /* AVX, FMA, F16C; AVX2 */
  if (!bit(l1.c, 28) || !bit(l1.c, 12) || !bit(l1.c, 29) || !bit(l7.b, 5)) return HN_ISA_SCALAR;
  /* opmask and upper halves saved; F, DQ, BW, VL */
  if ((xcr0 & 0xe0) != 0xe0 || !bit(l7.b, 16) || !bit(l7.b, 17) || !bit(l7.b, 30) || !bit(l7.b, 31))
    return HN_ISA_AVX2;
  if (!bit(l7.c, 11)) return HN_ISA_AVX512;
  if (l7.a < 1 || !bit(cpuid(7, 1).a, 5)) return HN_ISA_AVX512VNNI;
  /* BF16, TILE, INT8; tile configuration and data saved */
  if (!bit(l7.d, 22) || !bit(l7.d, 24) || !bit(l7.d, 25) || (xcr0 & 0x60000) != 0x60000)
    return HN_ISA_AVX512BF16;
  return permit_tiles() ? HN_ISA_AMX : HN_ISA_AVX512BF16;
}

/* Deterministic cache parameters: leaf 4 (Intel) or 0x8000001d (AMD) share one format. */
static void detect_caches(hn_cpu_info *o) {
  uint32_t leaf = 4;
  if (!(cpuid(0, 0).a >= 4 && (cpuid(4, 0).a & 31))) {
    if (cpuid(0x80000000u, 0).a < 0x8000001du) return;
    leaf = 0x8000001du;
  }
  for (uint32_t i = 0; i < 8; i++) {
    regs r = cpuid(leaf, i);
    uint32_t type = r.a & 31, level = r.a >> 5 & 7;
    if (!type) break;
    if (type == 2) continue; /* instruction cache */
    size_t size = (size_t)((r.b >> 22) + 1) * ((r.b >> 12 & 1023) + 1) * ((r.b & 4095) + 1) * (r.c + 1u);
    if (level == 1) o->l1d = size;
    if (level == 2) o->l2 = size;
    if (level == 3) o->l3 = size;
  }
}

static bool detect_amd(void) {
  regs r = cpuid(0, 0);
  return r.b == 0x68747541 && r.d == 0x69746e65 && r.c == 0x444d4163; /* "AuthenticAMD" */
}

static bool detect_vbmi(void) { return bit(cpuid(7, 0).c, 1); }
static bool detect_fp16(void) { return bit(cpuid(7, 0).d, 23); }

static void detect_brand(hn_cpu_info *o) {
  if (cpuid(0x80000000u, 0).a < 0x80000004u) return;
  for (uint32_t i = 0; i < 3; i++) {
    regs r = cpuid(0x80000002u + i, 0);
    memcpy(o->brand + 16 * i, &r, 16);
  }
  char *s = o->brand;
  while (*s == ' ') s++;
  memmove(o->brand, s, strlen(s) + 1);
  for (size_t n = strlen(o->brand); n && o->brand[n - 1] == ' ';) o->brand[--n] = 0;
}
#else
static hn_isa detect_isa(void) { return HN_ISA_SCALAR; }
static void detect_caches(hn_cpu_info *o) { (void)o; }
static bool detect_amd(void) { return false; }
static bool detect_vbmi(void) { return false; }
static bool detect_fp16(void) { return false; }
static void detect_brand(hn_cpu_info *o) { (void)o; }
#endif

static void detect(void) {
  info.l1d = 32u << 10;
  info.l2 = 512u << 10;
  info.l3 = 8u << 20;
  info.isa_detected = detect_isa();
  detect_caches(&info);
  detect_brand(&info);
  const bool amd = detect_amd();
  /* AMD runs VDPBF16PS at the pace of an FMA, with twice the products; Intel at a quarter of that. */
  info.bf16_rate = amd ? 2 : 0.5;
  /* One core of AMD draws more of what all may than one of Intel (servers; docs/log/perf-log-cpu.md). */
  info.dram_bytes_per_cycle = amd ? 5.5 : 3.6;
  info.vbmi = info.isa_detected >= HN_ISA_AVX512VNNI && detect_vbmi();
  info.fp16 = info.isa_detected >= HN_ISA_AVX512BF16 && detect_fp16();
  info.isa = info.isa_detected;
  const char *mask = getenv("HONE_CPU");
  if (!mask || !*mask) return;
  hn_isa want = hn_isa_parse(mask);
  if (want == HN_ISA_COUNT)
    snprintf(info.unknown, sizeof info.unknown, "%s", mask);
  else if (want < info.isa)
    info.isa = want;
}

const hn_cpu_info *hn_cpu(void) {
  pthread_once(&once, detect);
  return &info;
}
