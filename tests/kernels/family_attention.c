/* Adapter of the attention kernels: scores to weights, and the rescaling of a row.
 *
 * Bound of exp(t - m), relative: t carries a rounding for the scale and one for each mask added, m those of
 * the largest t, the difference one more; they move exp by their absolute size; exp itself 1 ulp. The sum:
 * that of its terms, and of adding n of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "base/half.h"
#include "check.h"

enum { MOST = 1100 };

/* Masks of a case, by its number: none, one of each kind, constants for the row, and all at once. */
enum { FORMS = 7 };
static uint32_t masks_of(int form, const float *add, const uint8_t *bytes, hn_mask_row *m) {
  static const float fill = -INFINITY;
  const hn_mask_row all[] = {{HN_MASK_ADD, add, 1, 0.5f},
                             {HN_MASK_KEEP, bytes, 1, -3.0f},
                             {HN_MASK_DROP, bytes, 1, fill},
                             {HN_MASK_ADD, add, 0, -2.0f},
                             {HN_MASK_KEEP, bytes, 0, -1.0f}};
  if (form == 0) return 0;
  if (form <= 5) {
    m[0] = all[form - 1];
    return 1;
  }
  m[0] = all[2], m[1] = all[0], m[2] = all[1];
  return 3;
}

static float bf16_value(uint16_t h) {
  const uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/* Rows around the one that is looked at: others of the same length, which must not matter. */
enum { ROWS = 3, MIDDLE = 1 };

/* The row through the kernel that works on panels, as the middle one of three; its weights come back in x. */
static float panel_row(ck *c, const hn_attention_bf16_ops *ops, float *x, size_t n, float scale,
                       const hn_mask_row *mask, uint32_t masks, float *top, uint32_t parts) {
  const size_t steps = (n + 31) / 32, row = (size_t)hn_bf16_a_row(parts),
               step = (size_t)hn_bf16_a_step(parts);
  float *panels = ck_alloc(c, (steps - 1) * HN_SCORE_PANEL + ROWS * HN_BF16_PANEL, 0);
  uint16_t *a = (uint16_t *)(void *)ck_alloc(c, ((steps - 1) * step + ROWS * row) / 2, 0);
  hn_mask_row of[ROWS][HN_ATTENTION_MASKS];
  float tops[ROWS] = {5, *top, -INFINITY}, sums[ROWS];
  for (size_t r = 0; r < ROWS; r++) memcpy(of[r], mask, sizeof of[r]);
  for (size_t i = 0; i < steps * 32; i++)
    for (size_t r = 0; r < ROWS; r++)
      panels[i / 32 * HN_SCORE_PANEL + r * HN_BF16_PANEL + i % 32] =
          i >= n        ? NAN
          : r == MIDDLE ? x[i]
                        : (float)i; /* what lies beyond must not matter */
  ops->rows(&(hn_weight_rows){.x = panels,
                              .m = ROWS,
                              .n = n,
                              .scale = scale,
                              .mask = of,
                              .n_masks = masks,
                              .top = tops,
                              .sum = sums,
                              .to = a,
                              .parts = parts});
  *top = tops[MIDDLE];
  for (size_t i = 0; i < steps * 32; i++) {
    const uint16_t *at = a + i / 32 * step + MIDDLE * row + i % 32;
    float w = 0;
    for (uint32_t p = parts; p-- > 0;) w += bf16_value(at[32 * p]);
    if (i < n)
      x[i] = w;
    else if (!isnan(*top))
      ck_same(c, i, w, 0);
  }
  return sums[MIDDLE];
}

/* bf16: NULL, or the kernel instead of ops, with one or two parts. */
static void check_row(ck *c, const hn_attention_ops *ops, const hn_attention_bf16_ops *bf16, uint32_t parts,
                      size_t n, enum ck_fill fill, int form, float scale, float top) {
  float *x = ck_alloc(c, n, n % 3), *add = ck_alloc(c, n ? n : 1, 1);
  /* The bytes end at the guard page, too. */
  uint8_t *bytes = (uint8_t *)ck_alloc(c, n / 4 + 1, 0) + (n / 4 + 1) * 4 - (n ? n : 1);
  double t[MOST], err[MOST], most = top, top_err = 0, sum = 0, moved = 0;
  hn_mask_row mask[HN_ATTENTION_MASKS] = {0};
  ck_fill(c, x, n, fill);
  if (fill == CK_RANDOM)
    for (size_t i = 0; i < n; i++) x[i] *= 20.0f;
  for (size_t i = 0; i < (n ? n : 1); i++) add[i] = i % 5 == 3 ? -10000.0f : 0.25f * (float)(i % 3);
  for (size_t i = 0; i < (n ? n : 1); i++) bytes[i] = (uint8_t)(i % 4 == 1 ? 0 : i % 7 + 1);
  const uint32_t masks = masks_of(form, add, bytes, mask);
  for (size_t i = 0; i < n; i++) {
    t[i] = (double)x[i] * (double)scale;
    err[i] = CK_EPS * fabs(t[i]) + CK_TINY;
    for (uint32_t k = 0; k < masks; k++) {
      const size_t at = mask[k].step ? i : 0;
      if (mask[k].kind == HN_MASK_ADD) {
        t[i] += (double)mask[k].value * (double)add[at];
        err[i] += CK_EPS * (fabs(t[i]) + fabs((double)mask[k].value * (double)add[at]));
      } else if ((bytes[at] != 0) != (mask[k].kind == HN_MASK_KEEP))
        t[i] = (double)mask[k].value, err[i] = 0;
    }
    most = isnan(t[i]) || isnan(most) ? NAN : fmax(most, t[i]);
  }
  for (size_t i = 0; i < n; i++)
    if (t[i] == most) top_err = fmax(top_err, err[i]);
  ck_case(c, "row n=%zu fill=%s form=%d scale=%g top=%g", n, ck_fill_name(fill), form, (double)scale,
          (double)top);
  float got_top = top;
  const float got = bf16 ? panel_row(c, bf16, x, n, scale, mask, masks, &got_top, parts)
                         : ops->row(x, n, scale, mask, masks, &got_top);
  const double left = bf16 ? pow(0x1p-8, parts) : 0, own = !bf16 ? 2 * CK_EPS : parts > 1 ? 0x1p-22 : 0x1p-13;
  ck_near(c, n, got_top, most, top_err);
  const double m = most == -INFINITY ? 0 : most;
  for (size_t i = 0; i < n; i++) {
    const double want = exp(t[i] - m), off = err[i] + top_err + (bf16 ? 3 : 1) * CK_EPS * fabs(t[i] - m);
    const double rel = isfinite(off) ? off + own : 0;
    ck_near(c, i, x[i], want, 1.01 * (rel + (isfinite(off) ? left : 0)) * want + CK_WEIGHT);
    sum += want;
    if (isfinite(want)) moved += 1.01 * rel * want + CK_WEIGHT;
  }
  ck_near(c, n + 1, got, sum, moved + (double)(n + 2) * CK_EPS * sum);
  ck_release_all(c);
}

/* The scores of check_row without what follows: as many roundings. */
static void check_scores(ck *c, const hn_attention_ops *ops, size_t n, int form) {
  float *x = ck_alloc(c, n, n % 3), *add = ck_alloc(c, n ? n : 1, 1), before[MOST];
  uint8_t *bytes = (uint8_t *)ck_alloc(c, n / 4 + 1, 0) + (n / 4 + 1) * 4 - (n ? n : 1);
  hn_mask_row mask[HN_ATTENTION_MASKS] = {0};
  ck_fill(c, x, n, CK_SPECIAL);
  memcpy(before, x, n * sizeof *x);
  for (size_t i = 0; i < (n ? n : 1); i++) add[i] = i % 5 == 3 ? -10000.0f : 0.25f * (float)(i % 3);
  for (size_t i = 0; i < (n ? n : 1); i++) bytes[i] = (uint8_t)(i % 4 == 1 ? 0 : i % 7 + 1);
  const uint32_t masks = masks_of(form, add, bytes, mask);
  ck_case(c, "scores n=%zu form=%d", n, form);
  ops->scores(x, n, 0.4f, mask, masks);
  for (size_t i = 0; i < n; i++) {
    double t = (double)before[i] * (double)0.4f, err = CK_EPS * fabs(t) + CK_TINY;
    for (uint32_t k = 0; k < masks; k++) {
      const size_t at = mask[k].step ? i : 0;
      if (mask[k].kind == HN_MASK_ADD) {
        const double by = (double)mask[k].value * (double)add[at];
        t += by;
        err += CK_EPS * (fabs(t) + fabs(by));
      } else if ((bytes[at] != 0) != (mask[k].kind == HN_MASK_KEEP))
        t = (double)mask[k].value, err = 0;
    }
    ck_near(c, i, x[i], t, isfinite(err) ? err : 0);
  }
  ck_release_all(c);
}

/* Short rows: some of each one's scores are seen. */
static void check_short(ck *c, const hn_attention_ops *ops, size_t n, int form, enum ck_fill fill,
                        float before) {
  enum { SHORT_ROWS = 3, LONGEST = 64 };
  const size_t ld = LONGEST;
  float *x = ck_alloc(c, SHORT_ROWS * ld, 0), *add = ck_alloc(c, n, 1), own[SHORT_ROWS * LONGEST];
  uint8_t *bytes = (uint8_t *)ck_alloc(c, n / 4 + 1, 0) + (n / 4 + 1) * 4 - n;
  hn_mask_row mask[SHORT_ROWS * HN_ATTENTION_MASKS] = {0};
  ck_fill(c, x, SHORT_ROWS * ld, fill);
  memcpy(own, x, sizeof own);
  for (size_t i = 0; i < n; i++) {
    add[i] = i % 5 == 3 ? -10000.0f : 0.25f * (float)(i % 3);
    bytes[i] = (uint8_t)(i % 4 == 1 ? 0 : i % 7 + 1);
  }
  uint32_t masks = 0;
  for (int r = 0; r < SHORT_ROWS; r++) masks = masks_of(form, add, bytes, mask + (uint32_t)r * masks);
  const int32_t m = (int32_t)n, seen[] = {0, m, m / 3, m - m / 4, m / 2, m / 2};
  float top[SHORT_ROWS] = {before, before, before}, sum[SHORT_ROWS];
  ck_case(c, "short rows n=%zu form=%d fill=%s top=%g", n, form, ck_fill_name(fill), (double)before);
  ops->rows(x, (ptrdiff_t)ld, SHORT_ROWS, n, 0.4f, mask, masks, seen, top, sum);
  for (size_t r = 0; r < SHORT_ROWS; r++) {
    double t[LONGEST], err[LONGEST], most = (double)before, top_err = 0, all = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
      t[i] = (double)own[r * ld + i] * (double)0.4f;
      err[i] = CK_EPS * fabs(t[i]) + CK_TINY;
      for (uint32_t k = 0; k < masks; k++) {
        const size_t at = mask[k].step ? i : 0;
        if (mask[k].kind == HN_MASK_ADD) {
          const double by = (double)mask[k].value * (double)add[at];
          t[i] += by;
          err[i] += CK_EPS * (fabs(t[i]) + fabs(by));
        } else if ((bytes[at] != 0) != (mask[k].kind == HN_MASK_KEEP))
          t[i] = (double)mask[k].value, err[i] = 0;
      }
      if ((int32_t)i < seen[2 * r] || (int32_t)i >= seen[2 * r + 1]) t[i] = -INFINITY, err[i] = 0;
      most = isnan(t[i]) || isnan(most) ? NAN : fmax(most, t[i]);
    }
    for (size_t i = 0; i < n; i++)
      if (t[i] == most && isfinite(err[i])) top_err = fmax(top_err, err[i]);
    ck_near(c, r, top[r], most, top_err);
    const double by = most == -INFINITY ? 0 : most;
    for (size_t i = 0; i < n; i++) {
      const double want = exp(t[i] - by), off = err[i] + top_err + CK_EPS * fabs(t[i] - by);
      const double bound = isfinite(off) ? 1.01 * (off + 2 * CK_EPS) * want + CK_WEIGHT : CK_WEIGHT;
      ck_near(c, r * ld + i, x[r * ld + i], want, bound);
      all += want;
      if (isfinite(want)) moved += bound;
    }
    ck_near(c, n + r, sum[r], all, moved + (double)(n + 2) * CK_EPS * all);
  }
  ck_release_all(c);
}

