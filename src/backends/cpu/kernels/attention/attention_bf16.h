/* What attention needs around the gemm_bf16 kernels (gemm_bf16.h says how A and B lie): scores become weights
 * in bf16 parts, and keys and values, which no plan can pack beforehand, become B; numbers in one or two bf16
 * parts (of numbers that round to infinity, and of NaN, the first alone). */
#ifndef HN_KERNELS_ATTENTION_BF16_H
#define HN_KERNELS_ATTENTION_BF16_H

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"

/* Floats from a panel of scores to the next, and values from a step of A to the next: not 4 KiB, where a load
 * seems to wait for a store before it, and the panels of a row would share their sets of L1. */
enum { HN_SCORE_PANEL = HN_BF16_ROWS * HN_BF16_PANEL + HN_BF16_PANEL };
static inline ptrdiff_t hn_bf16_a_row(uint32_t parts) { return 32 * (ptrdiff_t)parts; }
static inline ptrdiff_t hn_bf16_a_step(uint32_t parts) { return (HN_BF16_ROWS + 1) * hn_bf16_a_row(parts); }

/* Rows of scores on their way to weights: row i of 32 scores at a time begins at x + i * HN_BF16_PANEL, the
 * next 32 lie HN_SCORE_PANEL floats behind them. */
typedef struct hn_weight_rows {
  float *x;
  size_t m, n; /* rows, scores of a row */
  float scale;
  const hn_mask_row (*mask)[HN_ATTENTION_MASKS]; /* [m]; not read without masks */
  uint32_t n_masks;
  float *top, *sum; /* [m]: as hn_attention_ops.row's *top, and what it returns */
  uint16_t *to;     /* rows of A, hn_bf16_a_row apart; zeros up to the end of the last step */
  uint32_t parts;
} hn_weight_rows;

/* One part may lie in bf16 already (narrow), where keys, values and results are bf16 numbers. */
typedef struct hn_attention_bf16_ops {
  /* As hn_attention_ops.row, for some rows. With one part an exponential is right to 2^-13 of itself, which
   * is a thirtieth of what rounding to bf16 costs. */
  void (*rows)(const hn_weight_rows *r);
  /* A panel of B from n <= 32 keys: rows of `depth` values, `row` apart, that become its columns. */
  void (*pack_keys)(const void *k, bool narrow, ptrdiff_t row, size_t n, size_t depth, uint16_t *panel,
                    uint32_t parts);
  /* A panel of B: columns of n <= 32 values in `keys` rows, `row` apart. */
  void (*pack_values)(const void *v, bool narrow, ptrdiff_t row, size_t n, size_t keys, uint16_t *panel,
                      uint32_t parts);
  /* y = keep y + take c for n <= HN_BF16_PANEL values of m rows; y is not read where keep is 0. */
  void (*blend)(float *y, ptrdiff_t row, const float *c, size_t m, size_t n, const float *keep,
                const float *take);
  /* y = take c in bf16. */
  void (*blend_narrow)(uint16_t *y, ptrdiff_t row, const float *c, size_t m, size_t n, const float *take);
} hn_attention_bf16_ops;

static inline const hn_attention_bf16_ops *hn_attention_bf16_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("attention", "bf16", isa);
  return k ? (const hn_attention_bf16_ops *)k->ops : NULL;
}

#endif
