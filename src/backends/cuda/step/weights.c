#include "backends/cuda/step/weights.h"

#include <string.h>

#include "base/half.h"

/* `count` elements, `step` apart, the first of them number `at`. */
static void read_line(const hone_step_tensor *from, int64_t at, int64_t step, int64_t count, float *to) {
  const char *base = from->constant; /* at any address */
  float f;
  uint16_t h;
  switch (from->desc.dtype) {
  case HONE_DTYPE_F32:
    for (int64_t i = 0; i < count; i++) memcpy(&f, base + (at + i * step) * 4, 4), to[i] = f;
    return;
  case HONE_DTYPE_F16:
    for (int64_t i = 0; i < count; i++) memcpy(&h, base + (at + i * step) * 2, 2), to[i] = hn_f16_to_f32(h);
    return;
  case HONE_DTYPE_BF16:
    for (int64_t i = 0; i < count; i++) memcpy(&h, base + (at + i * step) * 2, 2), to[i] = hn_bf16_to_f32(h);
    return;
  default:
    for (int64_t i = 0; i < count; i++) to[i] = ((const signed char *)base)[at + i * step];
  }
}

bool hn_cuda_constant_f32(const hone_step_tensor *t, int64_t first, int64_t n, float *to) {
  const hone_dtype type = t->desc.dtype;
  const bool is =
      t->constant && (type == HONE_DTYPE_F32 || type == HONE_DTYPE_F16 || type == HONE_DTYPE_BF16);
  if (is) read_line(t, first, 1, n, to);
  return is;
}

static bool columns_lie_together(const hn_cuda_weights *a) { return a->by_column < a->by_channel; }

static void read_tile(hn_cuda_weights_tile *t) {
  const hn_cuda_weights *a = &t->all;
  const int64_t at = a->at + t->column * a->by_column + t->tap * a->by_tap + t->channel * a->by_channel;
  if (!columns_lie_together(a)) {
    for (uint32_t n = 0; n < t->columns; n++)
      read_line(a->from, at + n * a->by_column, a->by_channel, t->channels, t->w[n]);
    return;
  }
  float line[HN_CUDA_WEIGHTS_COLUMNS];
  for (uint32_t c = 0; c < t->channels; c++) {
    read_line(a->from, at + c * a->by_channel, a->by_column, t->columns, line);
    for (uint32_t n = 0; n < t->columns; n++) t->w[n][c] = line[n];
  }
}

/* True: back at the beginning. */
static bool advance(uint32_t *at, uint32_t by, uint32_t end) {
  *at += by;
  if (*at < end) return false;
  *at = 0;
  return true;
}

/* To the neighbours in memory first: those of the same pages. */
static bool move(hn_cuda_weights_tile *t) {
  const hn_cuda_weights *a = &t->all;
  if (columns_lie_together(a))
    return !advance(&t->column, HN_CUDA_WEIGHTS_COLUMNS, a->columns) ||
           !advance(&t->channel, HN_CUDA_WEIGHTS_CHANNELS, a->channels) || !advance(&t->tap, 1, a->taps);
  return !advance(&t->tap, 1, a->taps) || !advance(&t->channel, HN_CUDA_WEIGHTS_CHANNELS, a->channels) ||
         !advance(&t->column, HN_CUDA_WEIGHTS_COLUMNS, a->columns);
}

static uint32_t at_most(uint32_t left, uint32_t most) { return left < most ? left : most; }

bool hn_cuda_weights_next(hn_cuda_weights_tile *t) {
  const hn_cuda_weights *a = &t->all;
  if (!a->columns || !a->taps || !a->channels) return false;
  if (t->begun && !move(t)) return false;
  t->begun = true;
  t->columns = at_most(a->columns - t->column, HN_CUDA_WEIGHTS_COLUMNS);
  t->channels = at_most(a->channels - t->channel, HN_CUDA_WEIGHTS_CHANNELS);
  read_tile(t);
  return true;
}
