#include "backends/cpu/kernels/gemm/gemm.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fault.h"

/* Weights of a file lie at any alignment. */
static inline float load(const float *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* Rows of B contiguous: copy w floats at a time. */
static void pack_rows(const float *b, ptrdiff_t sk, size_t k, size_t live, size_t w, float *dst) {
  for (size_t i = 0; i < k; i++, b += sk, dst += w) {
    memcpy(dst, b, live * sizeof(float));
    if (live < w) memset(dst + live, 0, (w - live) * sizeof(float));
  }
}

/* Any strides, in square blocks so that both sides stay in L1. */
static void pack_strided(const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t live, size_t w,
                         float *dst) {
  enum { BLOCK = 16 };
  for (size_t k0 = 0; k0 < k; k0 += BLOCK) {
    size_t k1 = k0 + BLOCK < k ? k0 + BLOCK : k;
    for (size_t j = 0; j < live; j++) {
      const float *col = b + (ptrdiff_t)j * sn;
      for (size_t i = k0; i < k1; i++) dst[i * w + j] = load(col + (ptrdiff_t)i * sk);
    }
    for (size_t i = k0; i < k1 && live < w; i++) memset(dst + i * w + live, 0, (w - live) * sizeof(float));
  }
}

void hn_gemm_pack_b(const hn_gemm_ops *o, const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t n,
                    size_t n0, size_t n1, float *dst) {
  for (size_t c = n0; c < n1; c += o->nr) {
    size_t w = hn_gemm_panel_width(o, n, c), live = n - c < w ? n - c : w;
    if (HN_FAULT("gemm_pack_last_column") && live > 1) live--;
    if (sn == 1)
      pack_rows(b + c, sk, k, live, w, dst + c * k);
    else
      pack_strided(b + (ptrdiff_t)c * sn, sk, sn, k, live, w, dst + c * k);
  }
}

void hn_gemm_pack_weights(const hn_gemm_ops *o, const float *w, int64_t s_co, int64_t s_ci, int64_t s_tap,
                          int64_t cin, const int32_t *tap_list, int64_t n_taps, int64_t cout, float *dst) {
  enum { BLOCK = 16 };
  size_t n = (size_t)cout, k = (size_t)(n_taps * cin);
  for (size_t c = 0; c < n; c += o->nr) {
    size_t width = hn_gemm_panel_width(o, n, c), live = n - c < width ? n - c : width;
    float *panel = dst + c * k;
    if (live < width) memset(panel, 0, width * k * sizeof *panel);
    /* Source runs along ci and taps, destination along columns: blocks of ci of which both sides stay in L1.
     */
    for (int64_t i0 = 0; i0 < cin; i0 += BLOCK) {
      int64_t rows = cin - i0 < BLOCK ? cin - i0 : BLOCK;
      for (size_t j = 0; j < live; j++) {
        const float *column = w + (int64_t)(c + j) * s_co + i0 * s_ci;
        for (int64_t t = 0; t < n_taps; t++) {
          const float *tap = column + (tap_list ? tap_list[t] : t) * s_tap;
          float *d = panel + (size_t)(t * cin + i0) * width + j;
          for (int64_t i = 0; i < rows; i++) d[(size_t)i * width] = load(tap + i * s_ci);
        }
      }
    }
  }
}

const hn_gemm_ops *hn_gemm_find(hn_isa isa) {
  static const hn_gemm_ops *_Atomic found[HN_ISA_COUNT];
  if ((unsigned)isa >= HN_ISA_COUNT) return NULL;
  const hn_gemm_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("gemm", "f32", isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}
