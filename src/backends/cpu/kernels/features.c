#include "backends/cpu/kernels/features.h"

#include "base/cpuid.h"

#include <hone/plugin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const isa_names[HN_ISA_COUNT] = {"scalar",     "avx2",       "avxvnni", "avx512",
                                                    "avx512vnni", "avx512bf16", "amx"};

const char *hn_isa_name(hn_isa isa) { return (unsigned)isa < HN_ISA_COUNT ? isa_names[isa] : "unknown"; }

hn_isa hn_isa_parse(const char *name) {
  for (int i = 0; i < HN_ISA_COUNT; i++)
    if (!strcmp(name, isa_names[i])) return (hn_isa)i;
  return HN_ISA_COUNT;
}

hn_isa hn_isa_of(uint32_t bits) {
  if (!(bits & HONE_ISA_AVX2)) return HN_ISA_SCALAR;
  if (!(bits & HONE_ISA_AVX512)) return bits & HONE_ISA_AVXVNNI ? HN_ISA_AVXVNNI : HN_ISA_AVX2;
  if (!(bits & HONE_ISA_AVX512VNNI)) return HN_ISA_AVX512;
  if (!(bits & HONE_ISA_AVX512BF16)) return HN_ISA_AVX512VNNI;
  return bits & HONE_ISA_AMX ? HN_ISA_AMX : HN_ISA_AVX512BF16;
}

enum { MESH_BYTES = 64 << 20 };

static hn_cpu_info info;
static char brand[52];
static pthread_once_t once = PTHREAD_ONCE_INIT, brand_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
typedef hn_cpuid_regs regs;

static int bit(uint32_t word, int n) { return (int)(word >> n & 1u); }

/* Linux gives the 8 KiB of tile state to processes that ask (Documentation/arch/x86/xstate.rst); threads
 * inherit the permission. */
