/* Family "gemm_bf16": products of bf16 numbers summed in f32, for operands rounded to bf16 (one part) and for
 * f32 operands split into two or three bf16 parts each; with role "f16" of operands rounded to f16.
 *
 * Split: part 1 = bf16(x), part 2 = bf16(x - part 1), part 3 = the rest.  With u = 2^-8, the rounding unit of
 * bf16, the first n parts leave at most u^n |x|; three hold all 24 bits of x.  Of x * y are taken
 * - one part: the product of both roundings, wrong by at most (2 u + u^2) |x y|;
 * - two parts: 1*1 + 1*2 + 2*1 (three products), wrong by at most (3 u^2 + O(u^3)) |x y| < 2^-14.3 |x y|, by
 *   2^-17 |x y| on average;
 * - three parts: 1*1 + 1*2 + 2*1 + 2*2 + 1*3 + 3*1 (six), wrong by at most (2 u^3 + O(u^4)) |x y| < 2^-22.9
 *   |x y|, by less than 2^-26 |x y| on average: beside sums in f32, nothing.
 * Sums are f32, six roundings a product of three parts. What is no number or beyond range: part 1 of a finite
 * number is finite (it is cut instead of rounded where rounding would overflow), the others of Inf and NaN
 * are 0.  An Inf operand gives Inf or NaN (Inf * a part of the other factor may be -Inf or NaN), and a
 * product just below the largest number Inf; who promises f32 looks for what is not finite among the sums.
 * The instructions take denormals as 0 and make none: three parts hold 24 bits of numbers from 2^-110 on,
 * fewer below.
 *
 * A: rows of K values in steps of 32; step s of row i starts at a + step[s] + i * row, part p at (p - 1) * lo
 * behind.  So A may be a matrix, or the pixels that one tap of a convolution meets.
 * B: panels of 32 columns, the last one 16 wide where that is enough; a panel is, step by step, tiles of 16
 * columns [16 pairs of k][16 columns][2]: tiles of part 1, then those of part 2 and 3.  What lies beyond K or
 * N is zero.  Weights of three parts are kept as f32 in the same order, 4 bytes instead of 6 a number, and
 * are split shortly before they are read (hn_bf16_part). f16: a step of a panel is 32 rows of its 32 (16)
 * columns. Numbers beyond 65504 are infinite. Products are exact, sums of HN_F16_RUN of them are made in f16,
 * and these are added in f32: with u = 2^-11 a sum of such a run is wrong by at most HN_F16_RUN u sum |x y|,
 * beside the rounding of the operands. */
#ifndef HN_KERNELS_GEMM_BF16_H
#define HN_KERNELS_GEMM_BF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

enum {
  HN_BF16_PANEL = 32, /* columns of a panel, floats from row to row of a block of results */
  HN_BF16_STEP = 32,  /* K values of a step */
  HN_BF16_TILE = 512, /* values of a tile of B: 32 k x 16 columns */
  HN_BF16_ROWS = 32,  /* rows of the largest block of results */
  HN_F16_RUN = 32     /* products of one sum in f16 */
};

/* Weights kept as f32 that become three parts on the way, in the shadow of the products: groups of 32 values
 * [first, last) of a panel's steps, each of `values` values. */
typedef struct hn_bf16_ahead {
  const float *from;
  uint16_t *to;
  uint32_t values, first, last;
} hn_bf16_ahead;

/* Flags of a store beside those of the epilogue: tensors that lie in the operands' own type of 16 bits.
 * PAIRS (fused alone, without residual): rows of 32 values as the family "depthwise_bf16" reads them, column
 * j and column 16 + j side by side; columns from n on are 0.
 * GELU (fused alone, with NARROW_C, BIAS at most beside it, where ops.gelu): Gelu by erf comes last, right to
 * 2^-13 of itself and |x| 2^-23, a thirtieth of what rounding to bf16 costs. */
enum { HN_BF16_NARROW_C = 256, HN_BF16_NARROW_RESIDUAL = 512, HN_BF16_PAIRS = 1024, HN_BF16_GELU = 2048 };

/* m x n results on their way to memory, with the epilogue (see epilogue.h). */
typedef struct hn_bf16_store {
  const float *from; /* HN_BF16_PANEL floats from row to row */
  void *c;           /* f32, or 16 bits: each result rounded to the nearest, ties to even */
  ptrdiff_t ldc;     /* in elements, as ldr */
  uint32_t m, n;
  uint32_t flags;
  float lo, hi, slope;
  const float *bias;
  const void *residual;
  ptrdiff_t ldr;
  const int32_t *at; /* fused: row i lies at c + at[i] instead of c + i * ldc (NULL: it does not) */
} hn_bf16_store;

