/* Family "winograd": the transforms of Winograd's convolution F(m x m, 3 x 3), of stride 1 with m = 4 or 2,
 * of stride 2 with m = 3 or 2; roles with _bf16: of m = 2, and of stride 2, with products of bf16 (below).
 *
 *   Y = A^T [ sum over channels of (G g G^T) . (B^T d B) ] A,   . element by element
 *
 * d is an input tile of n x n pixels, n = m + 2, g a 3x3 filter, Y the m x m output pixels of the tile.  The
 * n^2 products ("frequencies") are matrix products over channels, done by the gemm family; this family brings
 * tiles there and back.  Toom-Cook's construction (Winograd, Arithmetic Complexity of Computations, 1980;
 * Lavin and Gray, arXiv:1509.09308) from the points
 *   m = 2:  0, 1, -1, infinity
 *   m = 4:  0, a, -a, b, -b, infinity  with a = sqrt(1/2), b = sqrt(2)
 * The symmetric points make the transforms cheap (even and odd parts are shared), and a * b = 1 balances
 * their norms: with 0, +-1, +-2 the error is several times as large.
 *
 * Stride 2.  Along an axis the outer taps w0 and w2 meet even pixels e of the tile, the middle tap
 * w1 odd ones o; n = 2 m + 1.  The outer taps are F(m, 2), from the points
 *   m = 2:  0, 1, infinity
 *   m = 3:  0, 1, -1, infinity
 * The m outputs of the middle tap are written as what m of these m + 1 points would give.  A point is
 * then the sum of one or two products ("pieces"), n in all; the matrix product sums them as it sums
 * channels, and A^T is that of F(m, 2).  The points are
 *   m = 2:  (e0 - e1) w0 + o0 w1
 *           e1 (w0 + w2)
 *           (e2 - e1) w2 + o1 w1
 *   m = 3:  (e0 - e2) w0 + (o0 - o1) w1
 *           (e1 + e2) (w0 + w2) / 2 + o1 w1
 *           (e2 - e1) (w0 - w2) / 2
 *           (e3 - e1) w2 + (o2 - o1) w1
 * In two dimensions a point has up to four pieces: n^2 products for the 9 m^2 of direct sums.
 *
 * Error.  All coefficients are rounded once, filters are transformed in f64 and rounded once, so each factor
 * of the sum carries few roundings: with eps = 2^-24 and c channels, every output y of a tile satisfies
 *   |y - exact| <= (c + K) eps ||A^T||^2 * max over frequencies of sum over channels of |U| |V|
 *   |U| <= ||G||^2 max|g|,   |V| <= ||B^T||^2 max|d|
 * so, as a norm-wise bound of a tile,
 *   |y - exact| <= (c + K) eps N sum over channels of max|g| max|d|,
 *   N = (||A^T|| ||G|| ||B^T||)^2 in the infinity norm, K = 30 (roundings of the three transforms)
 * With stride 2 a frequency sums up to four products a channel: c is four times the channels, and ||G||
 * ||B^T|| is the largest sum over the pieces of a point of |G| |B^T|.  N is the form's below; typical errors
 * are far smaller.  The bound is of the tile, not of the element: a small output beside large ones has the
 * absolute error of the large ones.  Underflow adds at most (c + K) ||A^T||^2 2^-149.
 *
 * Products of bf16: U and V are rounded to bf16 on their way into the product, which is summed in f32.  With
 * u = 2^-8, twice the rounding unit, |y - exact| grows by at most (2 u + u^2) N sum over channels of max|g|
 * max|d|; typically by 2.4 times what direct sums of rounded factors are off (measured: normal numbers, 64
 * and 256 channels; with stride 2 2.3 times for m = 2 and 2.4 for m = 3).  m = 4 would be off by 7 times as
 * much, which is why it has no such role.
 *
 * Inf and NaN.  A tile whose n x n input pixels hold an Inf or a NaN has NaN in any of its m x m outputs,
 * more of them than the direct sum would; it never turns into a finite number where the direct sum has none.
 * Other tiles are not touched.  Values beyond FLT_MAX / ||B^T||^2 may overflow early. */
#ifndef HN_KERNELS_WINOGRAD_H
#define HN_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

enum {
  HN_WINOGRAD_MAX_POINTS = 6, /* along one axis */
  HN_WINOGRAD_MAX_PIECES = 7
};
#define HN_WINOGRAD_STEP 32      /* channels that a product of bf16 takes at a time */
#define HN_WINOGRAD_ROUNDINGS 30 /* K above */

/* One input tile: x is pixel (0, 0) of the tile, of which only rows [y0, y1) and columns [x0, x1) lie inside
 * the image; the others count as zero and are not read. */
typedef struct hn_winograd_in {
  const void *x; /* f32, or bf16 where narrow */
  ptrdiff_t row, pixel;
  int32_t y0, y1, x0, x1;
  size_t channels;
  void *v; /* f32; products of bf16: bf16.  The tile's channels of piece q of n of a frequency that has
              `before` pieces before it go to v + before * frequency + n * tile + q * pitch, written up to a
              multiple of vw; products of bf16: of HN_WINOGRAD_STEP */
  ptrdiff_t frequency, tile, pitch;
  bool narrow; /* products of bf16 only */
} hn_winograd_in;

/* One output tile; only the first `rows` x `columns` pixels are written, `channels` floats each. */
typedef struct hn_winograd_out {
  const float *m; /* frequency f's channels are at m + f * frequency, readable up to a multiple of vw;
                     products of bf16: HN_WINOGRAD_STEP of them at a time, `group` apart */
  ptrdiff_t frequency, group;
  void *y; /* f32, or bf16 where narrow */
  ptrdiff_t row, pixel;
  int32_t rows, columns;
  size_t channels;
  uint32_t flags;      /* HN_EPI_* */
  float lo, hi, slope; /* as in hn_epilogue */
  const float *bias;
  const void *residual; /* f32, or bf16 where narrow_residual */
  ptrdiff_t residual_row, residual_pixel;
  bool narrow, narrow_residual; /* products of bf16 only */
} hn_winograd_out;

/* The algorithm along one axis; in two dimensions points and pieces are pairs of these. */
typedef struct hn_winograd_form {
  int64_t m, stride;
  int64_t points; /* frequencies of M */
  int64_t pieces; /* matrices of V and of the weights, and input pixels of a tile */
  int32_t first[HN_WINOGRAD_MAX_POINTS + 1]; /* point i is the sum of pieces first[i] up to first[i + 1] */
  double norm;                               /* N of the bound above */
  double input_flops, output_flops; /* of the transforms of a tile, a channel: operations of one line (a
                                       multiply-add counts 2) times the lines of both directions */
} hn_winograd_form;

/* The form of m and stride, NULL where there is none. */
const hn_winograd_form *hn_winograd_form_of(int64_t m, int64_t stride);

/* Products that one output sums, of `channels`. */
static inline int64_t hn_winograd_terms(const hn_winograd_form *f, int64_t channels) {
  return f->stride * f->stride * channels;
}

typedef struct hn_winograd_ops {
  uint32_t m, stride, vw;
  void (*input)(const hn_winograd_in *t);
  void (*output)(const hn_winograd_out *t);
} hn_winograd_ops;

/* The kernel of the form's f32 role of the best tier at or below isa. */
const hn_winograd_ops *hn_winograd_find(hn_isa isa, const hn_winograd_form *form);
/* The same for products of bf16; NULL below avx512bf16, and for a form that has none. */
const hn_winograd_ops *hn_winograd_bf16_find(hn_isa isa, const hn_winograd_form *form);

#endif