static bool permit_tiles(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static bool detect_avxvnni(void) {
  return hn_cpuid_width() != HN_WIDTH_ANY && bit(hn_cpuid_known()->leaf7_1.a, 4);
}

static hn_isa detect_isa(void) {
  const hn_cpuid_basics *k = hn_cpuid_known();
  const hn_width width = hn_cpuid_width();
  const regs l7 = k->leaf7;
  if (width == HN_WIDTH_ANY) return HN_ISA_SCALAR;
  if (width == HN_WIDTH_AVX2) return detect_avxvnni() ? HN_ISA_AVXVNNI : HN_ISA_AVX2;
  if (!bit(l7.c, 11)) return HN_ISA_AVX512;
  if (!bit(k->leaf7_1.a, 5)) return HN_ISA_AVX512VNNI;
  /* BF16, TILE, INT8; tile configuration and data saved */
  if (!bit(l7.d, 22) || !bit(l7.d, 24) || !bit(l7.d, 25) || (k->xcr0 & 0x60000) != 0x60000)
    return HN_ISA_AVX512BF16;
  return permit_tiles() ? HN_ISA_AMX : HN_ISA_AVX512BF16;
}

static bool is_vendor(const char *twelve) {
  const regs r = hn_cpuid_known()->leaf0;
  const uint32_t words[3] = {r.b, r.d, r.c};
  return !memcmp(words, twelve, sizeof words);
}
static bool detect_amd(void) { return is_vendor("AuthenticAMD"); }

/* A leaf with one cache: leaf 4 (Intel) and 0x8000001d (AMD) share their format. */
enum { CACHES_INTEL = 4, CACHE_NONE = 0, CACHE_OF_CODE = 2 };
#define CACHES_AMD 0x8000001du
static uint32_t cache_type(regs r) { return r.a & 31; }
static uint32_t cache_level(regs r) { return r.a >> 5 & 7; }
static size_t cache_size(regs r) {
  return (size_t)((r.b >> 22) + 1) * ((r.b >> 12 & 1023) + 1) * ((r.b & 4095) + 1) * (r.c + 1u);
}

/* Every question is a trap of a virtual machine, 4 to 8 us, and C libraries know most of it. But of AMD's
 * last cache they tell what all dies have together, so that the processor says what one has. */
static bool told_caches(hn_cpu_info *o) {
  const hn_cpuid_basics *k = hn_cpuid_known();
  const bool amd = is_vendor("AuthenticAMD") && bit(k->leaf1_more.c, 22); /* it has CACHES_AMD */
  if (!k->told || !(amd || is_vendor("GenuineIntel"))) return false;
  const long l1d = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  long l3 = amd ? 0 : sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (l1d <= 0 || l2 <= 0) return false;
  if (amd) {
    const regs r = hn_cpuid(CACHES_AMD, 3);
    if (cache_type(r) != CACHE_NONE && cache_level(r) != 3) return false;
    if (cache_type(r) != CACHE_NONE) l3 = (long)cache_size(r);
  }
  o->l1d = (size_t)l1d, o->l2 = (size_t)l2;
  if (l3 > 0) o->l3 = (size_t)l3;
  return true;
}

static void detect_caches(hn_cpu_info *o) {
  if (told_caches(o)) return;
  uint32_t leaf = CACHES_INTEL;
  regs r = {0};
  if (hn_cpuid_known()->leaf0.a >= CACHES_INTEL) r = hn_cpuid(CACHES_INTEL, 0);
  if (cache_type(r) == CACHE_NONE) {
    if (hn_cpuid(0x80000000u, 0).a < CACHES_AMD) return;
    r = hn_cpuid(leaf = CACHES_AMD, 0);
  }
  for (uint32_t i = 0; i < 8; r = hn_cpuid(leaf, ++i)) {
    if (cache_type(r) == CACHE_NONE) break;
    if (cache_type(r) == CACHE_OF_CODE) continue;
    if (cache_level(r) == 1) o->l1d = cache_size(r);
    if (cache_level(r) == 2) o->l2 = cache_size(r);
    if (cache_level(r) == 3) {
      o->l3 = cache_size(r);
      break;
    }
  }
}

static bool detect_vbmi(void) { return bit(hn_cpuid_known()->leaf7.c, 1); }
static bool detect_fp16(void) { return bit(hn_cpuid_known()->leaf7.d, 23); }

static void detect_brand(void) {
  if (hn_cpuid(0x80000000u, 0).a < 0x80000004u) return;
  for (uint32_t i = 0; i < 3; i++) {
    regs r = hn_cpuid(0x80000002u + i, 0);
    memcpy(brand + 16 * i, &r, 16);
  }
  char *s = brand;
  while (*s == ' ') s++;
  memmove(brand, s, strlen(s) + 1);
  for (size_t n = strlen(brand); n && brand[n - 1] == ' ';) brand[--n] = 0;
}
#else
static hn_isa detect_isa(void) { return HN_ISA_SCALAR; }
static void detect_caches(hn_cpu_info *o) { (void)o; }
static bool detect_amd(void) { return false; }
static bool detect_avxvnni(void) { return false; }
static bool detect_vbmi(void) { return false; }
static bool detect_fp16(void) { return false; }
static void detect_brand(void) {}
#endif

static void detect(void) {
  info.l1d = 32u << 10;
  info.l2 = 512u << 10;
  info.l3 = 8u << 20;
  info.isa_detected = detect_isa();
  detect_caches(&info);
  const bool amd = detect_amd();
  /* AMD runs VDPBF16PS at the pace of an FMA, with twice the products; Intel at a quarter of that. */
  info.bf16_rate = amd ? 2 : 0.5;
  /* One core of AMD draws more of what all may than one of Intel (servers; docs/log/perf-log-cpu.md). */
  info.dram_bytes_per_cycle = amd ? 5.5 : 3.6;
  info.adds_aside = amd; /* every Zen */
  /* A last cache that is larger belongs to many cores on a mesh. AMD's belong to the few cores of a die,
   * however large they are (96 MiB where memory is stacked on it). */
  info.mesh = !amd && info.l3 > MESH_BYTES;
  info.avxvnni = detect_avxvnni();
  info.vbmi = info.isa_detected >= HN_ISA_AVX512VNNI && detect_vbmi();
  info.fp16 = info.isa_detected >= HN_ISA_AVX512BF16 && detect_fp16();
  info.isa = info.isa_detected;
  const char *mask = getenv("HONE_CPU");
  if (!mask || !*mask) return;
  hn_isa want = hn_isa_parse(mask);
  if (want == HN_ISA_COUNT)
    snprintf(info.unknown, sizeof info.unknown, "%s", mask);
  else if (want < info.isa)
    info.isa = want == HN_ISA_AVXVNNI && !info.avxvnni ? HN_ISA_AVX2 : want;
}

const hn_cpu_info *hn_cpu(void) {
  pthread_once(&once, detect);
  return &info;
}

bool hn_cpu_runs(hn_isa isa) {
  const hn_cpu_info *cpu = hn_cpu();
  return isa <= cpu->isa && (isa != HN_ISA_AVXVNNI || cpu->avxvnni);
}

const char *hn_cpu_brand(void) {
  pthread_once(&brand_once, detect_brand);
  return brand;
}
