/* Products of warpgroups whose rows are output channels and whose columns are pixels, in shared memory. */
#ifndef HN_CUDA_PRODUCT_WGMMA_PIXELS_H
#define HN_CUDA_PRODUCT_WGMMA_PIXELS_H

#include <stdint.h>

#include "base/str.h"

/* Device text of D[64][n] = A[64][k] B[n][k]^T, D and A in registers: what adds to D, or what begins it.
 * type: f16 or bf16, k is 16; tf32, k is 8. */
void hn_wgmma_write_product(hn_str *t, const char *name, const char *type, int64_t n, bool adds);

/* The same of f16 or bf16 with A in shared memory, too; what it begins with is told when it runs. */
void hn_wgmma_write_shared(hn_str *t, const char *name, const char *type, int64_t n);
/* Both of codes, k is 32: A is i8, B u8 or i8. n: 16s from 32 on. */
void hn_wgmma_write_codes_product(hn_str *t, const char *name, bool is_signed, int64_t n, bool adds);
void hn_wgmma_write_codes(hn_str *t, const char *name, bool is_signed, int64_t n);

#endif
