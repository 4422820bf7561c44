/* Weights that stay codes in memory times rows of 8-bit numbers: see coded.h. Codes meet them as unsigned
 * bytes, so a block's sum begins with what their offset, the middle code or a zero point, adds too much. */
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/coded/coded.h"
#include "backends/cpu/kernels/template.h"
#include "base/fault.h"

enum { PANEL = HN_CODED_PANEL, GROUP = HN_CODED_GROUP_BYTES };

static void narrow(const hn_coded *w, const float *a, int8_t *to, float *scale, int32_t *sum) {
  for (size_t b = 0; b < w->blocks; b++, a += w->block, to += w->block) {
    __m512 most = _mm512_setzero_ps();
    __mmask16 nan = 0;
    for (size_t k = 0; k < w->block; k += 16) {
      const __mmask16 live = w->block - k < 16 ? (__mmask16)((1u << (w->block - k)) - 1u) : 0xffff;
      const __m512 x = _mm512_maskz_loadu_ps(live, a + k);
      nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
      most = _mm512_max_ps(most, _mm512_abs_ps(x));
    }
    const float top = nan ? __builtin_nanf("") : _mm512_reduce_max_ps(most),
                by = top > 0 ? 127.0f / top : 0.0f;
    __m512i all = _mm512_setzero_si512();
    scale[b] = top / 127.0f;
    for (size_t k = 0; k < w->block; k += 16) {
      const __mmask16 live = w->block - k < 16 ? (__mmask16)((1u << (w->block - k)) - 1u) : 0xffff;
      const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(live, a + k), _mm512_set1_ps(by));
      /* What is no number has a scale that is none; it must not leave the range of the sum. */
      const __m512i q = _mm512_max_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(-128));
      all = _mm512_add_epi32(all, q);
      _mm512_mask_cvtsepi32_storeu_epi8(to + k, live, q);
    }
    sum[b] = _mm512_reduce_add_epi32(all);
  }
}

static inline __m512i group_of(const int8_t *a) {
  int32_t four;
  memcpy(&four, a, sizeof four);
  return _mm512_set1_epi32(four);
}

/* What a block's sum begins with: offset of the codes as bytes, and the zero points, times the numbers' sum.
 */
static inline __attribute__((always_inline)) __m512i begin_of(const hn_coded *w, int bits, bool zeros,
                                                              const int8_t *zero, int32_t sum) {
  const __m512i offset = _mm512_set1_epi32(bits == 4 ? 8 : 128), s = _mm512_set1_epi32(-sum);
  (void)w;
  if (!zeros) return _mm512_mullo_epi32(offset, s);
  return _mm512_mullo_epi32(
      _mm512_add_epi32(offset, _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)zero))), s);
}

static inline __attribute__((always_inline)) void tile_of(const hn_coded *w, int rows, int wide, int bits,
                                                          bool zeros, const int8_t *a, const float *a_scale,
                                                          const int32_t *a_sum, size_t n, size_t left,
                                                          float *y, ptrdiff_t y_row) {
  enum { MOST = 8 };
  const size_t blocks = w->blocks, a_row = blocks * w->block, codes = hn_coded_codes(w),
               panel = hn_coded_panel_bytes(w);
  const uint8_t *at[4];
  const int8_t *zero[4];
  const __m512i low = _mm512_set1_epi8(0x0f), turn = _mm512_set1_epi8(bits == 4 ? 0x08 : (char)0x80);
  __m512 total[MOST][4];
  HN_UNROLL for (int v = 0; v < wide; v++) {
    at[v] = w->panels + (n / PANEL + (size_t)v) * panel;
    zero[v] = zeros ? w->zero_codes + (n / PANEL + (size_t)v) * blocks * PANEL : NULL;
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) total[r][v] =
      _mm512_setzero_ps();
  for (size_t b = 0; b < blocks; b++) {
    __m512i part[MOST][4];
    HN_UNROLL for (int r = 0; r < rows; r++) {
      const int32_t sum = a_sum[(size_t)r * blocks + b];
      HN_UNROLL for (int v = 0; v < wide; v++) part[r][v] =
          begin_of(w, bits, zeros, zeros ? zero[v] + b * PANEL : NULL, sum);
    }
    for (size_t g = PANEL * sizeof(float); g < PANEL * sizeof(float) + codes; g += GROUP) {
      HN_UNROLL for (int v = 0; v < wide; v++) {
        const __m512i x = _mm512_loadu_si512(at[v] + g);
        if (bits == 4) { /* (x & 15) ^ 8: a nibble in two's complement is unsigned again */
          const __m512i l = _mm512_ternarylogic_epi32(x, low, turn, 0x6a),
                        h = _mm512_ternarylogic_epi32(_mm512_srli_epi16(x, 4), low, turn, 0x6a);
          HN_UNROLL for (int r = 0; r < rows; r++) {
            part[r][v] = _mm512_dpbusd_epi32(part[r][v], l, group_of(a + (size_t)r * a_row));
            part[r][v] = _mm512_dpbusd_epi32(part[r][v], h, group_of(a + (size_t)r * a_row + 4));
          }
        } else {
          const __m512i u = _mm512_xor_si512(x, turn);
          HN_UNROLL for (int r = 0; r < rows; r++) part[r][v] =
              _mm512_dpbusd_epi32(part[r][v], u, group_of(a + (size_t)r * a_row));
        }
      }
      a += bits == 4 ? 8 : 4;
    }
    HN_UNROLL for (int v = 0; v < wide; v++) {
      const __m512 scale = _mm512_loadu_ps(at[v]);
      HN_UNROLL for (int r = 0; r < rows; r++) {
        const __m512 both = _mm512_mul_ps(
            scale, _mm512_set1_ps(a_scale[HN_FAULT("coded_order") ? b : (size_t)r * blocks + b]));
        total[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[r][v]), both, total[r][v]);
      }
      at[v] += PANEL * sizeof(float) + codes;
    }
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) {
    const size_t from = (size_t)v * PANEL, live = left > from ? left - from : 0;
    if (live)
      _mm512_mask_storeu_ps(y + r * y_row + from,
                            live < PANEL ? (__mmask16)((1u << live) - 1u) : (__mmask16)0xffff, total[r][v]);
  }
}

