#include "base/cpuid.h"

#include "base/os.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
hn_cpuid_regs hn_cpuid(uint32_t leaf, uint32_t sub) {
  hn_cpuid_regs r;
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(sub));
  return r;
}

static uint64_t xgetbv0(void) {
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}
#else
hn_cpuid_regs hn_cpuid(uint32_t leaf, uint32_t sub) {
  (void)leaf, (void)sub;
  return (hn_cpuid_regs){0};
}
static uint64_t xgetbv0(void) { return 0; }
#endif

static hn_cpuid_basics basics;
static hn_width width;

static bool bit(uint32_t word, int n) { return word >> n & 1u; }

/* AVX, FMA, F16C, AVX2 and upper halves saved; for AVX-512 F, DQ, BW, VL, masks and all registers saved. */
static hn_width width_of(const hn_cpuid_basics *b) {
  const uint32_t c = b->leaf1.c, s = b->leaf7.b;
  if ((b->xcr0 & 0x6) != 0x6 || !bit(c, 28) || !bit(c, 12) || !bit(c, 29) || !bit(s, 5)) return HN_WIDTH_ANY;
  const bool most = (b->xcr0 & 0xe0) == 0xe0 && bit(s, 16) && bit(s, 17) && bit(s, 30) && bit(s, 31);
  return most ? HN_WIDTH_AVX512 : HN_WIDTH_AVX2;
}

/* glibc asks when a process starts, and from 2.33 on it tells what it heard: <sys/platform/x86.h>. The
 * function is looked for, not linked with, so that the program runs on older ones, too. */
typedef struct told {
  hn_cpuid_regs heard, usable;
} told;
typedef const told *teller(unsigned at);
/* Places in glibc's table, zeros where it has no such. */
enum { TOLD_LEAF1 = 0, TOLD_LEAF7 = 1, TOLD_LEAF1_MORE = 2, TOLD_LEAF7_1 = 6 };

static bool hear(hn_cpuid_basics *b) {
#if defined(__x86_64__) && defined(__GLIBC__)
  void *symbol = hn_loaded_symbol("__x86_get_cpuid_feature_leaf");
  if (!symbol) return false;
  teller *tell;
  memcpy(&tell, &symbol, sizeof tell);
  b->leaf1 = tell(TOLD_LEAF1)->heard;
  b->leaf7 = tell(TOLD_LEAF7)->heard;
  b->leaf7_1 = tell(TOLD_LEAF7_1)->heard;
  b->leaf1_more = tell(TOLD_LEAF1_MORE)->heard;
  return true;
#else
  (void)b;
  return false;
#endif
}

static void ask(void) {
  basics.leaf0 = hn_cpuid(0, 0);
  basics.told = hear(&basics);
  if (!basics.told) {
    if (basics.leaf0.a >= 1) basics.leaf1 = hn_cpuid(1, 0);
    if (basics.leaf0.a >= 7) basics.leaf7 = hn_cpuid(7, 0);
    if (basics.leaf7.a >= 1) basics.leaf7_1 = hn_cpuid(7, 1);
  }
  if (bit(basics.leaf1.c, 27)) basics.xcr0 = xgetbv0();
  width = width_of(&basics);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const hn_cpuid_basics *hn_cpuid_known(void) {
  pthread_once(&once, ask);
  return &basics;
}

hn_width hn_cpuid_width(void) {
  hn_cpuid_known();
  return width;
}