typedef struct hn_bf16_tile {
  _Alignas(64) const uint16_t *a; /* aligned as hn_gemm_tile */
  const int32_t *step;            /* [steps] */
  size_t steps;
  size_t
      short_from; /* steps from here on have values of A and B in their first short_pairs pairs of k alone */
  uint32_t short_pairs; /* 0: all have 16. Kernels may multiply the rest all the same */
  ptrdiff_t row, lo;
  const uint16_t *b; /* 64-byte aligned */
  float *c;          /* HN_BF16_ROWS x HN_BF16_PANEL, 64-byte aligned; rows from m and columns from n on
                        may be overwritten */
  uint32_t rows;     /* as given to begin */
  uint32_t m, n;   /* 1 .. rows * row_tiles, 1 .. 32.  Rows of A up to the next multiple of `rows` are read */
  uint32_t parts;  /* of a number: 1, 2 or 3 */
  bool accumulate; /* add to what c holds from earlier steps */
  hn_bf16_ahead ahead;  /* of three parts alone */
  const char *prefetch; /* bytes that are pulled into L2 on the way (prefetch_bytes 0: none) */
  size_t prefetch_bytes;
  /* ops.meanwhile: results of an earlier block, not in c, that go to memory while this one is computed:
   * n_before stores, alike but for places and rows. */
  const hn_bf16_store *before;
  uint32_t n_before;
} hn_bf16_tile;

typedef struct hn_bf16_ops {
  uint32_t rows;      /* most rows of a row tile */
  uint32_t row_tiles; /* that one call takes */
  uint32_t parts;     /* of a number, at most */
  bool f16;           /* operands are f16 */
  bool gelu;          /* fused takes HN_BF16_GELU */
  bool meanwhile;     /* tile does t->before */
  double x1_rate; /* multiply-adds of x1 per one of f32 in the same time; 0: as the processor's VDPBF16PS */
  /* Around the calls of tile on one thread; rows: of a row tile. */
  void (*begin)(uint32_t rows);
  void (*end)(void);
  void (*tile)(const hn_bf16_tile *t);
  void (*store)(const hn_bf16_store *s);
  /* tile and store in one, for operands of one part: sums stay in registers (t->c, t->accumulate, s->from,
   * s->m and s->n are not used). m: any number of rows, none behind them is read. NULL: there is none. */
  void (*fused)(const hn_bf16_tile *t, const hn_bf16_store *s);
  /* n values to n first parts at `to`, and n of each further one `apart` behind. */
  void (*split)(const float *x, size_t n, uint16_t *to, ptrdiff_t apart, uint32_t parts);
  /* `pixels` rows of n floats, `pitch` apart, to steps: values 32 b .. 32 b + 31 of row i become 32 values of
   * each part, one behind the other, at to + b * block + i * 32 * parts.  Zeros beyond n. */
  void (*rows_to_steps)(const float *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to,
                        ptrdiff_t block, uint32_t parts);
  /* The same with one part, where x lies in the operands' type already. */
  void (*copy_to_steps)(const uint16_t *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to,
                        ptrdiff_t block);
  /* One tile of B as hn_bf16_pack says: at[] of one step, `live` columns, part 2 `apart` behind part 1; three
   * parts: as floats. False, with anything there: it holds numbers that only split takes. NULL: split does it
   * all. */
  bool (*pack_tile)(const float *b, const int64_t *at, int64_t sn, size_t live, float scale, uint16_t *to,
                    ptrdiff_t apart, uint32_t parts);
  /* Are all of m x n sums, as of tile, finite? NULL below three parts. */
  bool (*finite)(const float *sums, uint32_t m, uint32_t n);
} hn_bf16_ops;

/* Pairs of k in the last step of `values`, 0 where it is full. */
static inline uint32_t hn_bf16_short_pairs(int64_t values) {
  return (uint32_t)(values % HN_BF16_STEP + 1) / 2;
}

static inline size_t hn_bf16_round(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* Values (of 16 bits) of packed B of `steps` steps and n columns: as it is kept, and as tile reads it. */
static inline size_t hn_bf16_packed(size_t n, size_t steps, uint32_t parts) {
  return hn_bf16_round(n, 16) * steps * HN_BF16_STEP * (parts > 1 ? 2 : 1);
}
static inline size_t hn_bf16_parted(size_t n, size_t steps, uint32_t parts) {
  return hn_bf16_round(n, 16) * steps * HN_BF16_STEP * parts;
}

/* Products of parts that make one. */
static inline uint32_t hn_bf16_products(uint32_t parts) { return parts * (parts + 1) / 2; }

/* Packs columns n0 .. n1-1 (n0 a multiple of 32) of B into dst, the packed form of the whole B of n columns.
 * B's element in row k of step s and column j is b[at[s * 32 + k] + j * sn] * scale, or 0 where at[] is
 * negative. */
void hn_bf16_pack(const hn_bf16_ops *o, const float *b, const int64_t *at, int64_t sn, size_t steps, size_t n,
                  size_t n0, size_t n1, float scale, uint32_t parts, uint16_t *dst);
/* `steps` steps of a panel of n columns, packed for three parts, as tile reads them. */
void hn_bf16_part(const hn_bf16_ops *o, const uint16_t *packed, size_t n, size_t steps, uint16_t *to);

/* The kernel's x1_rate on this processor. */
double hn_bf16_rate(const hn_bf16_ops *o);

/* The kernel of the best tier at or below isa, NULL below avx512bf16; cheap enough for every run. */
const hn_bf16_ops *hn_bf16_find(hn_isa isa);
/* The same of f16; NULL also where the processor has no AVX512-FP16. */
const hn_bf16_ops *hn_f16_find(hn_isa isa);

#endif
