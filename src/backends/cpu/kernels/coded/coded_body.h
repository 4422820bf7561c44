/* The body of coded_f32_<tier>.c: see coded.h. */
#include "backends/cpu/kernels/coded/coded.h"

#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

enum { PANEL = HN_CODED_PANEL, GROUP = HN_CODED_GROUP_BYTES };

/* A code of each lane's four bytes, less the middle one: number `at` of a group. */
#if VEC_W == 16
typedef vf lookup;
static inline lookup lookup_of(void) {
  return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
}
static inline vi lanes(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline vf value4(lookup t, vi x, int at) {
  const int shift = at % 4 * 8 + at / 4 * 4;
  return _mm512_permutexvar_ps(shift ? _mm512_srli_epi32(x, (unsigned)shift) : x, t);
}
static inline vf value8(vi x, int at) {
  return _mm512_cvtepi32_ps(
      _mm512_srai_epi32(at < 3 ? _mm512_slli_epi32(x, (unsigned)(24 - 8 * at)) : x, 24));
}
static inline void store_pairs(float *to, vf even, vf odd) {
  const vi low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
           high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  v_store(to, _mm512_permutex2var_ps(even, low, odd));
  v_store(to + 16, _mm512_permutex2var_ps(even, high, odd));
}
#elif VEC_W == 8
typedef int lookup;
static inline lookup lookup_of(void) { return 0; }
static inline vi lanes(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }
static inline vf value4(lookup t, vi x, int at) {
  (void)t;
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x, 28 - at % 4 * 8 - at / 4 * 4), 28));
}
static inline vf value8(vi x, int at) {
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x, 24 - 8 * at), 24));
}
static inline void store_pairs(float *to, vf even, vf odd) {
  const vf low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  v_store(to, _mm256_permute2f128_ps(low, high, 0x20));
  v_store(to + 8, _mm256_permute2f128_ps(low, high, 0x31));
}
#else
typedef int lookup;
static inline lookup lookup_of(void) { return 0; }
typedef const uint8_t *one;
static inline one lanes(const uint8_t *p) { return p; }
static inline vf value4(lookup t, one x, int at) {
  (void)t;
  return (float)(int8_t)((at < 4 ? x[at % 4] << 4 : x[at % 4]) & 0xf0) / 16;
}
static inline vf value8(one x, int at) { return (float)(int8_t)x[at]; }
static inline void store_pairs(float *to, vf even, vf odd) { to[0] = even, to[1] = odd; }
#define vi one
#endif

/* Where a vector of columns begins in the first block of its panel, and among the zero points. */
static inline const uint8_t *block_at(const hn_coded *w, size_t n) {
  return w->panels + n / PANEL * hn_coded_panel_bytes(w) + n % PANEL * sizeof(float);
}

static inline vf zero_at(const hn_coded *w, size_t n, size_t b) {
  const size_t at = (n / PANEL * w->blocks + b) * PANEL + n % PANEL;
  return w->zero_codes ? v_load_i8(w->zero_codes + at) : v_load(w->zero_floats + at);
}

static void sums(const hn_coded *w, const float *a, float *out) {
  for (size_t b = 0; b < w->blocks; b++, a += w->block) {
    vf sum = v_zero();
    for (size_t k = 0; k < w->block; k += 8) {
#if VEC_W == 16
      sum = v_add(sum, v_loadn(a + k, 8));
#elif VEC_W == 8
      sum = v_add(sum, v_load(a + k));
#else
      for (size_t i = 0; i < 8; i++) sum += a[k + i];
#endif
    }
    out[b] = v_hsum(sum);
  }
}

/* `rows` rows by `wide` vectors of columns from n on; what follows w are constants where it is inlined. Sums
 * of a block are made of codes, and scaled once. */