/* What masks alone say: with keys that are hidden at both ends, and with all hidden. */
static void check_masks(ck *c, const hn_attention_ops *ops, size_t n, int form, size_t left, size_t right) {
  float *add = ck_alloc(c, n ? n : 1, 1);
  uint8_t *bytes = (uint8_t *)ck_alloc(c, n / 4 + 1, 0) + (n / 4 + 1) * 4 - (n ? n : 1);
  hn_mask_row mask[HN_ATTENTION_MASKS] = {0};
  for (size_t i = 0; i < (n ? n : 1); i++) {
    const bool hidden = i < left || i + right >= n;
    add[i] = hidden ? (i % 2 ? -INFINITY : -1e4f) : 0.25f * (float)(i % 3);
    bytes[i] = (uint8_t)(hidden ? 0 : i % 7 + 1);
  }
  const uint32_t masks = masks_of(form, add, bytes, mask);
  float t[MOST], most = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    t[i] = 0;
    for (uint32_t k = 0; k < masks; k++) {
      const size_t at = mask[k].step ? i : 0;
      if (mask[k].kind == HN_MASK_ADD)
        t[i] = fmaf(add[at], mask[k].value, t[i]);
      else if ((bytes[at] != 0) != (mask[k].kind == HN_MASK_KEEP))
        t[i] = mask[k].value;
    }
    most = isnan(t[i]) ? INFINITY : fmaxf(most, t[i]);
  }
  ck_case(c, "masks n=%zu form=%d hidden=%zu and %zu", n, form, left, right);
  ck_near(c, 0, ops->most(n, mask, masks), most, 0);
  const float limits[] = {most - 100.0f, -INFINITY, NAN};
  for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
    size_t first = 0, last = n, from = n + 1, end = n + 1;
    while (first < n && t[first] < limits[l]) first++;
    while (last > first && t[last - 1] < limits[l]) last--;
    ops->within(n, limits[l], mask, masks, &from, &end);
    /* No key too few, and less than the longest vector too many. */
    const bool tight =
        from <= first && first - from < 16 && end >= last && end - last < 16 && from <= end && end <= n;
    ck_near(c, 1 + l, tight ? 1 : 0, 1, 0);
  }
  ck_release_all(c);
}

