/* Family "winograd": the transforms of Winograd's convolution F(m x m, 3 x 3), m = 4 or 2; role "f2_bf16": of
 * m = 2 with products of bf16 (below).
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
 * Error.  All coefficients are rounded once, filters are transformed in f64 and rounded once, so each factor
 * of the sum carries few roundings: with eps = 2^-24 and c channels, every output y of a tile satisfies
 *   |y - exact| <= (c + K) eps ||A^T||^2 * max over frequencies of sum over channels of |U| |V|
 *   |U| <= ||G||^2 max|g|,   |V| <= ||B^T||^2 max|d|
 * so, as a norm-wise bound of a tile,
 *   |y - exact| <= (c + K) eps N sum over channels of max|g| max|d|,
 *   N = (||A^T|| ||G|| ||B^T||)^2 in the infinity norm, K = 30 (roundings of the three transforms)
 * N is hn_winograd_norm below; typical errors are far smaller.  The bound is of the tile, not of the element:
 * a small output beside large ones has the absolute error of the large ones.  Underflow adds at most (c + K)
 * ||A^T||^2 2^-149.
 *
 * Products of bf16: U and V are rounded to bf16 on their way into the product, which is summed in f32.  With
 * u = 2^-8, twice the rounding unit, |y - exact| grows by at most (2 u + u^2) N sum over channels of max|g|
 * max|d|; typically by 2.4 times what direct sums of rounded factors are off (measured: normal numbers, 64
 * and 256 channels).  m = 4 would be off by 7 times as much, which is why it has no such role.
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

#define HN_WINOGRAD_MAX_N 6
#define HN_WINOGRAD_STEP 32      /* channels that a product of bf16 takes at a time */
#define HN_WINOGRAD_ROUNDINGS 30 /* K above */

/* One input tile: x is pixel (0, 0) of the tile, of which only rows [y0, y1) and columns [x0, x1) lie inside
 * the image; the others count as zero and are not read. */
typedef struct hn_winograd_in {
  const void *x; /* f32, or bf16 where narrow */
  ptrdiff_t row, pixel;
  int32_t y0, y1, x0, x1;
  size_t channels;
  void *v; /* frequency f's channels go to v + f * frequency, written up to a multiple of vw; products of
              bf16: bf16, written up to a multiple of HN_WINOGRAD_STEP */
  ptrdiff_t frequency;
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

typedef struct hn_winograd_ops {
  uint32_t m, vw;
  void (*input)(const hn_winograd_in *t);
  void (*output)(const hn_winograd_out *t);
} hn_winograd_ops;

/* Rows of G for m: n x 3, f64. */
extern const double hn_winograd_g2[4][3], hn_winograd_g4[6][3];
static inline const double (*hn_winograd_g(int64_t m))[3] { return m == 2 ? hn_winograd_g2 : hn_winograd_g4; }

/* N of the bound above: (3 * 1.5 * 2)^2, and (7.3640 * 1.4715 * 5.1214)^2 rounded up. */
static inline double hn_winograd_norm(int64_t m) { return m == 2 ? 81.0 : 3080.0; }

/* Operations of the transforms of a tile, a channel: those of one line (a multiply-add counts 2) times the
 * lines of both directions. */
static inline double hn_winograd_input_flops(int64_t m) { return m == 2 ? 4.0 * 8 : 22.0 * 12; }
static inline double hn_winograd_output_flops(int64_t m) { return m == 2 ? 4.0 * 6 : 16.0 * 10; }

/* The kernel of F(m x m, 3 x 3) of the best tier <= isa. */
const hn_winograd_ops *hn_winograd_find(hn_isa isa, int64_t m);
/* The same for products of bf16, m = 2; NULL below avx512bf16. */
const hn_winograd_ops *hn_winograd_bf16_find(hn_isa isa);

#endif
