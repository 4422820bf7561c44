/* CPU kernels: the one descriptor every kernel file exports, and the way to pick one.
 *
 * A kernel is one file kernels/<family>/<stem>.c plus one line KERNEL(family, stem, isa) in kernels.def.
 * The file exports `const struct hn_kernel hn_kernel_<stem>`; nothing else in it is visible.  CMake reads the
 * same list and gives the file the compiler flags of its isa, so a kernel may use its intrinsics freely and
 * must not be called on a machine (or under a HONE_CPU mask) whose tier is lower. */
#ifndef HN_CPU_KERNELS_KERNEL_H
#define HN_CPU_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* Instruction tiers, each including the ones before it, save HN_ISA_AVXVNNI: no tier but itself has it, since
 * most processors with AVX-512 have VNNI in its encoding alone, or not at all. */
typedef enum hn_isa {
  HN_ISA_SCALAR = 0,
  HN_ISA_AVX2,       /* AVX2 + FMA (+ F16C) */
  HN_ISA_AVXVNNI,    /* + AVX-VNNI: VNNI on vectors of 256 bits, without AVX-512 */
  HN_ISA_AVX512,     /* F, BW, DQ, VL */
  HN_ISA_AVX512VNNI, /* + VNNI */
  HN_ISA_AVX512BF16, /* + BF16 */
  HN_ISA_AMX,        /* + AMX tiles, bf16 and int8 */
  HN_ISA_COUNT
} hn_isa;

struct hn_kernel {
  const char *name;   /* the stem: file, symbol and bench label */
  const char *family; /* "gemm", "depthwise", "pool", ...: names the header with the type of `ops` and the
                         test adapter */
  const char *role; /* what it computes inside the family ("f32", "relu", "max"); kernels of equal family+role
                       are interchangeable */
  hn_isa isa;
  const void
      *ops; /* the family's table of functions and tile sizes; its type is in kernels/<family>/<family>.h */
};

/* Whether a tier has the instructions of the tier `wanted`. */
static inline bool hn_isa_has(hn_isa isa, hn_isa wanted) {
  return wanted <= isa && (wanted != HN_ISA_AVXVNNI || isa == HN_ISA_AVXVNNI);
}

/* All kernels in the order of kernels.def; the end is marked by NULL. */
extern const struct hn_kernel *const hn_kernels[];

/* The best kernel of a family and role whose tier isa has (the first line in kernels.def wins among
 * equals); NULL when there is none.  Cheap enough for every run, also for those that ask another time with
 * the same literals. */
const struct hn_kernel *hn_kernel_find(const char *family, const char *role, hn_isa isa);

#endif
