/* Part of the gemm family's adapter: the matmul driver. */
#ifndef HN_TESTS_KERNELS_GEMM_MATMUL_H
#define HN_TESTS_KERNELS_GEMM_MATMUL_H
#include "check.h"
void ck_matmul(ck *c, hn_isa isa);
#endif
