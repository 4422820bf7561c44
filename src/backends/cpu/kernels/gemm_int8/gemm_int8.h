/* Family "gemm_int8": products of u8 and s8 codes summed in i32, and their way back to 8 bits, or to f32:
 *
 *   s = bias[j] + sum a[k] b[k, j] + row_sum[i] * offset[j]
 *   y = saturate(round_half_even(f32(s) * scale[j]) + zero)
 *   y = f32(s) * scale[j]                                        (wide)
 *   y = s                                                        (whole)
 *
 * Sums wrap modulo 2^32 and nothing saturates on the way, so a result that fits i32 is exact in every tier.
 * The zero point of A is the caller's: bias holds -zero * (sum of B's column).  A product with the scale must
 * stay below 2^31.
 *
 * With row_sum[i] the sum of row i of A the weights are b + offset: nine bits, as codes less any zero point.
 *
 * A: m rows of k bytes.  B: blocks of 16 columns, each k / 4 groups of [16 columns][4 values of k], zeros
 * beyond K and N; bias, offset and scale are as wide as B. */
#ifndef HN_KERNELS_GEMM_INT8_H
#define HN_KERNELS_GEMM_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_INT8_BLOCK = 16, HN_INT8_SEGMENTS = 64 };

/* Fours of a block's K, in the order in which a tile takes them: first those whose products fit 16 bits in
 * pairs, whatever A holds. */
typedef struct hn_int8_fours {
  uint32_t narrow, n; /* how many of them fit, of all */
  struct hn_int8_four {
    uint32_t a, b; /* bytes from the row's first segment, from the block */
  } at[];
} hn_int8_fours;

typedef struct hn_int8_tile {
  _Alignas(64) const uint8_t *a; /* aligned as hn_gemm_tile */
  ptrdiff_t lda;
  size_t k;          /* of a segment: a multiple of k_step; bytes of A beyond its own K meet zeros of B */
  uint32_t segments; /* parts of a row, 1 .. HN_INT8_SEGMENTS; B has them one after the other */
  const int64_t *segment_at; /* where they begin, bytes from the first; NULL: one, at 0 */
  const int8_t *b; /* 64-byte aligned; the next block of columns is 16 * k * segments bytes behind */
  const hn_int8_fours *fours; /* of the block, where the family has `arrange`; NULL: not known */
  const int8_t *ahead;  /* what a later tile reads as B, asked for early; readable or not; NULL: nothing */
  ptrdiff_t ahead_step; /* bytes of it for every four values of k */
  const int32_t *bias;
  const int32_t *row_sum,
      *offset;        /* [m], of which [m + 3] may be read; a value a column; NULL, both: no offsets */
  const float *scale; /* not read where `whole` */
  void *c;
  ptrdiff_t ldc; /* bytes */
  uint32_t m, n; /* 1 .. mr, 1 .. nr */
  int32_t zero;
  bool is_signed; /* results are i8, else u8 */
  bool wide;      /* results are f32 */
  bool whole;     /* and wide: i32, the sums themselves */
} hn_int8_tile;

/* Rows of A whose sums are wanted, and where they go. */
typedef struct hn_int8_rows {
  const uint8_t *a;
  ptrdiff_t lda;
  size_t k; /* of a segment: all of it counts */
  uint32_t segments;
  const int64_t *segment_at; /* as in hn_int8_tile */
  int64_t rows;
  int32_t *sums;
} hn_int8_rows;

/* A matrix that the run computes, which becomes B. */
typedef struct hn_int8_operand {
  const uint8_t *b; /* k rows of n codes */
  ptrdiff_t ldb;    /* bytes from row to row */
  size_t k, n;
  size_t k_packed; /* bytes of a column, a multiple of 4 */
  uint8_t turn;    /* codes are turned by it: 0x80 where they are u8, which makes them s8 less 128, else 0 */
  int8_t *dst;     /* 64-byte aligned; whole blocks of columns */
  int32_t *sums;   /* of each column as it is turned, whole blocks */
} hn_int8_operand;

typedef struct hn_int8_ops {
  uint32_t mr, nr; /* rows and columns of a tile; nr is a multiple of 16 */
  uint32_t k_step;
  uint32_t whole_rows; /* tiles are read in multiples of that many rows */
  bool ahead_outside;  /* asking ahead pays only for weights that do not stay in L2 */
  double rate;         /* multiply-adds per one of the f32 kernel of the same tier */
  /* Around the calls of tile on one thread. */
  void (*begin)(void);
  void (*end)(void);
  void (*tile)(const hn_int8_tile *t);
  void (*sum_rows)(const hn_int8_rows *r);
  void (*operand)(const hn_int8_operand *b);
  /* Of a packed block with `n` fours: the order, and how many fit. NULL: the kernel takes them as they lie.
   */
  uint32_t (*arrange)(const int8_t *b, uint32_t n, struct hn_int8_four *at);
} hn_int8_ops;

static inline size_t hn_int8_round(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* The kernel of the best tier at or below isa; cheap enough for every run. */
const hn_int8_ops *hn_int8_find(hn_isa isa);

#endif
