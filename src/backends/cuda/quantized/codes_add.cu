/* Sums of what two tensors' codes mean, as codes: a thread makes sixteen. Rows (pixels) are whole sixteens of bytes, of
 * which args.length codes are there and the rest are zeros; or all is one row that may end anywhere.
 * Prefix: HN_CODE, HN_A, HN_B: u8 or i8; HN_ROWS: rows are whole sixteens; HN_W: bytes that are loaded at once. */
#include "codes.cuh"
#include "codes_add_args.h"
#include "divide.cuh"
#include "elements.cuh"

HN_FN void hn_fetch(u32 w[4], const u8 *from, int there) {
#if HN_W == 16
  if (there >= 16) {
    hn_ld_words(w, from, 16);
    return;
  }
#endif
  hn_ld_some(w, from, 1, 16, there);
}

HN_KERNEL_BOUNDS(codes_add, hn_codes_add_args, a, 256, 4) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.sixteens) return;
  const u32 row = hn_quotient(i, &a.row), column = (i - row * a.row.by) * 16;
  const int left = (int)a.length - (int)column;
#ifdef HN_ROWS
  const int there = 16;
#else
  const int there = left < 16 ? left : 16;
#endif
  const i64 at = (i64)i * 16;
  u32 x[4], y[4], z[4];
  HN_GRID_WAIT();
  hn_fetch(x, (const u8 *)a.a + at, there);
  hn_fetch(y, (const u8 *)a.b + at, there);
  HN_UNROLL for (int k = 0; k < 4; k++) {
    float p[4], q[4];
    i32 sum[4];
    HN_UNROLL for (int j = 0; j < 4; j++) {
      p[j] = HN_PASTE(HN_PICK_, HN_A)(x[k], j) - a.sum.a_zero;
      q[j] = HN_PASTE(HN_PICK_, HN_B)(y[k], j) - a.sum.b_zero;
    }
    hn_add_codes4(p, q, &a.sum, sum);
    z[k] = hn_pack_codes(sum[0], sum[1], sum[2], sum[3]);
    const int mine = left - 4 * k;
    if (mine < 4) z[k] = mine <= 0 ? 0 : z[k] & 0xffffffffu >> (32 - 8 * mine);
  }
#if HN_W == 16
  if (there == 16) {
    hn_st_words((u8 *)a.y + at, z, 16);
    return;
  }
#endif
  hn_st_some((u8 *)a.y + at, z, 1, 16, there);
}
