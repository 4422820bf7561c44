/* Arguments of attention_mma.cu. Distances are in elements; columns of Q, V and the result are neighbours. */
#ifndef HN_ATTENTION_ARGS_H
#define HN_ATTENTION_ARGS_H

#include "divisor.h"
#include "quantise_args.h"

enum { HN_ATTENTION_BATCH = 6, HN_ATTENTION_MASK = 3 };

typedef struct hn_attention_args {
  const void *q, *k, *v, *mask[HN_ATTENTION_MASK];
  void *y;
  u32 rows, keys, depth, depth_v;
  hn_divisor row_tiles; /* blocks of one batch */
  float scale;
  i64 q_row, k_row, k_col, v_row, y_row;
  u32 n_batch;
  hn_divisor batch[HN_ATTENTION_BATCH]; /* the last one fastest */
  i64 q_batch[HN_ATTENTION_BATCH], k_batch[HN_ATTENTION_BATCH], v_batch[HN_ATTENTION_BATCH];
  i64 y_batch[HN_ATTENTION_BATCH], mask_batch[HN_ATTENTION_MASK][HN_ATTENTION_BATCH];
  i64 mask_row[HN_ATTENTION_MASK], mask_col[HN_ATTENTION_MASK];
  float mask_value[HN_ATTENTION_MASK];
  hn_quantise_args codes; /* HN_CODES_OUT */
  u32 zero[3],
      flip; /* HN_CODES_IN: zero points of Q, K, V in each byte of a word; what makes u8 of codes, both */
  float values_scale; /* HN_CODES_IN: of V; scale has those of Q and K */
} hn_attention_args;

#endif