/* Rows that are mixed: a part of a sum is rounded as a product and with each row that follows. */
static void check_across(ck *c, const hn_attention_ops *ops, size_t n, size_t heads, enum ck_fill fill) {
  const size_t x_ld = n + n % 3, y_ld = n + n % 2;
  float *x = ck_alloc(c, (heads - 1) * x_ld + n, 0), *y = ck_alloc(c, (heads - 1) * y_ld + n, n % 2),
        *factor = ck_alloc(c, heads * heads, 0), *sum = ck_alloc(c, heads, 0);
  ck_fill(c, x, (heads - 1) * x_ld + n, fill);
  ck_fill(c, factor, heads * heads, CK_RANDOM);
  ck_fill(c, sum, heads, CK_RANDOM);
  ck_case(c, "across n=%zu heads=%zu fill=%s", n, heads, ck_fill_name(fill));
  ops->across(y, (ptrdiff_t)y_ld, x, (ptrdiff_t)x_ld, n, factor, sum, heads);
  for (size_t o = 0; o < heads; o++)
    for (size_t i = 0; i < n; i++) {
      double want = (double)sum[o], size = fabs(want);
      for (size_t h = 0; h < heads; h++) {
        const double p = (double)factor[o * heads + h] * (double)x[h * x_ld + i];
        want += p, size += fabs(p);
      }
      ck_near(c, o * n + i, y[o * y_ld + i], want,
              isfinite(size) ? (double)(heads + 1) * CK_EPS * size + CK_TINY * (double)(heads + 1) : 0);
    }
  ck_release_all(c);
}

