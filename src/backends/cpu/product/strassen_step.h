/* MatMul and Gemm by seven products of quarters (strassen_driver.h): constant weights, many rows. */
#ifndef HN_CPU_PRODUCT_STRASSEN_STEP_H
#define HN_CPU_PRODUCT_STRASSEN_STEP_H

#include "backends/cpu/product/matmul_step.h"

typedef struct hn_strassen_step_config {
  hn_matmul_describe describe;
} hn_strassen_step_config;

HN_FAMILY_COUNTED(hn_strassen_step);

#define hn_cpu_strassen_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_COUNTED(cpu, NAME, ANCHOR, 1, hn_strassen_step, __VA_ARGS__)

#endif
