/* The tier-independent part of transpose_<tier>.c: blocked loops around a square tile, and the edges. A tier
 * defines before including it, for each size that it has a fast tile for: TILE4 side of the 4-byte tile,
 * tile4(dst, ldd, src, lds); TILE1 and tile1, TILE8 and tile8 likewise, TILE2 and tile2 with a smaller one
 * beside it; PLANAR3 with interleave_vec and deinterleave_vec for whole vectors of PLANAR3 pixels,
 * PLANAR3_BYTES with interleave_bytes and deinterleave_bytes for those of bytes. */
#include "backends/cpu/kernels/transpose/transpose.h"

#include "base/fault.h"

/* Edges and small matrices: 16 source rows at a time, so that the written lines stay in L1. */
#define PLAIN(type, nm)                                                                                      \
  static void nm(type *dst, ptrdiff_t ldd, const type *src, ptrdiff_t lds, size_t rows, size_t cols) {       \
    for (size_t r0 = 0; r0 < rows; r0 += 16) {                                                               \
      const size_t end = rows - r0 < 16 ? rows : r0 + 16;                                                    \
      for (size_t c = 0; c < cols; c++)                                                                      \
        for (size_t r = r0; r < end; r++)                                                                    \
          dst[(ptrdiff_t)c * ldd + (ptrdiff_t)r] = src[(ptrdiff_t)r * lds + (ptrdiff_t)c];                   \
    }                                                                                                        \
  }
PLAIN(uint8_t, plain1)
PLAIN(hn_bits2, plain2)
PLAIN(hn_bits4, plain4)
PLAIN(hn_bits8, plain8)

/* Whole tiles; the last one of a row or column of tiles is moved back so that it ends at the edge, writing
 * some elements a second time. Matrices narrower than a tile go element by element. */
#define TILED(type, nm, side, tile, plain)                                                                   \
  static void nm(void *dst_, ptrdiff_t ldd, const void *src_, ptrdiff_t lds, size_t rows, size_t cols) {     \
    type *dst = dst_;                                                                                        \
    const type *src = src_;                                                                                  \
    if (rows < (side) || cols < (side)) {                                                                    \
      plain(dst, ldd, src, lds, rows, cols);                                                                 \
      return;                                                                                                \
    }                                                                                                        \
    for (size_t r0 = 0; r0 < rows; r0 += (side)) {                                                           \
      const ptrdiff_t r = (ptrdiff_t)(r0 + (side) <= rows ? r0 : rows - (side));                             \
      if (HN_FAULT("transpose_edge") && (size_t)r != r0) continue;                                           \
      for (size_t c0 = 0; c0 < cols; c0 += (side)) {                                                         \
        const ptrdiff_t c = (ptrdiff_t)(c0 + (side) <= cols ? c0 : cols - (side));                           \
        tile(dst + c * ldd + r, ldd, src + r * lds + c, lds);                                                \
      }                                                                                                      \
    }                                                                                                        \
  }

#ifdef TILE1
TILED(uint8_t, tiles1, TILE1, tile1, plain1)

/* The edges of image networks: three planes of bytes to pixels without gaps, and back. */
static void matrix1(void *dst_, ptrdiff_t ldd, const void *src_, ptrdiff_t lds, size_t rows, size_t cols) {
  uint8_t *dst = dst_;
  const uint8_t *src = src_;
  size_t i = 0;
  if (rows == 3 && ldd == 3) {
    for (; i + PLANAR3_BYTES <= cols; i += PLANAR3_BYTES)
      interleave_bytes(dst + 3 * i, src + i, src + lds + i, src + 2 * lds + i);
    plain1(dst + 3 * i, ldd, src + i, lds, rows, cols - i);
  } else if (cols == 3 && lds == 3) {
    for (; i + PLANAR3_BYTES <= rows; i += PLANAR3_BYTES)
      deinterleave_bytes(dst + i, dst + ldd + i, dst + 2 * ldd + i, src + 3 * i);
    plain1(dst + i, ldd, src + 3 * i, lds, rows - i, cols);
  } else {
    tiles1(dst, ldd, src, lds, rows, cols);
  }
}
#else
static void matrix1(void *dst, ptrdiff_t ldd, const void *src, ptrdiff_t lds, size_t rows, size_t cols) {
  plain1(dst, ldd, src, lds, rows, cols);
}
#endif
#ifdef TILE2
TILED(hn_bits2, small2, TILE2_SMALL, tile2_small, plain2)
TILED(hn_bits2, tiles2, TILE2, tile2, plain2)

/* Two tiles write a whole line. */
static void matrix2(void *dst_, ptrdiff_t ldd, const void *src_, ptrdiff_t lds, size_t rows, size_t cols) {
  enum { STRIP = 2 * TILE2 };
  hn_bits2 *dst = dst_;
  const hn_bits2 *src = src_;
  if (rows < TILE2 || cols < TILE2) {
    small2(dst, ldd, src, lds, rows, cols);
    return;
  }
  size_t r = 0;
  for (; r + STRIP + TILE2 <= rows; r += STRIP, src += STRIP * lds, dst += STRIP)
    for (size_t c0 = 0; c0 < cols; c0 += TILE2) {
      const ptrdiff_t c = (ptrdiff_t)(c0 + TILE2 <= cols ? c0 : cols - TILE2);
      tile2(dst + c * ldd, ldd, src + c, lds);
      tile2(dst + c * ldd + TILE2, ldd, src + TILE2 * lds + c, lds);
    }
  tiles2(dst, ldd, src, lds, rows - r, cols);
}
#else
static void matrix2(void *dst, ptrdiff_t ldd, const void *src, ptrdiff_t lds, size_t rows, size_t cols) {
  plain2(dst, ldd, src, lds, rows, cols);
}
#endif
#ifdef TILE4
TILED(hn_bits4, matrix4, TILE4, tile4, plain4)
#else
static void matrix4(void *dst, ptrdiff_t ldd, const void *src, ptrdiff_t lds, size_t rows, size_t cols) {
  plain4(dst, ldd, src, lds, rows, cols);
}
#endif
#ifdef TILE8
TILED(hn_bits8, matrix8, TILE8, tile8, plain8)
#else
static void matrix8(void *dst, ptrdiff_t ldd, const void *src, ptrdiff_t lds, size_t rows, size_t cols) {
  plain8(dst, ldd, src, lds, rows, cols);
}
#endif

static void interleave(uint32_t *dst, const uint32_t *a, const uint32_t *b, const uint32_t *c, size_t n) {
  size_t i = 0;
#ifdef PLANAR3
  for (; i + PLANAR3 <= n; i += PLANAR3) interleave_vec(dst + 3 * i, a + i, b + i, c + i);
#endif
  for (; i < n; i++) dst[3 * i] = a[i], dst[3 * i + 1] = b[i], dst[3 * i + 2] = c[i];
}

static void deinterleave(uint32_t *a, uint32_t *b, uint32_t *c, const uint32_t *src, size_t n) {
  size_t i = 0;
#ifdef PLANAR3
  for (; i + PLANAR3 <= n; i += PLANAR3) deinterleave_vec(a + i, b + i, c + i, src + 3 * i);
#endif
  for (; i < n; i++) a[i] = src[3 * i], b[i] = src[3 * i + 1], c[i] = src[3 * i + 2];
}

static const struct hn_transpose_ops table = {
    .matrix = {matrix1, matrix2, matrix4, matrix8}, .interleave3 = interleave, .deinterleave3 = deinterleave};