#define TILE(NAME, ROWS, WIDE)                                                                               \
  static void NAME(const hn_coded *w, const int8_t *a, const float *scale, const int32_t *sum, size_t n,     \
                   size_t left, float *y, ptrdiff_t y_row) {                                                 \
    if (w->bits == 4 && !w->zero_codes)                                                                      \
      tile_of(w, ROWS, WIDE, 4, false, a, scale, sum, n, left, y, y_row);                                    \
    else if (w->bits == 4)                                                                                   \
      tile_of(w, ROWS, WIDE, 4, true, a, scale, sum, n, left, y, y_row);                                     \
    else if (!w->zero_codes)                                                                                 \
      tile_of(w, ROWS, WIDE, 8, false, a, scale, sum, n, left, y, y_row);                                    \
    else                                                                                                     \
      tile_of(w, ROWS, WIDE, 8, true, a, scale, sum, n, left, y, y_row);                                     \
  }
TILE(one_row, 1, 4)
TILE(one_by_one, 1, 1)
TILE(two_rows, 2, 2)
TILE(four_rows, 4, 2)
TILE(eight_rows, 8, 1)

typedef struct tile_kind {
  void (*run)(const hn_coded *w, const int8_t *a, const float *scale, const int32_t *sum, size_t n,
              size_t left, float *y, ptrdiff_t y_row);
  size_t rows, wide;
} tile_kind;

static const tile_kind kinds[] = {
    {eight_rows, 8, 1}, {four_rows, 4, 2}, {two_rows, 2, 2}, {one_row, 1, 4}, {one_by_one, 1, 1}};

static void product(const hn_coded *w, const hn_coded_rows *a, size_t rows, size_t from, size_t end, float *y,
                    ptrdiff_t y_row) {
  enum { TOGETHER = 4 * PANEL };
  const size_t a_row = w->blocks * w->block;
  for (size_t n = from, stop; n < end; n = stop) {
    stop = n + TOGETHER < end ? n + TOGETHER : end;
    const size_t vectors = (stop - n + PANEL - 1) / PANEL;
    for (size_t r = 0, m; r < rows; r += m) {
      const tile_kind *t = kinds;
      while (t->rows > rows - r) t++;
      m = t->rows;
      for (size_t v = 0; v < vectors;) {
        const tile_kind *u = t;
        size_t some = m;
        while (u->wide > vectors - v) u++, some = u->rows;
        for (size_t i = 0; i < m; i += some)
          u->run(w, a->a + (r + i) * a_row, a->scale + (r + i) * w->blocks, a->sum + (r + i) * w->blocks,
                 n + v * PANEL, stop - n - v * PANEL,
                 y + (ptrdiff_t)(r + i) * y_row + (ptrdiff_t)(n - from + v * PANEL), y_row);
        v += u->wide;
      }
    }
  }
}

static const hn_coded_int8_ops table = {.narrow = narrow, .product = product};

const struct hn_kernel hn_kernel_coded_int8_avx512vnni = {.name = "coded_int8_avx512vnni",
                                                          .family = "coded",
                                                          .role = "int8",
                                                          .isa = HN_ISA_AVX512VNNI,
                                                          .ops = &table};