static void check_scale(ck *c, const hn_attention_ops *ops, size_t n) {
  float *x = ck_alloc(c, n, n % 2), before[MOST];
  ck_fill(c, x, n, CK_SPECIAL);
  for (size_t i = 0; i < n; i++) before[i] = x[i];
  ck_case(c, "scale n=%zu", n);
  ops->scale(x, n, 0.37f);
  for (size_t i = 0; i < n; i++) ck_same(c, i, x[i], before[i] * 0.37f);
  ck_release_all(c);
}

/* Pairs turned with a cosine and a sine for every number. */
static void check_rotate(ck *c, const hn_attention_ops *ops, size_t half, enum ck_fill fill,
                         bool neighbours) {
  const size_t n = 2 * half;
  float *x = ck_alloc(c, n, half % 2), *by[2] = {ck_alloc(c, n, 0), ck_alloc(c, n, 1)},
        *y = ck_alloc(c, n, 0);
  ck_fill(c, x, n, fill);
  for (int i = 0; i < 2; i++) ck_fill(c, by[i], n, i ? CK_RANDOM : fill);
  ck_case(c, "rotate of %zu pairs, %s, fill %s", half, neighbours ? "neighbours" : "halves",
          ck_fill_name(fill));
  ops->rotate(y, x, by[0], by[1], half, neighbours);
  for (size_t i = 0; i < half; i++) {
    const size_t a = neighbours ? 2 * i : i, b = neighbours ? a + 1 : half + i;
    for (int second = 0; second < 2; second++) {
      const size_t own = second ? b : a, other = second ? a : b;
      const double p = (double)by[0][own] * (double)x[own], q = (double)by[1][own] * (double)x[other];
      ck_near(c, own, y[own], second ? p + q : p - q, 3 * CK_EPS * (fabs(p) + fabs(q)) + 3 * CK_TINY);
    }
  }
  ck_release_all(c);
}

