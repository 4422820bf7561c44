/* What the depthwise kernels share. Prefix: HN_T, HN_SIZE (bytes of an element), HN_V (channels of a thread), HN_KH, HN_KW, HN_SH, HN_SW,
 * HN_DH, HN_DW (kernel, stride, dilation), HN_TW (output pixels of a row that a thread makes at once). */
#include "prelude.cuh"

#include "depthwise_args.h"

/* Input columns that a thread's pixels touch (dilation 1). */
#define HN_NC ((HN_TW - 1) * HN_SW + HN_KW)
/* Output rows that an input row belongs to (dilation 1). */
#define HN_NA ((HN_KH + HN_SH - 1) / HN_SH)

/* HN_V channels of a thread: 16 bytes, or 8. */
#define HN_SPLIT (16 / (HN_V * HN_SIZE)) /* threads that share 16 bytes */
#if HN_SPLIT == 1
typedef hn_u4 hn_raw;
#define HN_WORD(r, k) (r).v[k]
HN_FN hn_raw hn_zero_raw(void) {
  hn_raw z;
  HN_UNROLL for (int k = 0; k < 4; k++) z.v[k] = 0;
  return z;
}
#else
typedef u64 hn_raw;
#define HN_WORD(r, k) ((u32)((r) >> 32 * (k)))
HN_FN hn_raw hn_zero_raw(void) { return 0; }
#endif

/* HN_APART: x or y lies at an odd address. */
HN_FN hn_raw hn_ld_raw(const u8 *p) {
#if defined(HN_APART)
  hn_raw r = hn_zero_raw();
  HN_UNROLL for (int k = 0; k < HN_V * HN_SIZE / 2; k++) {
    const u32 h = ((const u16 *)p)[k];
#if HN_SPLIT == 1
    r.v[k / 2] |= h << 16 * (k % 2);
#else
    r |= (u64)h << 16 * k;
#endif
  }
  return r;
#elif HN_SPLIT == 1
  return hn_ld16(p);
#else
  return *(const u64 *)p;
#endif
}

HN_FN void hn_widen(hn_raw a, float *x) {
#if HN_SIZE == 4
  HN_UNROLL for (int k = 0; k < HN_V; k++) x[k] = hn_from_bits(HN_WORD(a, k));
#else
  HN_UNROLL for (int k = 0; k < HN_V / 2; k++) {
    const u32 w = HN_WORD(a, k);
    const u16 h[2] = {(u16)w, (u16)(w >> 16)};
    x[2 * k] = hn_load(h, 0), x[2 * k + 1] = hn_load(h, 1);
  }
#endif
}

/* The weights of a vector of channels at one tap. */
HN_FN void hn_weights(const hn_depthwise_args *a, int tap, int c, float *w) {
  const float *p = (const float *)a->w + (i64)tap * a->w_tap + c;
  HN_UNROLL for (int h = 0; h < HN_V; h += 4) {
    hn_u4 v = hn_ld16(p + h);
    HN_UNROLL for (int k = 0; k < 4; k++) w[h + k] = hn_from_bits(v.v[k]);
  }
}

/* Adds input column c of a row to the sums. The row is number s (< HN_SH) of step u; sums of the output row that
 * began j steps ago are at acc[(u - j) mod HN_NA]. */
HN_FN void hn_taps(float acc[HN_NA][HN_TW][HN_V], const float w[HN_KH * HN_KW][HN_V], int u, int s, int c, hn_raw in) {
  float f[HN_V];
  hn_widen(in, f);
  HN_UNROLL for (int p = 0; p < HN_TW; p++) {
    const int kw = c - p * HN_SW;
    if (kw < 0 || kw >= HN_KW) continue;
    HN_UNROLL for (int j = 0; j < HN_NA; j++) {
      const int kh = j * HN_SH + s;
      if (kh >= HN_KH) continue;
      HN_UNROLL for (int k = 0; k < HN_V; k++) acc[(u - j + HN_NA) % HN_NA][p][k] += w[kh * HN_KW + kw][k] * f[k];
    }
  }
}
/* Sums begin with the bias, which stands behind the last tap (zeros where the epilogue adds it). */
HN_FN void hn_begin(float acc[HN_TW][HN_V], const float bias[HN_V]) {
  HN_UNROLL for (int p = 0; p < HN_TW; p++)
    HN_UNROLL for (int k = 0; k < HN_V; k++) acc[p][k] = bias[k];
}

/* Channels from v on of an output pixel: epilogue and store. */
HN_FN void hn_depthwise_store(const hn_depthwise_args *a, int n, int y, int x, int v, float f[HN_V]) {
  const i64 at = (n * a->y_image + y * a->y_row + (i64)x * a->y_pixel) / HN_SIZE + v;
#if HN_V == 8
  hn_epilogue8(f, v, at, &a->epilogue);
#else
  hn_epilogue4(f, v, at, &a->epilogue);
#endif
#if defined(HN_APART)
  HN_UNROLL for (int k = 0; k < HN_V; k++) hn_store(a->y, at + k, f[k]);
#elif HN_V == 8
  hn_store8(a->y, at, f);
#elif HN_SIZE == 4
  hn_u4 o;
  HN_UNROLL for (int k = 0; k < 4; k++) o.v[k] = hn_bits(f[k]);
  hn_st16((float *)a->y + at, o);
#else
#define HN_PAIR_f16 hn_to_f16x2
#define HN_PAIR_bf16 hn_to_bf16x2
#define hn_pair HN_JOIN(HN_PAIR_, HN_T)
  *(u64 *)((u16 *)a->y + at) = hn_pair(f[0], f[1]) | (u64)hn_pair(f[2], f[3]) << 32;
#endif
}
