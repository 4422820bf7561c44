/* The body of resize_f32_<tier>.c. */
#include "backends/cpu/kernels/resize/resize.h"

#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

static inline vf mix(vf a, vf b, vf u, vf w) { return v_fma(b, w, v_mul(a, u)); }

static void blend(float *dst, const float *a, const float *b, size_t n, float weight) {
  const vf w = v_set1(weight), u = v_set1(1.0f - weight);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store(dst + i, mix(v_load(a + i), v_load(b + i), u, w));
  if (i < n) v_storen(dst + i, mix(v_loadn(a + i, n - i), v_loadn(b + i, n - i), u, w), n - i);
}

static void blend_row(float *dst, ptrdiff_t out_pitch, const float *src, ptrdiff_t in_pitch, size_t channels,
                      size_t out_width, const int32_t *left, const int32_t *right, const float *w) {
  for (size_t x = 0; x < out_width; x++, dst += out_pitch) {
    const float *a = src + left[x] * in_pitch, *b = src + right[x] * in_pitch;
    if (channels == 1)
      *dst = b[0] * w[x] + a[0] * (1.0f - w[x]);
    else
      blend(dst, a, b, channels, HN_FAULT("resize_weight") && w[x] > 0.5f ? w[x] * 1.0001f : w[x]);
  }
}

static void pick_row(float *dst, ptrdiff_t out_pitch, const float *src, ptrdiff_t in_pitch, size_t channels,
                     size_t out_width, const int32_t *at) {
  for (size_t x = 0; channels == 1 && x < out_width; x++)
    dst[(ptrdiff_t)x * out_pitch] = src[at[x] * in_pitch];
  if (channels == 1) return;
  for (size_t x = 0; x < out_width; x++, dst += out_pitch) {
    const float *p = src + at[x] * in_pitch;
    size_t c = 0;
    for (; c + VEC_W <= channels; c += VEC_W) v_store(dst + c, v_load(p + c));
    if (c < channels) v_storen(dst + c, v_loadn(p + c, channels - c), channels - c);
  }
}

static void sum_rows(float *dst, const float *src, ptrdiff_t pitch, size_t n, size_t taps, const int32_t *at,
                     const float *w) {
  size_t i = 0;
  for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) {
    const float *x = src + at[0] * pitch + i;
    const vf first = v_set1(w[0]);
    vf s0 = v_mul(first, v_load(x)), s1 = v_mul(first, v_load(x + VEC_W)),
       s2 = v_mul(first, v_load(x + 2 * VEC_W)), s3 = v_mul(first, v_load(x + 3 * VEC_W));
    for (size_t t = 1; t < taps; t++) {
      const vf by = v_set1(w[t]);
      x = src + at[t] * pitch + i;
      s0 = v_fma(by, v_load(x), s0), s1 = v_fma(by, v_load(x + VEC_W), s1);
      s2 = v_fma(by, v_load(x + 2 * VEC_W), s2), s3 = v_fma(by, v_load(x + 3 * VEC_W), s3);
    }
    v_store(dst + i, s0), v_store(dst + i + VEC_W, s1);
    v_store(dst + i + 2 * VEC_W, s2), v_store(dst + i + 3 * VEC_W, s3);
  }
  for (; i < n; i += VEC_W) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W, last = HN_FAULT("resize_last_tap") ? taps - 1 : taps;
    vf s = v_mul(v_set1(w[0]), v_loadn(src + at[0] * pitch + i, k));
    for (size_t t = 1; t < last; t++) s = v_fma(v_set1(w[t]), v_loadn(src + at[t] * pitch + i, k), s);
    v_storen(dst + i, s, k);
  }
}

static void cut(void *dst_, const float *src, size_t n, bool is_signed) {
  unsigned char *dst = dst_, rest[VEC_W];
  size_t i = 0;
  for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) {
    vf t[4];
    HN_UNROLL for (int k = 0; k < 4; k++) t[k] = v_trunc(v_load(src + i + k * VEC_W));
    v_store_codes(dst + i, t, 0, is_signed);
  }
  for (; i + VEC_W <= n; i += VEC_W) v_store_8(dst + i, v_trunc(v_load(src + i)));
  if (i == n) return;
  v_store_8(rest, v_trunc(v_loadn(src + i, n - i)));
  memcpy(dst + i, rest, HN_FAULT("resize_cut_tail") ? n - i - 1 : n - i);
}

static const struct hn_resize_ops table = {
    .sum_rows = sum_rows, .blend = blend, .blend_row = blend_row, .pick_row = pick_row, .cut = cut};
