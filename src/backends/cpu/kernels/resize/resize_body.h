/* The body of resize_f32_<tier>.c. */
#include "backends/cpu/kernels/resize/resize.h"

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
  for (size_t x = 0; x < out_width; x++, dst += out_pitch) {
    const float *p = src + at[x] * in_pitch;
    size_t c = 0;
    for (; c + VEC_W <= channels; c += VEC_W) v_store(dst + c, v_load(p + c));
    if (c < channels) v_storen(dst + c, v_loadn(p + c, channels - c), channels - c);
  }
}

static const struct hn_resize_ops table = {.blend = blend, .blend_row = blend_row, .pick_row = pick_row};
