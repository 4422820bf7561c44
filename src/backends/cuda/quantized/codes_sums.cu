/* Before and behind a product of i8 that somebody else computes, with its sums in memory.
 * codes_signed: rows of codes as i8 (u8 less 128: one bit) in rows of whole sixteens; what fills the last is whatever it
 * is: the weights are zeros there. codes_requantise: sums to codes, as the product kernels do it.
 *
 * Prefix: that of product.cuh; HN_W: bytes that codes_signed loads at once. */
#define BM 1
#define BN 8
#define THREADS 256
#include "product.cuh"

#include "codes_sums_args.h"
#include "divide.cuh"
#include "elements.cuh"

HN_KERNEL_BOUNDS(codes_signed, hn_codes_signed_args, a, 256, 4) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.all) return;
  const u32 row = hn_quotient(i, &a.sixteens), column = (i - row * a.sixteens.by) * 16;
  const u8 *from = (const u8 *)a.x + row * a.row + column;
  const int left = (int)(a.length - column);
  u32 w[4];
  HN_GRID_WAIT();
  if (HN_W == 16 && left >= 16)
    hn_ld_words(w, from, 16);
  else
    hn_ld_some(w, from, 1, 16, left);
  HN_UNROLL for (int k = 0; k < 4; k++) w[k] ^= a.flip;
  hn_st_words((u8 *)a.y + (i64)i * 16, w, 16);
}

HN_KERNEL_BOUNDS(codes_requantise, hn_codes_sums_args, a, 256, 2) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.all) return;
  const u32 row = hn_quotient(i, &a.eights), column = (i - row * a.eights.by) * 8;
  hn_sum x[8];
  HN_GRID_WAIT();
  hn_get_sums(a.sums, row * a.pitch + column, x);
  hn_product_store8(&a.product, 0, row, column, x);
}
