/* Rows of numbers as e4m3 over one scale for all of them, so that the largest is the type's largest. fp8_most: the largest
 * number that each block sees; fp8_rows: codes in rows of whole sixteens (zeros fill the last), and the scale.
 *
 * Prefix: HN_T (f32, f16, bf16), HN_W: elements that are loaded at once (8, 1). */
#include "e4m3.cuh"
#include "fp8_args.h"
#include "divide.cuh"
#include "elements.cuh"

/* Sixteen numbers of item i; what is behind the end of its row is zero. */
HN_FN void hn_fetch(const hn_fp8_args *a, u32 i, float x[16]) {
  const u32 row = hn_quotient(i, &a->sixteens), column = (i - row * a->sixteens.by) * 16;
  const i64 at = row * a->row + column;
  const int left = (int)(a->length - column);
#if HN_W == 8
  if (left >= 16) {
    hn_load8(a->x, at, x);
    hn_load8(a->x, at + 8, x + 8);
    return;
  }
#endif
  HN_UNROLL for (int k = 0; k < 16; k++) x[k] = k < left ? hn_load(a->x, at + k) : 0.0f;
}

/* The largest of all threads' numbers, for all of them. */
HN_FN float hn_block_most(float x) {
  HN_SHARED float warps[8];
  x = hn_warp_max(x);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  HN_SYNC();
  HN_UNROLL for (int k = 0; k < 8; k++) x = fmaxf(x, warps[k]);
  return x;
}

HN_KERNEL_BOUNDS(fp8_most, hn_fp8_args, a, 256, 2) {
  float most = 0;
  HN_GRID_GO();
  HN_GRID_WAIT();
  for (u32 i = blockIdx.x * 256 + threadIdx.x; i < a.all; i += a.n_parts * 256) {
    float x[16];
    hn_fetch(&a, i, x);
    HN_UNROLL for (int k = 0; k < 16; k++) most = fmaxf(most, fabsf(x[k]));
  }
  most = hn_block_most(most);
  if (threadIdx.x == 0) ((float *)a.parts)[blockIdx.x] = most;
}

HN_KERNEL_BOUNDS(fp8_rows, hn_fp8_args, a, 256, 2) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  HN_GRID_WAIT();
  const float most = hn_block_most(threadIdx.x < a.n_parts ? ((const float *)a.parts)[threadIdx.x] : 0.0f);
  /* Of zeros, and of numbers so small that the inverse of their scale would be infinite, codes are as good. */
  const float scale = most > 0x1p-110f ? most / HN_E4M3_MOST : 1.0f;
  if (i == 0) *(float *)a.scale = scale;
  if (i >= a.all) return;
  const float inverse = 1.0f / scale;
  float x[16];
  u32 w[4];
  hn_fetch(&a, i, x);
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const float *v = x + 4 * k;
    w[k] = hn_e4m3x2(v[0] * inverse, v[1] * inverse) | hn_e4m3x2(v[2] * inverse, v[3] * inverse) << 16;
  }
  hn_st_words((u8 *)a.y + (i64)i * 16, w, 16);
}
