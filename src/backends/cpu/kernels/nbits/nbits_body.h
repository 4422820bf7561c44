/* The body of nbits_<tier>.c. A byte holds 8 / bits codes. A vector of bytes, one a lane, gives as many
 * vectors of values, by a shift each; A's values are brought into that order once, so that nothing is
 * shuffled: values of a run of VEC_W bytes lie as [part][lane], with zeros where a block's bytes end before
 * the lanes do. */
#include "backends/cpu/kernels/nbits/nbits.h"

#include <string.h>

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

#if VEC_W == 16
static inline vi bytes_of(const uint8_t *p, size_t n) {
  return _mm512_cvtepu8_epi32(n == VEC_W ? _mm_loadu_si128((const void *)p)
                                         : _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p));
}
/* Sixteen values are looked up, where a code has no more than four bits: what lies above them is not read. */
typedef struct values {
  vf table, zero, scale;
} values;
static inline values values_of(float zero, float scale, int bits) {
  const vf codes = bits == 2 ? _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3)
                             : _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const vf z = v_set1(zero), s = v_set1(scale);
  return (values){v_mul(v_sub(codes, z), s), z, s};
}
static inline vf value(const values *v, vi bytes, int shift) {
  return _mm512_permutexvar_ps(shift ? _mm512_srli_epi32(bytes, (unsigned)shift) : bytes, v->table);
}
static inline vf whole(const values *v, vi bytes) {
  return v_mul(v_sub(_mm512_cvtepi32_ps(bytes), v->zero), v->scale);
}
/* Codes i, i + 1... of a run, one a lane; p: the byte that holds the first. */
static inline vf spread(const uint8_t *p, size_t n, uint32_t bits, uint32_t flip) {
  static const uint8_t of[3][16] = {{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3},
                                    {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7},
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  const __m128i order = _mm_loadu_si128((const void *)of[bits >> 2]),
                bytes = _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p);
  const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
           shift = _mm512_mullo_epi32(_mm512_and_si512(lane, _mm512_set1_epi32((int)(8 / bits - 1))),
                                      _mm512_set1_epi32((int)bits)),
           codes = _mm512_and_si512(
               _mm512_srlv_epi32(_mm512_cvtepu8_epi32(_mm_shuffle_epi8(bytes, order)), shift),
               _mm512_set1_epi32((1 << bits) - 1));
  return _mm512_cvtepi32_ps(_mm512_xor_si512(codes, _mm512_set1_epi32((int)flip)));
}
#elif VEC_W == 8
static inline vi bytes_of(const uint8_t *p, size_t n) {
  uint8_t part[8] = {0};
  if (n < VEC_W) p = memcpy(part, p, n);
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}
typedef struct values {
  vf zero, scale;
  vi mask;
} values;
static inline values values_of(float zero, float scale, int bits) {
  return (values){v_set1(zero), v_set1(scale), _mm256_set1_epi32((1 << bits) - 1)};
}
static inline vf value(const values *v, vi bytes, int shift) {
  const vi code = _mm256_and_si256(shift ? _mm256_srli_epi32(bytes, shift) : bytes, v->mask);
  return v_mul(v_sub(_mm256_cvtepi32_ps(code), v->zero), v->scale);
}
static inline vf whole(const values *v, vi bytes) {
  return v_mul(v_sub(_mm256_cvtepi32_ps(bytes), v->zero), v->scale);
}
static inline vf spread(const uint8_t *p, size_t n, uint32_t bits, uint32_t flip) {
  static const uint8_t of[3][16] = {
      {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7}};
  uint8_t part[8] = {0};
  memcpy(part, p, n);
  const __m128i bytes =
      _mm_shuffle_epi8(_mm_loadl_epi64((const void *)part), _mm_loadu_si128((const void *)of[bits >> 2]));
  const vi lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
           shift = _mm256_mullo_epi32(_mm256_and_si256(lane, _mm256_set1_epi32((int)(8 / bits - 1))),
                                      _mm256_set1_epi32((int)bits)),
           codes = _mm256_and_si256(_mm256_srlv_epi32(_mm256_cvtepu8_epi32(bytes), shift),
                                    _mm256_set1_epi32((1 << bits) - 1));
  return _mm256_cvtepi32_ps(_mm256_xor_si256(codes, _mm256_set1_epi32((int)flip)));
}
#endif