/* Keys or values as B: every element where the products look for it, zeros beyond. */
static void check_pack(ck *c, const hn_attention_bf16_ops *ops, bool keys, size_t rows, size_t cols,
                       uint32_t parts, bool narrow) {
  const size_t ld = cols + 3, n = keys ? rows : cols, k = keys ? cols : rows;
  const size_t tiles = n > 16 ? 2 : 1, steps = (k + 31) / 32;
  float *x = ck_alloc(c, (rows - 1) * ld + cols, 0);
  uint16_t *b = (uint16_t *)(void *)ck_alloc(c, steps * tiles * parts * 256, 0);
  ck_fill(c, x, (rows - 1) * ld + cols, CK_RANDOM);
  ck_case(c, "pack %s %zux%zu x%d%s", keys ? "keys" : "values", rows, cols, (int)(parts * (parts + 1) / 2),
          narrow ? " narrow" : "");
  const void *from = x;
  if (narrow) {
    const size_t all = (rows - 1) * ld + cols;
    uint16_t *half = (uint16_t *)(void *)ck_alloc(c, (all + 1) / 2, 0) + all % 2; /* up to the guard page */
    for (size_t i = 0; i < all; i++) half[i] = hn_f32_to_bf16(x[i]), x[i] = bf16_value(half[i]);
    from = half;
  }
  if (keys)
    ops->pack_keys(from, narrow, (ptrdiff_t)ld, rows, cols, b, parts);
  else
    ops->pack_values(from, narrow, (ptrdiff_t)ld, cols, rows, b, parts);
  for (size_t kk = 0; kk < steps * 32; kk++)
    for (size_t j = 0; j < tiles * 16; j++) {
      const uint16_t *at =
          b + kk / 32 * tiles * parts * 512 + j / 16 * 512 + kk % 32 / 2 * 32 + j % 16 * 2 + kk % 2;
      const float v = kk < k && j < n ? x[keys ? j * ld + kk : kk * ld + j] : 0;
      float left = v, before = 0;
      for (uint32_t p = 0; p < parts; p++) {
        /* Each part is the nearest to what those before leave: at most a half step of 8 bits remains. */
        const float got = bf16_value(at[p * tiles * 512]);
        ck_near(c, kk * 32 + j, got, (double)left, 0x1p-8 * fabs((double)left) + 0x1p-126);
        left = v - (before += got);
      }
    }
  ck_release_all(c);
}

