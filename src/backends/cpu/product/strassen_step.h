/* Gemm and MatMul by a constant B, with one step of Strassen's method. */
#ifndef HN_CPU_PRODUCT_STRASSEN_STEP_H
#define HN_CPU_PRODUCT_STRASSEN_STEP_H

#include "backends/cpu/product/matmul_step.h"
#include "backends/cpu/product/strassen_driver.h"

typedef struct hn_strassen_config {
  hn_matmul_describe describe;
} hn_strassen_config;

HN_FAMILY_COUNTED(hn_strassen);
HN_FAMILY_SHARED(hn_strassen);

#define hn_cpu_strassen_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_COUNTED_SHARED(cpu, NAME, ANCHOR, 2, hn_strassen, __VA_ARGS__)

#endif
