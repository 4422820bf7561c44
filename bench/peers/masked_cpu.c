/* A processor without AVX-512, AMX and AVX-VNNI (and its younger kin), which HONE_CPU=avx2 does not use
 * either, for libraries that ask with CPUID: loaded before them (LD_PRELOAD), it answers the traps that
 * masked.py puts where their CPUID and XGETBV instructions are. With HONE_CPU=avxvnni AVX-VNNI stays in
 * sight. Everything else of the answer is the processor's own. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Bits to hide, of leaf 7 (Intel's manual, volume 2, CPUID). */
#define BIT(n) (1u << (n))
static const uint32_t
    /* F, DQ, IFMA, PF, ER, CD, BW, VL */
    EBX_7_0 = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31),
    /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
    ECX_7_0 = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14),
    /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8 */
    EDX_7_0 = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25), AVX_VNNI = BIT(4),
    /* AVX512-BF16, AMX-FP16, AVX-IFMA */
    EAX_7_1 = BIT(5) | BIT(21) | BIT(23),
    /* AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10 */
    EDX_7_1 = BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19),
    /* Registers that the system saves: k, upper halves of zmm, zmm16 and up, tiles */
    EAX_XGETBV = BIT(5) | BIT(6) | BIT(7) | BIT(17) | BIT(18);

static uint32_t also_of_eax_7_1 = AVX_VNNI;

static void cpuid(greg_t *r) {
  uint32_t a, b, c, d;
  const uint32_t leaf = (uint32_t)r[REG_RAX], sub = (uint32_t)r[REG_RCX];
  __cpuid_count(leaf, sub, a, b, c, d);
  if (leaf == 7 && sub == 0) b &= ~EBX_7_0, c &= ~ECX_7_0, d &= ~EDX_7_0;
  if (leaf == 7 && sub == 1) a &= ~(EAX_7_1 | also_of_eax_7_1), d &= ~EDX_7_1;
  r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
  r[REG_RIP] += 2;
}

static void xgetbv(greg_t *r) {
  uint32_t a, d;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"((uint32_t)r[REG_RCX]));
  r[REG_RAX] = r[REG_RCX] ? a : a & ~EAX_XGETBV;
  r[REG_RDX] = d;
  r[REG_RIP] += 3;
}

static void answer(int signal_number, siginfo_t *info, void *context) {
  static const uint8_t ud2[] = {0x0f, 0x0b}, ud1[] = {0x0f, 0xb9, 0xd0};
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  (void)info;
  if (!memcmp((const void *)r[REG_RIP], ud2, sizeof ud2))
    cpuid(r);
  else if (!memcmp((const void *)r[REG_RIP], ud1, sizeof ud1))
    xgetbv(r);
  else
    signal(signal_number, SIG_DFL);
}

__attribute__((constructor)) static void begin(void) {
  struct sigaction how = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  const char *held = getenv("HONE_CPU");
  if (held && !strcmp(held, "avxvnni")) also_of_eax_7_1 = 0;
  sigaction(SIGILL, &how, NULL);
}
