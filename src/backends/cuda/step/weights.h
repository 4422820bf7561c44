/* Constants as f32. Weights on their way into a blob: tiles of them, each column's channels side by side,
 * read in the order in which they lie. A matrix [K][N] read column by column would miss every cache at each
 * element. */
#ifndef HN_CUDA_STEP_WEIGHTS_H
#define HN_CUDA_STEP_WEIGHTS_H

#include <hone/plugin.h>

/* `n` elements of a constant, from number `first` on; it may lie at any address. False: it is none of f32,
 * f16 or bf16. */
bool hn_cuda_constant_f32(const hone_step_tensor *t, int64_t first, int64_t n, float *to);

enum { HN_CUDA_WEIGHTS_COLUMNS = 32, HN_CUDA_WEIGHTS_CHANNELS = 64 };

/* f32, f16, bf16 or i8; element (column n, tap t, channel c) lies `at + n * by_column + t * by_tap + c *
 * by_channel` elements behind the first. */
typedef struct hn_cuda_weights {
  const hone_step_tensor *from;
  int64_t at, by_column, by_tap, by_channel;
  uint32_t columns, taps, channels;
} hn_cuda_weights;

typedef struct hn_cuda_weights_tile {
  hn_cuda_weights all;
  bool begun;
  uint32_t column, tap, channel; /* the first ones; channel is a multiple of HN_CUDA_WEIGHTS_CHANNELS */
  uint32_t columns, channels;    /* how many there are */
  float w[HN_CUDA_WEIGHTS_COLUMNS][HN_CUDA_WEIGHTS_CHANNELS];
} hn_cuda_weights_tile;

/* for (hn_cuda_weights_tile t = {.all = ...}; hn_cuda_weights_next(&t);): each element is in one tile. */
bool hn_cuda_weights_next(hn_cuda_weights_tile *t);

#endif
