/* Attention kernels: the part of softmax(scale Q K^T + masks) V that is no matrix product, in the form that
 * needs one block of keys at a time (online softmax). */
#ifndef HN_KERNELS_ATTENTION_H
#define HN_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_ATTENTION_MASKS = 3 };
enum { HN_ATTENTION_SHORT = 4 }; /* vectors */

typedef enum hn_mask_kind {
  HN_MASK_ADD,  /* t + value * mask, f32 */
  HN_MASK_KEEP, /* mask ? t : value, one byte an element */
  HN_MASK_DROP  /* mask ? value : t */
} hn_mask_kind;

typedef struct hn_mask_row {
  hn_mask_kind kind;
  const void *at;
  ptrdiff_t step; /* 1, or 0: one element for the whole row */
  float value;
} hn_mask_row;

/* `lanes` queries of a head, a lane each: q[depth][lanes], y[depth_v][lanes]. Keys and values lie where they
 * may, distances in floats. */
typedef struct hn_attention_head {
  const float *q, *k, *v;
  ptrdiff_t k_row, k_col, v_row;
  size_t keys, depth, depth_v;
  float scale;
  bool nan_to_zero; /* weights of a lane that are no numbers are 0 instead */
  uint32_t n_masks;
  hn_mask_row mask[HN_ATTENTION_MASKS]; /* step: between keys; */
  bool in_lanes[HN_ATTENTION_MASKS];    /* or f32 of [keys][lanes] */
  float *weights;                       /* scratch of [keys][lanes] */
  float *y;
} hn_attention_head;

typedef struct hn_attention_ops {
  /* n scores x become exp(t - m): t = scale x with the masks applied in order, m = max(*top, max t). *top
   * becomes m; returns the sum. When m is -inf everything is 0: what no key may be seen from is decided by
   * the whole row. */
  float (*row)(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float *top);
  /* The same for several rows of at most HN_ATTENTION_SHORT vectors, their scores in registers throughout:
   * row i sees [2 i] to before [2 i + 1] of its n scores, what it does not see becomes 0. Whole vectors of
   * each row are read and written. mask: n_masks of each row, from its score 0 on; top and sum: of each row.
   * NULL where a vector has one lane. */
  void (*rows)(float *x, ptrdiff_t ld, size_t rows, size_t n, float scale, const hn_mask_row *mask,
               uint32_t n_masks, const int32_t *seen, float *top, float *sum);
  /* What masks alone say, t of scores that are 0: the largest of n; a t that is no number counts as
   * infinity), and the keys [*from, *end) outside of which every t is below `limit`. */
  float (*most)(size_t n, const hn_mask_row *mask, uint32_t n_masks);
  void (*within)(size_t n, float limit, const hn_mask_row *mask, uint32_t n_masks, size_t *from, size_t *end);
  /* The scores t alone. */
  void (*scores)(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks);
  /* y[o] = sum[o] + the sum over i of factor[o][i] x[i], for `heads` rows of n numbers each; distances of
   * rows in floats. y is elsewhere. */
  void (*across)(float *y, ptrdiff_t y_ld, const float *x, ptrdiff_t x_ld, size_t n, const float *factor,
                 const float *sum, size_t heads);
  /* x * factor in place. */
  void (*scale)(float *x, size_t n, float factor);
  /* Both products for few rows, with keys and values where they lie: packing them would cost more than it
   * saves. score[r][i] = q[r] . k[i] over depth; y[r] (+)= sum of w[r][i] v[i]. Distances in floats. */
  void (*dots)(float *score, ptrdiff_t score_ld, const float *q, ptrdiff_t q_ld, size_t rows, const float *k,
               ptrdiff_t k_ld, size_t n, size_t depth);
  void (*mix)(float *y, ptrdiff_t y_ld, const float *w, ptrdiff_t w_ld, size_t rows, const float *v,
              ptrdiff_t v_ld, size_t n, size_t depth, bool accumulate);
  /* y = softmax(scale q k^T + masks) v. NULL where a vector has one lane. */
  void (*head)(const hn_attention_head *h);
  size_t lanes;
  /* Pairs (a, b) of x, `half` of them, turned: c a - s b, s a + c b. A pair is x[i] and x[half + i], or two
   * neighbours. */
  void (*turn)(float *y, const float *x, const float *c, const float *s, size_t half, bool neighbours);
  /* The same with a c and an s for every number of x: y[i] = c[i] a - s[i] b, y[k] = c[k] b + s[k] a. */
  void (*rotate)(float *y, const float *x, const float *c, const float *s, size_t half, bool neighbours);
} hn_attention_ops;

/* The best table at or below a tier. */
static inline const hn_attention_ops *hn_attention_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("attention", "f32", isa);
  return k ? (const hn_attention_ops *)k->ops : NULL;
}

#endif
