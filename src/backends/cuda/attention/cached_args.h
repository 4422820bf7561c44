/* Arguments of cached_place.cu and attention_cached.cu. Caches are [batch, kv_heads, room, size]; what they
 * hold of input b before this run is found from lengths, as com.microsoft.GroupQueryAttention has them. */
#ifndef HN_CACHED_ARGS_H
#define HN_CACHED_ARGS_H

#include "types.h"

/* Both kernels' view of the caches. */
typedef struct hn_cached_sizes {
  const i32 *lengths; /* [batch] */
  u32 fresh;          /* the run is about all tokens there are: lengths are not read */
  u32 batch, tokens, heads, kv_heads, group, size;
  u32 had, room; /* tokens of the caches that come and of those that are handed on */
} hn_cached_sizes;

typedef struct hn_cached_place_args {
  hn_cached_sizes z;
  const void *now[3];    /* Q, K, V of the new tokens */
  i64 row[3], at[3];     /* elements a token, element of the first one */
  const void *past[2];   /* keys and values; NULL: none, or where they are handed on */
  void *present[2];      /* the same */
  void *q;               /* [batch, kv_heads, tokens, group, size] */
  const void *cos, *sin; /* [rows, half] */
  const i64 *positions;  /* [n_positions] */
  u32 half, rows, n_positions, interleaved;
  u32 *arrived; /* [n_arrived] that become 0 */
  u32 n_arrived;
  void *refused; /* hn_cuda_refusal */
  u64 node;
} hn_cached_place_args;

typedef struct hn_cached_attention_args {
  hn_cached_sizes z;
  const void *q, *k, *v; /* as above */
  const void *sink;      /* [heads]; NULL: zeros, where there are sinks */
  void *y;               /* [batch, tokens, heads, size] */
  float *parts;          /* [tiles][splits][ROWS][DEPTH + 2]: sums, then the maximum and the sum of weights */
  u32 *arrived;          /* [tiles] */
  u32 row_tiles, splits, causal, window, sinks; /* window 0: none */
  float scale, cap;                             /* cap 0: none */
} hn_cached_attention_args;

#endif
