/* What this processor can do: detected once with CPUID and XGETBV, maskable by the environment variable
 * HONE_CPU=scalar|avx2|avxvnni|avx512|avx512vnni|avx512bf16|amx (a mask only lowers the tier, it never raises
 * it; without AVX-VNNI avxvnni is avx2). */
#ifndef HN_CPU_KERNELS_FEATURES_H
#define HN_CPU_KERNELS_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_cpu_info {
  hn_isa isa;                  /* tier in use, after the mask */
  hn_isa isa_detected;         /* tier of the hardware and operating system */
  bool avxvnni;                /* AVX-VNNI, whatever the tier: a mask or a caller may choose that tier */
  bool vbmi;                   /* bytes across registers (AVX512-VBMI), from tier avx512vnni on */
  bool fp16;                   /* products and sums of f16 (AVX512-FP16), from tier avx512bf16 on */
  double bf16_rate;            /* multiply-adds of VDPBF16PS per one of f32 in the same time (AVX512-BF16) */
  double dram_bytes_per_cycle; /* that one core can draw from memory, about, at 3 GHz: for cost models */
  bool adds_aside;             /* sums have units of their own beside those of multiply-adds */
  bool mesh;                   /* the last cache is one of many cores on a mesh: see features.c */
  size_t l1d, l2, l3;          /* data cache sizes in bytes per instance, with safe defaults when unknown */
  char unknown[32]; /* the word that HONE_CPU held, cut short, if it is no tier (backend.h refuses it) */
} hn_cpu_info;

/* Never fails; thread safe; the same pointer every time. */
const hn_cpu_info *hn_cpu(void);
/* The processor's name, asked when it is first needed: that takes four traps of a virtual machine. */
const char *hn_cpu_brand(void);

/* Whether kernels of that tier may run: the processor has its instructions, and the mask allows them. */
bool hn_cpu_runs(hn_isa isa);

const char *hn_isa_name(hn_isa isa);
/* The tier that hone_machine.isa's HONE_ISA_* bits stand for. */
hn_isa hn_isa_of(uint32_t machine_isa);
/* The tier of that name, or HN_ISA_COUNT. */
hn_isa hn_isa_parse(const char *name);

#endif
