/* Products of f64, and of integers of 32 and 64 bits. */
#ifndef HN_CPU_PRODUCT_MATMUL_WIDE_H
#define HN_CPU_PRODUCT_MATMUL_WIDE_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef struct hn_matmul_wide_config {
  bool gemm;
} hn_matmul_wide_config;

HN_FAMILY_PACKED(hn_matmul_wide);

#define hn_cpu_wide_tactic(NAME, ANCHOR, ...)                                                                \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 1, hn_matmul_wide, __VA_ARGS__)

#endif
