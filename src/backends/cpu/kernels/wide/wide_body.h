/* The body of wide_<tier>.c, which says how many bytes a vector has (BYTES), how many rows (ROWS) and vectors
 * (VECTORS) a tile: its sums stay in registers. */
#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/wide/wide.h"
#include "base/fault.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { DOTS = 4 };
_Static_assert(VECTORS <= 3, "tile_ has a case for each number of vectors");

typedef double v_f64 __attribute__((vector_size(BYTES), aligned(8), may_alias));
typedef uint32_t v_w32 __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef uint64_t v_w64 __attribute__((vector_size(BYTES), aligned(8), may_alias));

static inline v_f64 with_f64(v_f64 sum, v_f64 a, v_f64 b) {
#if defined(__AVX512F__)
  return (v_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif defined(__AVX2__)
  return (v_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#else
  return sum + a * b;
#endif
}
static inline v_w32 with_w32(v_w32 sum, v_w32 a, v_w32 b) { return sum + a * b; }
static inline v_w64 with_w64(v_w64 sum, v_w64 a, v_w64 b) { return sum + a * b; }

#define INLINE static inline __attribute__((always_inline))
#define PRODUCT(suffix, T)                                                                                   \
  enum { LANES_##suffix = BYTES / (int)sizeof(T) };                                                          \
  /* m and nv are constants where this is called. */                                                         \
  INLINE void rows_##suffix(const int m, const int nv, T *c, int64_t ldc, const T *a, const T *b, int64_t k, \
                            bool add) {                                                                      \
    v_##suffix sum[ROWS][VECTORS];                                                                           \
    HN_UNROLL for (int r = 0; r < m; r++) HN_UNROLL for (int v = 0; v < nv; v++) sum[r][v] =                 \
        (v_##suffix){0};                                                                                     \
    for (int64_t p = 0; p < k; p++, a += ROWS, b += VECTORS * LANES_##suffix) {                              \
      v_##suffix right[VECTORS];                                                                             \
      HN_UNROLL for (int v = 0; v < nv; v++) right[v] =                                                      \
          *(const v_##suffix *)(const void *)(b + v * LANES_##suffix);                                       \
      HN_UNROLL for (int r = 0; r < m; r++) {                                                                \
        const v_##suffix left = a[r] - (v_##suffix){0};                                                      \
        HN_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = with_##suffix(sum[r][v], left, right[v]);         \
      }                                                                                                      \
    }                                                                                                        \
    HN_UNROLL for (int r = 0; r < m; r++) HN_UNROLL for (int v = 0; v < nv; v++) {                           \
      v_##suffix *to = (v_##suffix *)(void *)(c + r * ldc + v * LANES_##suffix);                             \
      if (add) sum[r][v] += *to;                                                                             \
      *to = sum[r][v];                                                                                       \
    }                                                                                                        \
  }                                                                                                          \
  INLINE void part_##suffix(const int nv, T *to, int64_t ldc, const T *from, const T *b, int32_t m,          \
                            int64_t k, bool add) {                                                           \
    if (m == ROWS) {                                                                                         \
      rows_##suffix(ROWS, nv, to, ldc, from, b, k, add);                                                     \
      return;                                                                                                \
    }                                                                                                        \
    for (; m >= 2; m -= 2, to += 2 * ldc, from += 2) rows_##suffix(2, nv, to, ldc, from, b, k, add);         \
    if (m && !HN_FAULT("wide_last_row")) rows_##suffix(1, nv, to, ldc, from, b, k, add);                     \
  }                                                                                                          \
  static void tile_##suffix(void *c, int64_t ldc, const void *a, const void *b, int32_t m, int32_t vectors,  \
                            int64_t k, bool add) {                                                           \
    switch (vectors) {                                                                                       \
    case 1: part_##suffix(1, c, ldc, a, b, m, k, add); break;                                                \
    case 2: part_##suffix(2, c, ldc, a, b, m, k, add); break;                                                \
    default: part_##suffix(VECTORS, c, ldc, a, b, m, k, add); break;                                         \
    }                                                                                                        \
  }                                                                                                          \
  INLINE void dots_of_##suffix(const int m, T *c, int64_t ldc, const T *a, int64_t lda, const T *x,          \
                               int64_t k) {                                                                  \
    v_##suffix sum[DOTS][2];                                                                                 \
    int64_t p = 0;                                                                                           \
    HN_UNROLL for (int r = 0; r < m; r++) sum[r][0] = sum[r][1] = (v_##suffix){0};                           \
    for (; p + 2 * LANES_##suffix <= k; p += 2 * LANES_##suffix) HN_UNROLL for (int v = 0; v < 2; v++) {     \
        const v_##suffix right = *(const v_##suffix *)(const void *)(x + p + v * LANES_##suffix);            \
        HN_UNROLL for (int r = 0; r < m; r++) sum[r][v] = with_##suffix(                                     \
            sum[r][v], *(const v_##suffix *)(const void *)(a + r * lda + p + v * LANES_##suffix), right);    \
      }                                                                                                      \
    HN_UNROLL for (int r = 0; r < m; r++) {                                                                  \
      T lane[LANES_##suffix], all = 0;                                                                       \
      const v_##suffix both = sum[r][0] + sum[r][1];                                                         \
      memcpy(lane, &both, sizeof lane);                                                                      \
      for (int64_t i = p; i < k; i++) all += a[r * lda + i] * x[i];                                          \
      for (int half = LANES_##suffix / 2; half; half /= 2)                                                   \
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];                                            \
      c[r * ldc] = all + lane[0];                                                                            \
    }                                                                                                        \
  }                                                                                                          \
  static void dots_##suffix(void *c, int64_t ldc, const void *a, int64_t lda, const void *x, int64_t m,      \
                            int64_t k) {                                                                     \
    T *to = c;                                                                                               \
    const T *from = a;                                                                                       \
    for (; m >= DOTS; m -= DOTS, to += DOTS * ldc, from += DOTS * lda)                                       \
      dots_of_##suffix(DOTS, to, ldc, from, lda, x, k);                                                      \
    for (; m > 0; m--, to += ldc, from += lda) dots_of_##suffix(1, to, ldc, from, lda, x, k);                \
  }

PRODUCT(f64, double)
PRODUCT(w32, uint32_t)
PRODUCT(w64, uint64_t)

#define ENTRY(suffix)                                                                                        \
  { ROWS, VECTORS *LANES_##suffix, LANES_##suffix, tile_##suffix, dots_##suffix }
static const struct hn_wide_ops table = {
    .of = {[HN_WIDE_F64] = ENTRY(f64), [HN_WIDE_W32] = ENTRY(w32), [HN_WIDE_W64] = ENTRY(w64)}};
