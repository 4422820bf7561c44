/* Before and behind a product of i8 that somebody else computes, with its sums in memory.
 * codes_signed: rows of codes as i8 (u8 less 128: one bit) in rows of whole sixteens; what fills the last is whatever it
 * is: the weights are zeros there. codes_signed_image: the same of pixels, with those around the image that taps reach.
 * codes_requantise: sums to codes, as the product kernels do it.
 *
 * Prefix: that of product.cuh; HN_W: bytes that the former load at once; HN_SUMS_F32: sums lie in memory as f32. */
#define BM 1
#define BN 8
#define THREADS 256
#include "product.cuh"

#include "codes_sums_args.h"
#include "divide.cuh"
#include "elements.cuh"

/* Sixteen codes of a row, of which `left` are there, as i8. */
HN_FN void hn_signed(u32 w[4], const u8 *from, int left, u32 flip) {
  if (HN_W == 16 && left >= 16)
    hn_ld_words(w, from, 16);
  else
    hn_ld_some(w, from, 1, 16, left);
  HN_UNROLL for (int k = 0; k < 4; k++) w[k] ^= flip;
}

HN_KERNEL_BOUNDS(codes_signed, hn_codes_signed_args, a, 256, 4) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.all) return;
  const u32 row = hn_quotient(i, &a.sixteens), column = (i - row * a.sixteens.by) * 16;
  u32 w[4];
  HN_GRID_WAIT();
  hn_signed(w, (const u8 *)a.x + row * a.row + column, (int)(a.length - column), a.flip);
  hn_st_words((u8 *)a.y + (i64)i * 16, w, 16);
}

HN_KERNEL_BOUNDS(codes_signed_image, hn_codes_signed_args, a, 256, 4) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.all) return;
  const u32 pixel = hn_quotient(i, &a.sixteens), column = (i - pixel * a.sixteens.by) * 16;
  const u32 line = hn_quotient(pixel, &a.across), image = hn_quotient(line, &a.down);
  const i32 x = (i32)(pixel - line * a.across.by) - a.pad_x, y = (i32)(line - image * a.down.by) - a.pad_y;
  const bool inside = x >= 0 && x < a.in_x && y >= 0 && y < a.in_y;
  u32 w[4];
  HN_GRID_WAIT();
  if (inside)
    hn_signed(w, (const u8 *)a.x + image * a.image + ((i64)y * a.in_x + x) * a.row + column, (int)(a.length - column), a.flip);
  else
    HN_UNROLL for (int k = 0; k < 4; k++) w[k] = a.outside;
  hn_st_words((u8 *)a.y + (i64)i * 16, w, 16);
}

HN_KERNEL_BOUNDS(codes_requantise, hn_codes_sums_args, a, 256, 2) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.all) return;
  const u32 row = hn_quotient(i, &a.eights), column = (i - row * a.eights.by) * 8;
  hn_sum x[8];
  HN_GRID_WAIT();
#ifdef HN_SUMS_F32
  float f[8];
  hn_load8_f32(a.sums, row * a.pitch + column, f);
  HN_UNROLL for (int k = 0; k < 8; k++) x[k] = (i32)f[k];
#else
  hn_get_sums(a.sums, row * a.pitch + column, x);
#endif
  hn_product_store8(&a.product, 0, row, column, x);
}