static void check_blend(ck *c, const hn_attention_bf16_ops *ops, size_t n) {
  enum { M = 3, LD = 37 };
  static const float keep[M] = {0.75f, 0, 1}, take[M] = {0.3f, 0.5f, -2};
  const size_t all = (M - 1) * LD + n;
  float *y = ck_alloc(c, all, 0), *x = ck_alloc(c, M * HN_BF16_PANEL, 0), old[M * LD];
  uint16_t *half = (uint16_t *)(void *)ck_alloc(c, (all + 1) / 2, 0) + all % 2;
  ck_fill(c, y, all, CK_RANDOM);
  ck_fill(c, x, M * HN_BF16_PANEL, CK_RANDOM);
  for (size_t i = 0; i < n; i++) y[LD + i] = NAN; /* not read */
  memcpy(old, y, all * sizeof *y);
  memset(half, 0x55, all * sizeof *half);
  ck_case(c, "blend n=%zu", n);
  ops->blend(y, LD, x, M, n, keep, take);
  ops->blend_narrow(half, LD, x, M, n, take);
  for (size_t r = 0; r < M; r++)
    for (size_t i = 0; i < (r + 1 < M ? LD : n); i++) {
      const size_t at = r * LD + i;
      const double add = (double)take[r] * (double)x[r * HN_BF16_PANEL + (i < n ? i : 0)];
      if (i >= n) {
        ck_same(c, at, y[at], old[at]);
        ck_true(c, half[at] == 0x5555, "what lies between rows stays");
        continue;
      }
      ck_near(c, at, y[at], (keep[r] == 0 ? 0 : (double)keep[r] * (double)old[at]) + add, 4 * CK_EPS);
      ck_near(c, at, bf16_value(half[at]), add, 0x1.01p-8 * fabs(add) + 0x1p-126);
    }
  ck_release_all(c);
}

static void check_bf16(ck *c, const hn_attention_bf16_ops *ops) {
  static const size_t lengths[] = {1, 7, 15, 16, 17, 31, 32, 33, 49, 64, 130, 509},
                      sizes[] = {1, 8, 16, 17, 32};
  for (uint32_t parts = 1; parts <= 2; parts++) {
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        for (int form = 0; form < FORMS; form++)
          check_row(c, NULL, ops, parts, lengths[l], fill, form, 0.125f, form % 2 ? -INFINITY : 3.0f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t l = 0; l < 10; l++) {
        for (uint32_t narrow = 0; narrow <= (parts == 1); narrow++) {
          check_pack(c, ops, true, sizes[i], lengths[l], parts, narrow);
          check_pack(c, ops, false, lengths[l], sizes[i], parts, narrow);
        }
      }
  }
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_blend(c, ops, sizes[i]);
}

/* A whole head, a query a lane. A score carries depth products and the roundings that a row's do; weights are
 * off as there, their sum and a column of the result by as many roundings as there are keys. */
