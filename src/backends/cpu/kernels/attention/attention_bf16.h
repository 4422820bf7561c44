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

typedef struct hn_attention_bf16_ops {
  /* As hn_attention_ops.row, for n scores of which 32 at a time lie HN_SCORE_PANEL floats apart. The weights
   * become a row of A from `to` on, zeros up to the end of the last step. */
  float (*row)(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float *top,
               uint16_t *to, uint32_t parts);
  /* A panel of B from n <= 32 keys: rows of `depth` values, `row` apart, that become its columns. */
  void (*pack_keys)(const float *k, ptrdiff_t row, size_t n, size_t depth, uint16_t *panel, uint32_t parts);
  /* A panel of B: columns of n <= 32 values in `keys` rows, `row` apart. */
  void (*pack_values)(const float *v, ptrdiff_t row, size_t n, size_t keys, uint16_t *panel, uint32_t parts);
  /* y = keep y + take c for n values; y is not read when keep is 0. */
  void (*blend)(float *y, const float *c, size_t n, float keep, float take);
} hn_attention_bf16_ops;

static inline const hn_attention_bf16_ops *hn_attention_bf16_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("attention", "bf16", isa);
  return k ? (const hn_attention_bf16_ops *)k->ops : NULL;
}

#endif
