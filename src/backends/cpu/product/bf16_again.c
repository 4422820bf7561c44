/* What products of three parts cannot give: rows whose sums are not finite, once more. */
#include <string.h>

#include "backends/cpu/product/bf16_driver.h"
#include "base/fault.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/wide.h"

/* A step of a row: `live` values of A in three parts, times f32 weights in the order of tiles. */
HN_WIDE_BODY void add_body(const uint16_t *a, int64_t lo, int64_t live, const float *b, int64_t columns,
                           float *sum) {
  for (int64_t k = 0; k < live; k++) {
    const float x = hn_bf16_to_f32(a[k]) + hn_bf16_to_f32(a[k + lo]) + hn_bf16_to_f32(a[k + 2 * lo]);
    for (int64_t h = 0; h < columns; h += 16) {
      const float *at = b + h / 16 * HN_BF16_TILE + k / 2 * 32 + k % 2;
      for (int64_t j = 0; j < 16; j++) sum[h + j] += x * at[2 * j];
    }
  }
}

HN_WIDE(void, add_step, add_body,
        (const uint16_t *a, int64_t lo, int64_t live, const float *b, int64_t columns, float *sum),
        (a, lo, live, b, columns, sum))

static bool all_nan(const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (x[i] == x[i]) return false;
  return true;
}

/* Values of step s of K that are a row's own; behind them lie zeros or, of a folded line, other pixels. */
static int64_t live_values(const hn_bf16_conv *c, int64_t s) {
  const int64_t run = c->fold ? c->kernel[2] * c->cin : c->cin, taps = c->steps / c->c_steps;
  return hn_min(run - (c->fold ? s % c->c_steps : s / taps) * HN_BF16_STEP, HN_BF16_STEP);
}

/* A row of a folded line once more without the pixels of others, which weights of 0 turn into NaN where they
 * are not finite: the bits that finite ones give. False: the row's own values are not finite. */
static bool sum_alone(const hn_bf16_args *a, const hn_bf16_tile *tile, uint32_t i, float *to) {
  const hn_bf16_conv *c = a->conv;
  static const int32_t first;
  _Alignas(64) float sums[HN_BF16_ROWS * HN_BF16_PANEL];
  _Alignas(64) uint16_t row[3 * HN_BF16_STEP];
  hn_bf16_tile one = {.a = row,
                      .step = &first,
                      .steps = 1,
                      .short_from = 1,
                      .lo = HN_BF16_STEP,
                      .b = tile->b,
                      .c = sums,
                      .rows = tile->rows,
                      .m = 1,
                      .n = tile->n,
                      .parts = 3};
  for (int64_t s = 0; s < c->steps; s++, one.accumulate = true) {
    const uint16_t *from = tile->a + a->step[s] + (ptrdiff_t)i * tile->row;
    memset(row, 0, sizeof row);
    for (int64_t p = 0; p < 3; p++)
      memcpy(row + p * HN_BF16_STEP, from + p * c->lo, (size_t)live_values(c, s) * sizeof *row);
    a->ops->tile(&one);
    one.b += hn_bf16_parted(tile->n, 1, 3);
  }
  if (!a->ops->finite(sums, 1, tile->n)) return false;
  memcpy(to, sums, HN_BF16_PANEL * sizeof *sums);
  return true;
}

void hn_bf16_again(const hn_bf16_args *a, const hn_bf16_tile *tile, int64_t n, const float *weights,
                   float *sums) {
  const hn_bf16_conv *c = a->conv;
  _Alignas(64) float wide[HN_BF16_STEP * HN_BF16_PANEL];
  const int64_t width = tile->n, columns = hn_fill_up(width, 16);
  if (a->ops->finite(sums, tile->m, tile->n)) return;
  for (uint32_t i = 0; i < tile->m; i++) {
    float sum[HN_BF16_PANEL] = {0}, *const to = sums + i * HN_BF16_PANEL;
    if (a->ops->finite(to, 1, tile->n) || HN_FAULT("bf16_parts_alone")) continue;
    if (c->fold && sum_alone(a, tile, i, to)) continue;
    for (int64_t s = 0; s < c->steps && !all_nan(sum, width); s++) {
      const float *b = c->coded ? wide : weights + s * columns * HN_BF16_STEP;
      if (c->coded) a->widen(a->codes, n, s, s + 1, wide);
      add_step(tile->a + a->step[s] + (ptrdiff_t)i * tile->row, c->lo, live_values(c, s), b, columns, sum);
    }
    memcpy(to, sum, sizeof sum);
  }
}

/* A step of a row of three parts, times weights that lie in parts, too. */
static void add_parted(const hn_bf16_tile *t, const uint16_t *a, const uint16_t *b, int64_t columns,
                       float *sum) {
  _Alignas(64) float weights[2 * HN_BF16_TILE];
  const int64_t values = columns * HN_BF16_STEP;
  for (int64_t i = 0; i < values; i++)
    weights[i] = hn_bf16_to_f32(b[i]) + hn_bf16_to_f32(b[i + values]) + hn_bf16_to_f32(b[i + 2 * values]);
  add_step(a, t->lo, HN_BF16_STEP, weights, columns, sum);
}

void hn_bf16_rows_again(const hn_bf16_ops *o, const hn_bf16_tile *tile) {
  const int64_t columns = hn_fill_up(tile->n, 16);
  if (o->finite(tile->c, tile->m, tile->n)) return;
  for (uint32_t i = 0; i < tile->m; i++) {
    float sum[HN_BF16_PANEL] = {0}, *const to = tile->c + i * HN_BF16_PANEL;
    if (o->finite(to, 1, tile->n)) continue;
    const uint16_t *b = tile->b;
    for (size_t s = 0; s < tile->steps && !all_nan(sum, tile->n); s++, b += 3 * columns * HN_BF16_STEP)
      add_parted(tile, tile->a + tile->step[s] + (ptrdiff_t)i * tile->row, b, columns, sum);
    memcpy(to, sum, sizeof sum);
  }
}