static inline __attribute__((always_inline)) void tile_of(const hn_coded *w, int rows, int wide, int bits,
                                                          bool zeros, const float *a, const float *sum,
                                                          size_t n, size_t left, float *y, ptrdiff_t y_row) {
  enum { MOST = 8, AHEAD = 2048 }; /* bytes that come from memory meanwhile */
  const int each = bits == 4 ? 8 : 4;
  const size_t a_row = w->blocks * w->block, codes = hn_coded_codes(w), block = hn_coded_block_bytes(w);
  const lookup table = lookup_of();
  const uint8_t *at[4];
  vf total[MOST][4];
  HN_UNROLL for (int v = 0; v < wide; v++) at[v] = block_at(w, n + (size_t)v * VEC_W);
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) total[r][v] = v_zero();
  for (size_t b = 0; b < w->blocks; b++) {
    vf part[MOST][4];
    HN_UNROLL for (int v = 0; v < wide; v++) {
      const vf zero = zeros ? v_neg(zero_at(w, n + (size_t)v * VEC_W, b)) : v_zero();
      HN_UNROLL for (int r = 0; r < rows; r++) part[r][v] =
          zeros ? v_mul(v_set1(sum[(size_t)r * w->blocks + b]), zero) : v_zero();
    }
    for (size_t g = PANEL * sizeof(float); g < PANEL * sizeof(float) + codes; g += GROUP, a += each) {
      vi x[4];
      HN_UNROLL for (int v = 0; v < wide; v++) __builtin_prefetch(at[v] + g + AHEAD);
      HN_UNROLL for (int v = 0; v < wide; v++) x[v] = lanes(at[v] + g);
      HN_UNROLL for (int i = 0; i < each; i++) {
        HN_UNROLL for (int v = 0; v < wide; v++) {
          const vf c = bits == 4 ? value4(table, x[v], HN_FAULT("coded_order") ? i ^ 1 : i) : value8(x[v], i);
          HN_UNROLL for (int r = 0; r < rows; r++) part[r][v] =
              v_fma(c, v_set1(a[(size_t)r * a_row + (size_t)i]), part[r][v]);
        }
      }
    }
    HN_UNROLL for (int v = 0; v < wide; v++) {
      const vf scale = v_load((const float *)(const void *)at[v]);
      HN_UNROLL for (int r = 0; r < rows; r++) total[r][v] = v_fma(scale, part[r][v], total[r][v]);
      at[v] += block;
    }
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) {
    const size_t from = (size_t)v * VEC_W, live = left > from ? left - from : 0;
    if (live) v_storen(y + r * y_row + from, total[r][v], live < VEC_W ? live : VEC_W);
  }
}

#include "backends/cpu/kernels/coded/coded_halves.h"

#define TILE(NAME, ROWS, WIDE)                                                                               \
  static void NAME(const hn_coded *w, const float *a, const float *sum, size_t n, size_t left, float *y,     \
                   ptrdiff_t y_row) {                                                                        \
    const bool zeros = hn_coded_has_zeros(w);                                                                \
    if (w->bits == 16 && w->bf16)                                                                            \
      halves_tile(w, ROWS, WIDE, true, a, n, left, y, y_row);                                                \
    else if (w->bits == 16)                                                                                  \
      halves_tile(w, ROWS, WIDE, false, a, n, left, y, y_row);                                               \
    else if (w->bits == 4 && !zeros)                                                                         \
      tile_of(w, ROWS, WIDE, 4, false, a, sum, n, left, y, y_row);                                           \
    else if (w->bits == 4)                                                                                   \
      tile_of(w, ROWS, WIDE, 4, true, a, sum, n, left, y, y_row);                                            \
    else if (!zeros)                                                                                         \
      tile_of(w, ROWS, WIDE, 8, false, a, sum, n, left, y, y_row);                                           \
    else                                                                                                     \
      tile_of(w, ROWS, WIDE, 8, true, a, sum, n, left, y, y_row);                                            \
  }
TILE(one_by_one, 1, 1)
TILE(two_rows, 2, VEC_W > 1 ? 2 : 1)
TILE(four_rows, 4, VEC_W == 16 ? 2 : 1)
#if VEC_W > 1
TILE(one_row, 1, 4)
#endif
#if VEC_W == 16
TILE(eight_rows, 8, 1)
#endif

/* A tile of at most so many rows, and its vectors of columns. */
typedef struct tile_kind {
  void (*run)(const hn_coded *w, const float *a, const float *sum, size_t n, size_t left, float *y,
              ptrdiff_t y_row);
  size_t rows, wide;
} tile_kind;

static const tile_kind kinds[] = {
#if VEC_W == 16
    {eight_rows, 8, 1},
#endif
    {four_rows, 4, VEC_W == 16 ? 2 : 1},
    {two_rows, 2, VEC_W > 1 ? 2 : 1},
#if VEC_W > 1
    {one_row, 1, 4},
#endif
    {one_by_one, 1, 1}};

