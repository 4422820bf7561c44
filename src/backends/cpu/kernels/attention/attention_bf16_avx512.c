/* Attention around products of bf16, on tiles or vectors: all of it AVX-512 with BF16's conversions. */
#include <string.h>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/vec/vec_math.h"
#include "base/fault.h"

#include "backends/cpu/kernels/attention/attention_masks.inc"

#define PANEL ((size_t)HN_BF16_PANEL)
#define TILE ((size_t)HN_BF16_TILE)
#define STEP ((size_t)HN_BF16_STEP)

static inline vf widened(__m256i h) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* What bf16 leaves of x; nothing of infinities and NaN. */
static inline vf rest_of(vf x, vf high) {
  const __mmask16 number = (__mmask16)~_mm512_fpclass_ps_mask(high, 0x99);
  return _mm512_maskz_sub_ps(number, x, high);
}

/* 32 values in the parts that sum up to them. */
static inline __attribute__((always_inline)) void split32(vf a, vf b, uint32_t parts, __m512i *out) {
  for (uint32_t p = 0; p < parts; p++) {
    out[p] = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    if (p + 1 == parts) return;
    a = rest_of(a, widened(_mm512_castsi512_si256(out[p])));
    b = rest_of(b, widened(_mm512_extracti64x4_epi64(out[p], 1)));
  }
}

/* Up to 32 values from value i on, in parts. */
static inline __attribute__((always_inline)) void load_split32(const void *from, ptrdiff_t i, bool narrow,
                                                               size_t live, uint32_t parts, __m512i *out) {
  if (narrow) {
    const __mmask32 m = live < 32 ? (1u << live) - 1u : ~0u;
    out[0] = _mm512_maskz_loadu_epi16(m, (const uint16_t *)from + i);
    return;
  }
  const float *x = (const float *)from + i;
  const size_t more = live > 16 ? live - 16 : 0;
  split32(live >= 16 ? v_load(x) : v_loadn(x, live),
          more == 16 ? v_load(x + 16)
          : more     ? v_loadn(x + 16, more)
                     : v_zero(),
          parts, out);
}

/* exp(x) for x <= 0 as 2^n 2^r with n the integer below x log2(e): relative error below 2^-22.6 for 2^r (a
 * polynomial, weighted minimax over [0, 1)), and |x| 2^-24 from the product. exp(-inf) = 0, NaN passes. */
static inline vf exp_below(vf x) {
  x = v_mul(x, v_set1(VEC_LOG2E));
  const vf r = _mm512_reduce_ps(x, 0x9); /* x - floor(x) */
  vf p = v_fma(v_set1(0x1.ec320ap-10f), r, v_set1(0x1.26900ep-7f));
  p = v_fma(p, r, v_set1(0x1.c95446p-5f));
  p = v_fma(p, r, v_set1(0x1.ebd5a8p-3f));
  p = v_fma(p, r, v_set1(0x1.62e4f6p-1f));
  p = v_fma(p, r, v_set1(0x1.fffffep-1f));
  return _mm512_scalef_ps(p, x); /* takes the floor itself */
}

/* The same for weights that bf16 holds next: 2^r to 2^-13.7. */
static inline vf exp_short(vf x) {
  x = v_mul(x, v_set1(VEC_LOG2E));
  const vf r = _mm512_reduce_ps(x, 0x9);
  vf p = v_fma(v_set1(0x1.3f9628p-4f), r, v_set1(0x1.cefcb2p-3f));
  p = v_fma(p, r, v_set1(0x1.64444p-1f));
  p = v_fma(p, r, v_set1(0x1.fff634p-1f));
  return _mm512_scalef_ps(p, x);
}