enum { ROWS = 4, COLUMNS = 4, LANES = VEC_W == 1 ? 4 : VEC_W };

static inline size_t runs_of(const hn_nbits_matrix *w) { return (w->block_bytes + LANES - 1) / LANES; }

static size_t packed(const hn_nbits_matrix *w) { return w->blocks * runs_of(w) * LANES * (8 / w->bits); }

static void pack(const hn_nbits_matrix *w, const float *a, size_t k, float *dst) {
  const size_t parts = 8 / w->bits, runs = runs_of(w), block = w->block_bytes * parts;
  memset(dst, 0, packed(w) * sizeof *dst);
  for (size_t i = 0; i < k; i++) {
    const size_t in = i % block, byte = in / parts;
    dst[(i / block * runs + byte / LANES) * LANES * parts + in % parts * LANES + byte % LANES] = a[i];
  }
}

static inline float zero_of(const hn_nbits_matrix *w, size_t n, size_t b) {
  if (w->zero_floats) return w->zero_floats[n * w->blocks + b];
  if (!w->zeros) return (float)(1u << (w->bits - 1));
  const size_t each = 8 / w->bits;
  return (float)((uint32_t)w->zeros[n * w->zero_row + b / each] >> (b % each * w->bits) &
                 ((1u << w->bits) - 1));
}

#if VEC_W == 1
static void tile(const hn_nbits_matrix *w, const float *a, size_t a_row, size_t rows, size_t n, float *out) {
  const size_t parts = 8 / w->bits, runs = runs_of(w);
  const uint8_t *p = w->codes + n * w->blocks * w->block_bytes;
  for (size_t r = 0; r < rows; r++) out[r] = 0;
  for (size_t b = 0; b < w->blocks; b++, a += runs * LANES * parts) {
    const float zero = zero_of(w, n, b), scale = w->scales[n * w->blocks + b];
    for (size_t i = 0; i < w->block_bytes; i++, p++)
      for (size_t part = 0; part < parts; part++) {
        const float v = ((float)(*p >> (part * w->bits) & ((1u << w->bits) - 1)) - zero) * scale;
        for (size_t r = 0; r < rows; r++)
          out[r] += v * a[r * a_row + i / LANES * LANES * parts + part * LANES + i % LANES];
      }
  }
}
#else
/* out[column][row] of `columns` columns from n on; what follows `out` and rows and columns are constants
 * where it is inlined. Several columns at once, for the sake of sums that do not wait for each other. full:
 * blocks are whole runs; zeros: there are zero points. */
static inline __attribute__((always_inline)) void tile_of(const hn_nbits_matrix *w, const float *a,
                                                          size_t a_row, int rows, int columns, size_t n,
                                                          float *out, int bits, bool full, bool zeros) {
  const int parts = 8 / bits;
  const size_t blocks = w->blocks, block_bytes = w->block_bytes, runs = runs_of(w),
               column = blocks * block_bytes;
  const uint8_t *p = w->codes + n * column;
  const float *scale = w->scales + n * blocks, middle = (float)(1 << (bits - 1));
  vf sum[COLUMNS][ROWS];
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++) sum[c][r] = v_zero();
  for (size_t b = 0; b < blocks; b++) {
    values of[COLUMNS];
    for (int c = 0; c < columns; c++)
      of[c] = values_of(zeros ? zero_of(w, n + (size_t)c, b) : middle, scale[(size_t)c * blocks + b], bits);
    size_t left = block_bytes;
    for (size_t i = 0; i < runs; i++, a += parts * VEC_W) {
      const size_t take = full || left >= VEC_W ? VEC_W : left,
                   live = HN_FAULT("nbits_run") && take < VEC_W ? take - 1 : take;
      for (int c = 0; c < columns; c++) {
        const vi bytes = bytes_of(p + (size_t)c * column, live);
        for (int part = 0; part < parts; part++) {
          const vf v = bits == 8 ? whole(&of[c], bytes) : value(&of[c], bytes, part * bits);
          for (int r = 0; r < rows; r++)
            sum[c][r] = v_fma(v, v_load(a + (size_t)r * a_row + (size_t)part * VEC_W), sum[c][r]);
        }
      }
      p += take, left -= take;
    }
  }
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++) out[c * rows + r] = v_hsum(sum[c][r]);
}