static void product(const hn_coded *w, const float *a, const float *sum, size_t rows, size_t from, size_t end,
                    float *y, ptrdiff_t y_row) {
  enum { TOGETHER = 4 * VEC_W }; /* columns that all rows meet before the next ones, whatever their tiles */
  const size_t a_row = w->blocks * w->block;
  for (size_t n = from, stop; n < end; n = stop) {
    stop = n + TOGETHER < end ? n + TOGETHER : end;
    const size_t vectors = (stop - n + VEC_W - 1) / VEC_W;
    for (size_t r = 0, m; r < rows; r += m) {
      const tile_kind *t = kinds;
      while (t->rows > rows - r) t++;
      m = t->rows;
      for (size_t v = 0; v < vectors;) {
        const tile_kind *u = t;
        size_t some = m;
        while (u->wide > vectors - v) u++, some = u->rows;
        /* Fewer vectors than the tile has: tiles of fewer rows. */
        for (size_t i = 0; i < m; i += some)
          u->run(w, a + (r + i) * a_row, sum ? sum + (r + i) * w->blocks : NULL, n + v * VEC_W,
                 stop - n - v * VEC_W, y + (ptrdiff_t)(r + i) * y_row + (ptrdiff_t)(n - from + v * VEC_W),
                 y_row);
        v += u->wide;
      }
    }
  }
}

/* The weights of group g of a block: `each` vectors, (code - zero) scale. */
static inline __attribute__((always_inline)) void group_of(int bits, bool zeros, lookup table,
                                                           const uint8_t *p, vf zero, vf scale, vf *out) {
  const vi x = lanes(p);
  const int each = bits == 4 ? 8 : 4;
  HN_UNROLL for (int i = 0; i < each; i++) {
    const vf c = bits == 4 ? value4(table, x, i) : value8(x, i);
    out[i] = v_mul(zeros ? v_sub(c, zero) : c, scale);
  }
}

static inline __attribute__((always_inline)) void widen_of(const hn_coded *w, int bits, bool zeros, size_t n,
                                                           size_t k0, size_t k1, float *dst, size_t row,
                                                           bool pairs, size_t step) {
  const int each = bits == 4 ? 8 : 4;
  const lookup table = lookup_of();
  for (size_t b = k0 / w->block; b < w->blocks && b * w->block < k1; b++) {
    const uint8_t *p = block_at(w, n) + b * hn_coded_block_bytes(w);
    const vf scale = v_load((const float *)(const void *)p), zero = zeros ? zero_at(w, n, b) : v_zero();
    const size_t begin = b * w->block, first = k0 > begin ? k0 : begin,
                 last = k1 < begin + w->block ? k1 : begin + w->block;
    p += PANEL * sizeof(float) + (first - begin) / (size_t)each * GROUP;
    for (size_t k = first; k < last; k += (size_t)each, p += GROUP) {
      vf of[8];
      group_of(bits, zeros, table, p, zero, scale, of);
      if (!pairs) {
        float *to = dst + (k - k0) * row;
        HN_UNROLL for (int i = 0; i < each; i++) v_store(to + (size_t)i * row, of[i]);
        continue;
      }
      const size_t in = k - k0;
      float *to = dst + in / 32 * step + in % 32 * PANEL;
      HN_UNROLL for (int i = 0; i < each; i += 2) store_pairs(to + i * PANEL, of[i], of[i + 1]);
    }
  }
}

static void widen(const hn_coded *w, size_t n, size_t columns, size_t k0, size_t k1, float *dst, size_t row) {
  const bool zeros = hn_coded_has_zeros(w);
  for (size_t c = 0; c < columns; c += VEC_W)
    if (w->bits == 16)
      halves_widen(w, n + c, k0, k1, dst + c, row, false, 0);
    else if (w->bits == 4 && !zeros)
      widen_of(w, 4, false, n + c, k0, k1, dst + c, row, false, 0);
    else if (w->bits == 4)
      widen_of(w, 4, true, n + c, k0, k1, dst + c, row, false, 0);
    else
      widen_of(w, 8, zeros, n + c, k0, k1, dst + c, row, false, 0);
}

static void widen_pairs(const hn_coded *w, size_t n, size_t k0, size_t k1, float *dst, size_t step) {
  const bool zeros = hn_coded_has_zeros(w);
  const size_t all = w->blocks * w->block, live = k1 < all ? k1 : all;
  for (size_t k = all > k0 ? all : k0; k < k1; k += 8)
    memset(dst + (k - k0) / 32 * step + (k - k0) % 32 * PANEL, 0, 8 * PANEL * sizeof *dst);
  for (size_t c = 0; c < PANEL; c += VEC_W)
    if (w->bits == 16)
      halves_widen(w, n + c, k0, live, dst + 2 * c, 0, true, step);
    else if (w->bits == 4 && !zeros)
      widen_of(w, 4, false, n + c, k0, live, dst + 2 * c, 0, true, step);
    else if (w->bits == 4)
      widen_of(w, 4, true, n + c, k0, live, dst + 2 * c, 0, true, step);
    else
      widen_of(w, 8, zeros, n + c, k0, live, dst + 2 * c, 0, true, step);
}

static const hn_coded_ops table = {
    .sums = sums, .product = product, .widen = widen, .widen_pairs = widen_pairs};