/* t into the panels; returns the maximum of them and top. */
static float scores(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float top) {
  const vf s = v_set1(scale), lowest = v_set1(-__builtin_inff());
  vf m[2] = {lowest, lowest};
  const bool plain = n_masks == 0, added = n_masks == 1 && mask->kind == HN_MASK_ADD && mask->step == 1;
  const float *add = added ? mask->at : NULL;
  const vf f = v_set1(added ? mask->value : 0);
  for (size_t i = 0; i < n; i += PANEL, x += HN_SCORE_PANEL)
    for (size_t j = 0; j < 2 && i + 16 * j < n; j++) {
      const size_t at = i + 16 * j, k = n - at < 16 ? n - at : 16;
      vf t = v_mul(v_load(x + 16 * j), s);
      if (added)
        t = v_fma(k == 16 ? v_load(add + at) : v_loadn(add + at, k), f, t);
      else if (!plain)
        for (uint32_t q = 0; q < n_masks; q++) t = masked(t, &mask[q], at, k);
      if (k < 16 && !HN_FAULT("attention_bf16_tail_max")) t = v_sel(v_first(k), t, lowest);
      v_store(x + 16 * j, t);
      m[j] = v_max(m[j], t);
    }
  return v_hmax(v_max(v_max(m[0], m[1]), v_set1(top)));
}

/* Weights of one row of t; returns their sum. */
static inline __attribute__((always_inline)) float weights(const float *x, size_t n, float most, uint16_t *to,
                                                           const uint32_t parts) {
  const vf m = v_set1(most == -__builtin_inff() ? 0.0f : most);
  vf s0 = v_zero(), s1 = v_zero();
  const ptrdiff_t step = hn_bf16_a_step(parts);
  for (size_t i = 0; i < n; i += PANEL, x += HN_SCORE_PANEL, to += step) {
    /* What lies beyond n is -inf, or of the panel's second half nothing that may be read. */
    const vf t0 = v_sub(v_load(x), m), e0 = parts > 1 ? exp_below(t0) : exp_short(t0);
    vf e1 = v_zero();
    if (n - i > 16) {
      const vf t1 = v_sub(v_load(x + 16), m);
      e1 = parts > 1 ? exp_below(t1) : exp_short(t1);
    }
    s0 = v_add(s0, e0);
    s1 = v_add(s1, e1);
    __m512i part[2];
    split32(e0, e1, parts, part);
    for (uint32_t p = 0; p < parts; p++) _mm512_storeu_si512(to + 32 * p, part[p]);
  }
  return v_hsum(v_add(s0, s1));
}

/* All maxima before all exponentials: the long ends of several rows (a maximum, a sum across a vector)
 * overlap. */
static void rows(const hn_weight_rows *r) {
  for (size_t i = 0; i < r->m; i++)
    r->top[i] =
        scores(r->x + i * PANEL, r->n, r->scale, r->n_masks ? r->mask[i] : NULL, r->n_masks, r->top[i]);
  const ptrdiff_t row = hn_bf16_a_row(r->parts);
  for (size_t i = 0; i < r->m; i++) {
    const float *x = r->x + i * PANEL;
    uint16_t *to = r->to + (ptrdiff_t)i * row;
    r->sum[i] = r->parts > 1 ? weights(x, r->n, r->top[i], to, 2) : weights(x, r->n, r->top[i], to, 1);
  }
}

/* 16 rows of 16 pairs become 16 rows of 16 columns. */
static void transpose16(const __m512i *in, uint16_t *out) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(in[i], in[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(in[i], in[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; j++) {
      b[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + 2 + j]);
      b[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + 2 + j]);
    }
  /* b[4 g + c]: rows 4 g .. 4 g + 3, columns c, 4 + c, 8 + c, 12 + c in its quarters. */
  for (int c = 0; c < 4; c++) {
    const __m512i p = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88),
                  q = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd),
                  r = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88),
                  s = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    _mm512_storeu_si512(out + 32 * c, _mm512_shuffle_i32x4(p, r, 0x88));
    _mm512_storeu_si512(out + 32 * (4 + c), _mm512_shuffle_i32x4(q, s, 0x88));
    _mm512_storeu_si512(out + 32 * (8 + c), _mm512_shuffle_i32x4(p, r, 0xdd));
    _mm512_storeu_si512(out + 32 * (12 + c), _mm512_shuffle_i32x4(q, s, 0xdd));
  }
}