static void check_head(ck *c, const hn_attention_ops *ops, size_t keys, size_t depth, size_t depth_v,
                       int form, enum ck_fill fill, bool nan_to_zero) {
  const size_t lanes = ops->lanes, k_row = depth + keys % 3, v_row = depth_v + depth % 2;
  float *q = ck_alloc(c, depth * lanes, 0), *k = ck_alloc(c, (keys - 1) * k_row + depth, 0),
        *v = ck_alloc(c, (keys - 1) * v_row + depth_v, 0), *y = ck_alloc(c, depth_v * lanes, 0),
        *weights = ck_alloc(c, keys * lanes, 0), *add = ck_alloc(c, keys, 0),
        *wide = ck_alloc(c, keys * lanes, 0);
  uint8_t *bytes = (uint8_t *)ck_alloc(c, keys / 4 + 1, 0) + (keys / 4 + 1) * 4 - keys;
  hn_attention_head h = {.q = q,
                         .k = k,
                         .v = v,
                         .k_row = (ptrdiff_t)k_row,
                         .k_col = 1,
                         .v_row = (ptrdiff_t)v_row,
                         .keys = keys,
                         .depth = depth,
                         .depth_v = depth_v,
                         .scale = 0.4f,
                         .nan_to_zero = nan_to_zero,
                         .weights = weights,
                         .y = y};
  ck_fill(c, q, depth * lanes, CK_RANDOM);
  ck_fill(c, k, (keys - 1) * k_row + depth, fill);
  ck_fill(c, v, (keys - 1) * v_row + depth_v, CK_RANDOM);
  for (size_t i = 0; i < keys; i++) add[i] = i % 5 == 3 ? -10000.0f : 0.25f * (float)(i % 3);
  for (size_t i = 0; i < keys; i++) bytes[i] = (uint8_t)(i % 4 == 1 ? 0 : i % 7 + 1);
  for (size_t i = 0; i < keys * lanes; i++) wide[i] = i % 11 == 5 ? -INFINITY : 0.5f * (float)(i % 4);
  h.n_masks = masks_of(form % FORMS, add, bytes, h.mask);
  if (form == FORMS)
    h.mask[0] = (hn_mask_row){HN_MASK_ADD, wide, 1, 1.0f}, h.in_lanes[0] = true, h.n_masks = 1;
  ck_case(c, "head of %zu keys, depth %zu, %zu, masks %d, fill %s%s", keys, depth, depth_v, form,
          ck_fill_name(fill), nan_to_zero ? ", weights of NaN are 0" : "");
  ops->head(&h);
  for (size_t l = 0; l < lanes; l++) {
    double t[300], err[300], top = -INFINITY, top_err = 0, sum = 0, off = 0;
    for (size_t i = 0; i < keys; i++) {
      double dot = 0, size = 0;
      for (size_t d = 0; d < depth; d++) {
        const double p = (double)q[d * lanes + l] * (double)k[i * k_row + d];
        dot += p, size += fabs(p);
      }
      t[i] = dot * (double)h.scale;
      err[i] = (double)(depth + 2) * CK_EPS * size * (double)h.scale + CK_TINY * (double)(depth + 1);
      for (uint32_t m = 0; m < h.n_masks; m++) {
        const hn_mask_row *mask = &h.mask[m];
        if (mask->kind == HN_MASK_ADD) {
          const double by =
              (double)mask->value * (double)(h.in_lanes[m] ? wide[i * lanes + l] : add[mask->step ? i : 0]);
          t[i] += by;
          if (isfinite(by)) err[i] += CK_EPS * (fabs(t[i]) + fabs(by));
        } else if ((bytes[mask->step ? i : 0] != 0) != (mask->kind == HN_MASK_KEEP))
          t[i] = (double)mask->value, err[i] = 0;
      }
      top = isnan(t[i]) || isnan(top) ? NAN : fmax(top, t[i]);
    }
    if (top == -INFINITY) top = NAN; /* nothing is seen: 0 / 0 */
    for (size_t i = 0; i < keys; i++)
      if (t[i] == top) top_err = fmax(top_err, err[i]);
    for (size_t i = 0; i < keys; i++) {
      const double w = exp(t[i] - top);
      err[i] += top_err + CK_EPS * (fabs(t[i] - top) + (double)keys + 6);
      sum += w;
      if (w > 0) off += w * err[i];
    }
    for (size_t d = 0; d < depth_v; d++) {
      double want = 0, bound = 0, most = 0;
      for (size_t i = 0; i < keys; i++) {
        const double x = (double)v[i * v_row + d], w = nan_to_zero && !(sum > 0) ? 0 : exp(t[i] - top) / sum;
        want += w * x, most = fmax(most, fabs(x));
        if (w > 0) bound += w * fabs(x) * (err[i] + off / sum);
      }
      ck_near(c, l * depth_v + d, y[d * lanes + l], want,
              1.05 * bound + 2 * (double)keys * CK_WEIGHT * (most + fabs(want)));
    }
  }
  ck_release_all(c);
}

static void check_heads(ck *c, const hn_attention_ops *ops) {
  static const size_t keys[] = {1, 2, 7, 8, 9, 16, 49, 64, 130}, depths[] = {1, 6, 8, 33};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
      for (int form = 0; form <= FORMS; form++)
        for (int fill = 0; fill < 3; fill++)
          check_head(c, ops, keys[i], depths[d], depths[(d + i) % 4], form, fill ? CK_SPECIAL : CK_RANDOM,
                     fill == 2);
}

