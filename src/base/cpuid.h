/* What CPUID says, asked once: a virtual machine traps every time, which takes microseconds. */
#ifndef HN_BASE_CPUID_H
#define HN_BASE_CPUID_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hn_cpuid_regs {
  uint32_t a, b, c, d;
} hn_cpuid_regs;

/* The leaves that say which instructions there are; all zero where the processor has no such leaf. */
typedef struct hn_cpuid_basics {
  hn_cpuid_regs leaf0, leaf1, leaf7, leaf7_1;
  hn_cpuid_regs leaf1_more; /* 0x80000001, where the C library told it; else zeros */
  bool told; /* the C library said so: it keeps what it heard, sizes of caches of one core (sysconf), too */
  uint64_t xcr0; /* states that the operating system saves; 0: it saves none of them */
} hn_cpuid_basics;

/* Thread safe; the same pointer every time. All zero on other processors than x86-64. */
const hn_cpuid_basics *hn_cpuid_known(void);

/* Asks the processor; zeros on other processors than x86-64. */
hn_cpuid_regs hn_cpuid(uint32_t leaf, uint32_t sub);

/* For plain loops (wide.h): which variant this processor runs. */
typedef enum hn_width { HN_WIDTH_ANY, HN_WIDTH_AVX2, HN_WIDTH_AVX512 } hn_width;
hn_width hn_cpuid_width(void);

#endif