static inline __attribute__((always_inline)) void keys_as(const void *k, const bool narrow, ptrdiff_t row,
                                                          size_t n, size_t depth, uint16_t *panel,
                                                          const uint32_t parts) {
  const size_t tiles = n > 16 ? 2 : 1;
  for (size_t d = 0; d < depth; d += STEP, panel += tiles * TILE * parts) {
    const size_t live = depth - d < STEP ? depth - d : STEP;
    for (size_t t = 0; t < tiles; t++) {
      __m512i part[2][16];
      for (size_t j = 0; j < 16; j++) {
        __m512i one[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        if (16 * t + j < n)
          load_split32(k, (ptrdiff_t)(16 * t + j) * row + (ptrdiff_t)d, narrow, live, parts, one);
        for (uint32_t p = 0; p < parts; p++) part[p][j] = one[p];
      }
      for (uint32_t p = 0; p < parts; p++) transpose16(part[p], panel + (p * tiles + t) * TILE);
    }
  }
}

static void pack_keys(const void *k, bool narrow, ptrdiff_t row, size_t n, size_t depth, uint16_t *panel,
                      uint32_t parts) {
  if (narrow)
    keys_as(k, true, row, n, depth, panel, 1);
  else if (parts > 1)
    keys_as(k, false, row, n, depth, panel, 2);
  else
    keys_as(k, false, row, n, depth, panel, 1);
}

/* Two rows of up to 32 values as pairs, in one or two tiles. */
static inline void pairs(__m512i x, __m512i y, uint16_t *to, size_t tiles) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                         38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0),
                second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(x, first, y));
  if (tiles > 1) _mm512_storeu_si512(to + TILE, _mm512_permutex2var_epi16(x, second, y));
}

static inline __attribute__((always_inline)) void values_as(const void *v, const bool narrow, ptrdiff_t row,
                                                            size_t n, size_t keys, uint16_t *panel,
                                                            const uint32_t parts) {
  const size_t tiles = n > 16 ? 2 : 1;
  if (HN_FAULT("attention_bf16_last_key") && keys > 1) keys--;
  for (size_t k = 0; k < keys; k += STEP, panel += tiles * TILE * parts)
    for (size_t p = 0; p < 16; p++) {
      __m512i a[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
      __m512i b[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
      const ptrdiff_t at = (ptrdiff_t)(k + 2 * p) * row;
      if (k + 2 * p < keys) load_split32(v, at, narrow, n, parts, a);
      if (k + 2 * p + 1 < keys) load_split32(v, at + row, narrow, n, parts, b);
      for (uint32_t q = 0; q < parts; q++) pairs(a[q], b[q], panel + q * tiles * TILE + 32 * p, tiles);
    }
}

static void pack_values(const void *v, bool narrow, ptrdiff_t row, size_t n, size_t keys, uint16_t *panel,
                        uint32_t parts) {
  if (narrow)
    values_as(v, true, row, n, keys, panel, 1);
  else if (parts > 1)
    values_as(v, false, row, n, keys, panel, 2);
  else
    values_as(v, false, row, n, keys, panel, 1);
}

static void blend(float *y, ptrdiff_t row, const float *c, size_t m, size_t n, const float *keep,
                  const float *take) {
  for (size_t r = 0; r < m; r++, y += row, c += PANEL) {
    const vf a = v_set1(keep[r]), b = v_set1(take[r]);
    for (size_t i = 0; i < n; i += VEC_W) {
      const size_t k = n - i < VEC_W ? n - i : VEC_W;
      const vf x = v_mul(v_load(c + i), b);
      v_storen(y + i, keep[r] == 0 ? x : v_fma(v_loadn(y + i, k), a, x), k);
    }
  }
}

static void blend_narrow(uint16_t *y, ptrdiff_t row, const float *c, size_t m, size_t n, const float *take) {
  if (HN_FAULT("attention_bf16_narrow_tail") && n % 32) n--;
  const __mmask32 live = n < 32 ? (1u << n) - 1u : ~0u;
  for (size_t r = 0; r < m; r++, y += row, c += PANEL) {
    const vf b = v_set1(take[r]), low = v_mul(v_load(c), b),
             high = n > 16 ? v_mul(v_load(c + 16), b) : v_zero();
    _mm512_mask_storeu_epi16(y, live, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

static const hn_attention_bf16_ops ops = {.rows = rows,
                                          .pack_keys = pack_keys,
                                          .pack_values = pack_values,
                                          .blend = blend,
                                          .blend_narrow = blend_narrow};
const struct hn_kernel hn_kernel_attention_bf16_avx512 = {.name = "attention_bf16_avx512",
                                                          .family = "attention",
                                                          .role = "bf16",
                                                          .isa = HN_ISA_AVX512BF16,
                                                          .ops = &ops};