static void check(ck *c, const struct hn_kernel *k) {
  if (strcmp(k->role, "bf16") == 0) {
    check_bf16(c, k->ops);
    return;
  }
  if (((const hn_attention_ops *)k->ops)->head) check_heads(c, k->ops);
  static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49, 64, 127, 128, 1009};
  static const float tops[] = {-INFINITY, 3.0f, 40.0f};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (int form = 0; form < FORMS; form++)
        for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
          check_row(c, k->ops, NULL, 0, lengths[l], fill, form, t == 1 ? 1.0f : 0.125f, tops[t]);
    check_scale(c, k->ops, lengths[l]);
    const hn_attention_ops *ops = k->ops;
    if (ops->rows && lengths[l] && lengths[l] <= HN_ATTENTION_SHORT * ops->lanes)
      for (int form = 0; form < FORMS; form++)
        for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
          for (size_t t = 0; t < 2; t++) check_short(c, ops, lengths[l], form, (enum ck_fill)fill, tops[t]);
    for (int form = 0; form < FORMS; form++) {
      check_scores(c, k->ops, lengths[l], form);
      for (size_t hidden = 0; hidden < 4; hidden++)
        check_masks(c, k->ops, lengths[l], form, hidden & 1 ? lengths[l] / 2 : hidden,
                    hidden & 2 ? lengths[l] / 3 : 0);
      check_masks(c, k->ops, lengths[l], form, lengths[l], 0);
    }
    for (size_t h = 1; h <= 9; h += h < 5 ? 1 : 4)
      for (int fill = 0, fills = ck_fills(c); fill < fills && lengths[l]; fill++)
        check_across(c, k->ops, lengths[l], h, fill);
    for (int fill = 0, fills = ck_fills(c); fill < fills && lengths[l]; fill++)
      for (int neighbours = 0; neighbours < 2; neighbours++)
        check_rotate(c, k->ops, lengths[l], (enum ck_fill)fill, neighbours);
  }
}

struct job {
  const hn_attention_ops *ops;
  const hn_attention_bf16_ops *bf16;
  float *y;
  const float *x;
  size_t rows, n;
  const hn_mask_row *mask;
};
static void run_job(void *arg) {
  struct job *j = arg;
  for (size_t r = 0; r < j->rows; r++) {
    float top = -INFINITY, *y = j->y + r * j->n;
    const float *x = j->x + r * j->n;
    for (size_t i = 0; i < j->n; i++) y[i] = x[i];
    j->ops->row(y, j->n, 0.125f, j->mask, 1, &top);
  }
}

static void run_bf16(void *arg) {
  struct job *j = arg;
  static uint16_t a[17 * 33 * 64];
  float top[16], sum[16];
  hn_mask_row mask[16][HN_ATTENTION_MASKS];
  for (size_t r = 0; r < j->rows; r++) top[r] = -INFINITY, mask[r][0] = *j->mask;
  j->bf16->rows(&(hn_weight_rows){.x = j->y,
                                  .m = j->rows,
                                  .n = j->n,
                                  .scale = 0.125f,
                                  .mask = mask,
                                  .n_masks = 1,
                                  .top = top,
                                  .sum = sum,
                                  .to = a,
                                  .parts = 1});
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {49, 128, 512};
  const bool bf16 = strcmp(k->role, "bf16") == 0;
  const struct hn_kernel *scalar = hn_kernel_find("attention", "f32", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const size_t n = lengths[i], rows = 16;
    float *x = ck_alloc(c, n * rows, 0), *add = ck_alloc(c, n, 0);
    for (size_t q = 0; q < n; q++) add[q] = 0;
    const hn_mask_row mask = {HN_MASK_ADD, add, 1, 1.0f};
    const size_t panels = (n + 31) / 32 * HN_SCORE_PANEL;
    struct job j = {k->ops, k->ops, ck_alloc(c, bf16 ? panels : n * rows, 0), x, rows, n, &mask};
    ck_fill(c, x, n * rows, CK_RANDOM);
    ck_fill(c, j.y, bf16 ? panels : n * rows, CK_ZEROS);
    const double t = ck_time(bf16 ? run_bf16 : run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar || bf16 ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "rows 16x%zu masked", n);
    /* scale and mask, maximum, subtract, exp, sum */
    const double all = (double)(n * rows);
    ck_bench_line(c, label, t, &(ck_work){.instructions = 20 * all, .read = 4 * all, .written = 4 * all}, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_attention = {"attention", check, bench};