#define TILE(NAME, M, N)                                                                                     \
  TILE_OF(NAME, M, N, 2)                                                                                     \
  TILE_OF(NAME, M, N, 4)                                                                                     \
  TILE_OF(NAME, M, N, 8)                                                                                     \
  static void NAME(const hn_nbits_matrix *w, const float *a, size_t a_row, size_t n, float *out) {           \
    (w->bits == 4 ? NAME##_4 : w->bits == 2 ? NAME##_2 : NAME##_8)(w, a, a_row, n, out);                     \
  }
#define TILE_OF(NAME, M, N, BITS)                                                                            \
  static void NAME##_##BITS(const hn_nbits_matrix *w, const float *a, size_t a_row, size_t n, float *out) {  \
    if (w->block_bytes % VEC_W)                                                                              \
      tile_of(w, a, a_row, M, N, n, out, BITS, false, true);                                                 \
    else if (w->zeros || w->zero_floats)                                                                     \
      tile_of(w, a, a_row, M, N, n, out, BITS, true, true);                                                  \
    else                                                                                                     \
      tile_of(w, a, a_row, M, N, n, out, BITS, true, false);                                                 \
  }
TILE(one_by_one, 1, 1)
TILE(one_by_many, 1, COLUMNS)
TILE(many_by_one, ROWS, 1)
TILE(many_by_two, ROWS, 2)
#endif

static void product(const hn_nbits_matrix *w, const float *a, size_t rows, size_t from, size_t end,
                    const float *bias, float *y, ptrdiff_t y_row) {
  const size_t a_row = packed(w);
  for (size_t n = from, columns; n < end; n += columns) {
    columns = 1;
#if VEC_W > 1
    if (rows < ROWS && end - n >= COLUMNS)
      columns = COLUMNS;
    else if (rows >= ROWS && end - n >= 2)
      columns = 2;
#endif
    for (size_t r = 0, m; r < rows; r += m) {
      float out[COLUMNS * ROWS];
      const float *at = a + r * a_row;
      m = rows - r < ROWS ? 1 : ROWS;
#if VEC_W == 1
      tile(w, at, a_row, m, n, out);
#else
      if (m == ROWS)
        (columns == 2 ? many_by_two : many_by_one)(w, at, a_row, n, out);
      else if (columns == COLUMNS)
        one_by_many(w, at, a_row, n, out);
      else
        for (size_t c = 0; c < columns; c++) one_by_one(w, at, a_row, n + c, out + c);
#endif
      for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < m; i++)
          y[(ptrdiff_t)(r + i) * y_row + (ptrdiff_t)(n + c)] = out[c * m + i] + (bias ? bias[n + c] : 0.0f);
    }
  }
}

static void decode(float *dst, const uint8_t *codes, size_t n, uint32_t bits, uint32_t flip, float zero,
                   float scale) {
  const size_t each = 8 / bits;
#if VEC_W == 1
  for (size_t i = 0; i < n; i++) {
    const uint32_t code = (uint32_t)codes[i / each] >> (i % each * bits) & ((1u << bits) - 1);
    dst[i] = ((float)(code ^ flip) - zero) * scale;
  }
#else
  const vf z = v_set1(zero), s = v_set1(scale);
  for (size_t i = 0; i < n; i += VEC_W) {
    const size_t take = n - i < VEC_W ? n - i : VEC_W;
    const vf v = v_mul(v_sub(spread(codes + i / each, (take + each - 1) / each, bits, flip), z), s);
    v_storen(dst + i, v, HN_FAULT("nbits_decode_tail") && take < VEC_W ? take - 1 : take);
  }
#endif
}

static const hn_nbits_ops table = {.packed = packed, .pack = pack, .product = product, .decode = decode};
