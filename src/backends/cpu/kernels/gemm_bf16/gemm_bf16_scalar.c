/* The family's formula in plain C: what the other tiers are compared with in speed and, in tests, in results.
 */
#define HN_VEC_SCALAR
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "base/half.h"

#define NARROW_LOAD v_load_bf16
#define NARROW_STORE v_store_bf16
#include "backends/cpu/kernels/gemm_bf16/bf16_store.inc"

static void begin(uint32_t rows) { (void)rows; }
static void end(void) {}

enum { MOST_PARTS = 3 };

/* The smallest products first. x: the parts of one number. */
static float product(uint32_t parts, const float *x, const uint16_t *b, ptrdiff_t low_b) {
  float y[MOST_PARTS], sum = 0;
  for (uint32_t i = 0; i < parts; i++, b += low_b) y[i] = hn_bf16_to_f32(*b);
  for (uint32_t order = parts; order-- > 0;)
    for (uint32_t i = 0; i <= order; i++) sum += x[i] * y[order - i];
  return sum;
}

static uint16_t high(float x) {
  const uint16_t h = hn_f32_to_bf16(x);
  return (h & 0x7fff) == 0x7f80 && isfinite(x) ? (uint16_t)(h - 1) : h;
}

static void split(const float *x, size_t n, uint16_t *to, ptrdiff_t apart, uint32_t parts) {
  for (size_t i = 0; i < n; i++) {
    float rest = x[i];
    for (uint32_t p = 0; p < parts; p++) {
      uint16_t *part = to + (ptrdiff_t)p * apart + i;
      *part = high(rest);
      rest = isfinite(x[i]) ? rest - hn_bf16_to_f32(*part) : 0;
    }
  }
}

static void tile(const hn_bf16_tile *t) {
  const uint32_t last = t->ahead.last - (HN_FAULT("bf16_ahead_last") && t->ahead.last);
  for (uint32_t g = t->ahead.first; g < last; g++) {
    const uint32_t at = g * 32, step = at / t->ahead.values;
    split(t->ahead.from + at, 32, t->ahead.to + 2 * step * t->ahead.values + at, t->ahead.values, 3);
  }
  const size_t tiles = t->n > 16 ? 2 : 1, size = tiles * HN_BF16_TILE * t->parts;
  const ptrdiff_t low = (ptrdiff_t)(tiles * HN_BF16_TILE);
  const size_t steps = t->steps - (HN_FAULT("bf16_last_step") && t->steps > 0);
  for (uint32_t i = 0; i < t->m; i++) {
    float *c = t->c + i * HN_BF16_PANEL;
    if (!t->accumulate || HN_FAULT("bf16_no_accumulate"))
      for (uint32_t j = 0; j < t->n; j++) c[j] = 0;
    for (size_t s = 0; s < steps; s++) {
      const uint16_t *a = t->a + t->step[s] + (ptrdiff_t)i * t->row;
      float x[HN_BF16_STEP][MOST_PARTS];
      for (size_t k = 0; k < HN_BF16_STEP; k++)
        for (uint32_t p = 0; p < t->parts; p++) x[k][p] = hn_bf16_to_f32(a[k + p * t->lo]);
      for (uint32_t j = 0; j < t->n; j++) {
        const uint16_t *b = t->b + s * size + j / 16 * HN_BF16_TILE + j % 16 * 2;
        for (size_t k = 0; k < HN_BF16_STEP; k++)
          c[j] += product(t->parts, x[k], b + k / 2 * 32 + k % 2, low);
      }
    }
  }
  /* Last of all, where sums that are not kept apart have been overwritten. */
  const uint32_t stores = t->n_before - (HN_FAULT("bf16_before_last") && t->n_before);
  for (uint32_t i = 0; i < stores; i++) store(&t->before[i]);
}

static bool finite_sums(const float *sums, uint32_t m, uint32_t n) {
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t j = 0; j < n; j++)
      if (!isfinite(sums[i * HN_BF16_PANEL + j])) return false;
  return true;
}

static void rows_to_steps(const float *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to,
                          ptrdiff_t block, uint32_t parts) {
  if (HN_FAULT("bf16_rows_last") && n > 1) n--;
  for (size_t i = 0; i < pixels; i++)
    for (size_t k = 0; k < n; k += HN_BF16_STEP) {
      uint16_t *d = to + (ptrdiff_t)(k / HN_BF16_STEP) * block + i * parts * HN_BF16_STEP;
      const size_t live = n - k < HN_BF16_STEP ? n - k : HN_BF16_STEP;
      memset(d, 0, parts * HN_BF16_STEP * sizeof *d);
      split(x + (ptrdiff_t)i * pitch + k, live, d, HN_BF16_STEP, parts);
    }
}

static void copy_to_steps(const uint16_t *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to,
                          ptrdiff_t block) {
  if (HN_FAULT("bf16_copy_last") && n > 1) n--;
  for (size_t i = 0; i < pixels; i++)
    for (size_t k = 0; k < n; k += HN_BF16_STEP) {
      uint16_t *d = to + (ptrdiff_t)(k / HN_BF16_STEP) * block + i * HN_BF16_STEP;
      const size_t live = n - k < HN_BF16_STEP ? n - k : HN_BF16_STEP;
      memset(d, 0, HN_BF16_STEP * sizeof *d);
      memcpy(d, x + (ptrdiff_t)i * pitch + k, live * sizeof *d);
    }
}

static const hn_bf16_ops ops = {.rows = 16,
                                .row_tiles = 2,
                                .parts = 3,
                                .meanwhile = true,
                                .x1_rate = 1,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .store = store,
                                .split = split,
                                .rows_to_steps = rows_to_steps,
                                .copy_to_steps = copy_to_steps,
                                .finite = finite_sums};
const struct hn_kernel hn_kernel_gemm_bf16_scalar = {"gemm_bf16_scalar", "gemm_bf16", "bf16", HN_ISA_SCALAR,
                                                     &ops};
