#include "backends/cpu/kernels/gemm/gemm.h"

#include <string.h>

#include "base/fault.h"

/* Rows of B contiguous: copy w floats at a time. */
static void pack_rows(const float *b, ptrdiff_t sk, size_t k, size_t live, size_t w, float *dst) {
  for (size_t i = 0; i < k; i++, b += sk, dst += w) {
    memcpy(dst, b, live * sizeof(float));
    if (live < w) memset(dst + live, 0, (w - live) * sizeof(float));
  }
}

/* Any strides, in square blocks so that both sides stay in L1. */
static void pack_strided(const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t live, size_t w, float *dst) {
  enum { BLOCK = 16 };
  for (size_t k0 = 0; k0 < k; k0 += BLOCK) {
    size_t k1 = k0 + BLOCK < k ? k0 + BLOCK : k;
    for (size_t j = 0; j < live; j++) {
      const float *col = b + (ptrdiff_t)j * sn;
      for (size_t i = k0; i < k1; i++) dst[i * w + j] = col[(ptrdiff_t)i * sk];
    }
    for (size_t i = k0; i < k1 && live < w; i++) memset(dst + i * w + live, 0, (w - live) * sizeof(float));
  }
}

void hn_gemm_pack_b(const hn_gemm_ops *o, const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t n, size_t n0,
                    size_t n1, float *dst) {
  for (size_t c = n0; c < n1; c += o->nr) {
    size_t w = hn_gemm_panel_width(o, n, c), live = n - c < w ? n - c : w;
    if (HN_FAULT("gemm_pack_last_column") && live > 1) live--;
    if (sn == 1) pack_rows(b + c, sk, k, live, w, dst + c * k);
    else pack_strided(b + (ptrdiff_t)c * sn, sk, sn, k, live, w, dst + c * k);
  }
}
