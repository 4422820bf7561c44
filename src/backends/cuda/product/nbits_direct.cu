/* MatMulNBits by its definition: codes, scales and zero points as the model has them, rows of K in any groups. A warp
 * has a column and up to eight rows of A; a thread every 32nd byte of the column's codes.
 *
 * p: rows, columns and K of the product, bytes of a column's codes, blocks of K and their length, bytes of a column's
 * zero points, bits of a code. Defines HN_ZEROS 1 (codes) or 2 (floats), HN_GROUPED, HN_BIAS. */
#include "direct.cuh"

enum { ROWS = 8, WARPS = 4 };

HN_FN u32 code_at(const void *from, i64 byte, u32 i, u32 bits) {
  const u32 each = 8 / bits;
  return ((const u8 *)from)[byte + i / each] >> (i % each * bits) & ((1u << bits) - 1);
}

HN_FN float zero_of(const hn_direct_args *a, i64 n, u32 block) {
#if HN_ZEROS == 2
  return (float)HN_IN(3, n * a->p[4] + block);
#elif HN_ZEROS == 1
  return (float)code_at(a->in[3], n * a->p[6], block, (u32)a->p[7]);
#else
  return (float)(1u << (a->p[7] - 1));
#endif
}

HN_EACH_BLOCK_OF(nbits_direct, 32 * WARPS) {
  const u32 m = (u32)a->p[0], k = (u32)a->p[2], bits = (u32)a->p[7], each = 8 / bits, lane = threadIdx.x % 32;
  const u32 across = ((u32)a->p[1] + WARPS - 1) / WARPS, m0 = i / across * ROWS;
  const i64 n = (i64)(i % across) * WARPS + threadIdx.x / 32;
  if (n >= a->p[1]) return;
  float sum[ROWS];
  HN_UNROLL for (u32 r = 0; r < ROWS; r++) sum[r] = 0;
  for (u32 byte = lane; byte < (k + each - 1) / each; byte += 32)
    for (u32 e = 0; e < each; e++) {
      const u32 at = byte * each + e;
      if (at >= k) break;
#ifdef HN_GROUPED
      const u32 block = (u32)((const i32 *)a->in[4])[at];
#else
      const u32 block = at / (u32)a->p[5];
#endif
      const float x = ((float)code_at(a->in[1], n * a->p[3], at, bits) - zero_of(a, n, block)) *
                      (float)HN_IN(2, n * a->p[4] + block);
      HN_UNROLL for (u32 r = 0; r < ROWS; r++)
        if (m0 + r < m) sum[r] += (float)HN_IN(0, (i64)(m0 + r) * k + at) * x;
    }
  HN_UNROLL for (u32 r = 0; r < ROWS; r++) {
    float y = hn_warp_sum(sum[r]);
#ifdef HN_BIAS
    y += (float)HN_IN(5, n);
#endif
    if (lane == 0 && m0 + r < m) HN_OUT(0, (m0 + r) * a->p[1] + n, y);
  }
}
