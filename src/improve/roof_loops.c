/* Loops that do nothing but one kind of instruction, as fast as the processor can. Target attributes instead
 * of compile flags: this file must run everywhere, and only the chosen loop must match the processor. */
#include "improve/roofs.h"

#include <string.h>

/* Accumulators stay in registers: enough of them to hide the latency of four or five cycles on two ports. */
enum { ACCUMULATORS = 12 };

/* Keeps the compiler from seeing through the loop. */
#define OPAQUE(x) __asm__ volatile("" : "+x"(x))

static uint64_t bits_of(const void *p, size_t n) {
  uint64_t sum = 0, v;
  for (size_t i = 0; i + 8 <= n; i += 8) {
    memcpy(&v, (const char *)p + i, 8);
    sum += v;
  }
  return sum;
}

/* Plain C: what the compiler's baseline vectors of four reach. */
typedef float vec4 __attribute__((vector_size(16)));
static uint64_t f32_scalar(uint64_t rounds, const void *data, size_t bytes) {
  (void)data, (void)bytes;
  vec4 a[ACCUMULATORS] = {0}, x = {1, 1, 1, 1}, y = {0.5f, 0.5f, 0.5f, 0.5f};
  for (uint64_t r = 0; r < rounds; r++)
    for (int i = 0; i < ACCUMULATORS; i++) {
      a[i] = a[i] * y + x;
      OPAQUE(a[i]);
    }
  return bits_of(a, sizeof a);
}

static uint64_t read_scalar(uint64_t rounds, const void *data, size_t bytes) {
  uint64_t sum = 0;
  for (uint64_t r = 0; r < rounds; r++) {
    const uint64_t *p = data;
    uint64_t s[4] = {0};
    for (size_t i = 0; i + 4 <= bytes / 8; i += 4)
      for (int k = 0; k < 4; k++) s[k] += p[i + (size_t)k];
    sum += s[0] + s[1] + s[2] + s[3];
    __asm__ volatile("" : "+r"(sum) : : "memory");
  }
  return sum;
}

#if defined(__x86_64__)
#include "backends/cpu/kernels/amx_tiles.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define AVXVNNI __attribute__((target("avx2,avxvnni")))
#define BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

/* One arithmetic loop: `op` is applied to every accumulator once a round. */
#define ARITHMETIC(name, target, vec, zero, setup, op)                                                       \
  target static uint64_t name(uint64_t rounds, const void *data, size_t bytes) {                             \
    (void)data, (void)bytes;                                                                                 \
    setup;                                                                                                   \
    vec a0 = zero, a1 = zero, a2 = zero, a3 = zero, a4 = zero, a5 = zero, a6 = zero, a7 = zero, a8 = zero,   \
        a9 = zero, a10 = zero, a11 = zero;                                                                   \
    for (uint64_t r = 0; r < rounds; r++) {                                                                  \
      op(a0);                                                                                                \
      op(a1);                                                                                                \
      op(a2);                                                                                                \
      op(a3);                                                                                                \
      op(a4);                                                                                                \
      op(a5);                                                                                                \
      op(a6);                                                                                                \
      op(a7);                                                                                                \
      op(a8);                                                                                                \
      op(a9);                                                                                                \
      op(a10);                                                                                               \
      op(a11);                                                                                               \
    }                                                                                                        \
    vec all[ACCUMULATORS] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};                              \
    return bits_of(all, sizeof all);                                                                         \
  }

#define FMA256(a)                                                                                            \
  a = _mm256_fmadd_ps(a, y, x);                                                                              \
  OPAQUE(a)
ARITHMETIC(f32_avx2, AVX2, __m256, _mm256_setzero_ps(), __m256 x = _mm256_set1_ps(1);
           __m256 y = _mm256_set1_ps(0.5f), FMA256)

#define OPAQUE512(x) __asm__ volatile("" : "+v"(x))
#define FMA512(a)                                                                                            \
  a = _mm512_fmadd_ps(a, y, x);                                                                              \
  OPAQUE512(a)
ARITHMETIC(f32_avx512, AVX512, __m512, _mm512_setzero_ps(), __m512 x = _mm512_set1_ps(1);
           __m512 y = _mm512_set1_ps(0.5f), FMA512)

#define DOTI8(a)                                                                                             \
  a = _mm512_dpbusd_epi32(a, x, x);                                                                          \
  OPAQUE512(a)
ARITHMETIC(int8_vnni, VNNI, __m512i, _mm512_setzero_si512(), __m512i x = _mm512_set1_epi8(1), DOTI8)

#define DOTI8_256(a)                                                                                         \
  a = _mm256_dpbusd_avx_epi32(a, x, x);                                                                      \
  OPAQUE(a)
ARITHMETIC(int8_avxvnni, AVXVNNI, __m256i, _mm256_setzero_si256(), __m256i x = _mm256_set1_epi8(1), DOTI8_256)

#define DOTBF16(a)                                                                                           \
  a = _mm512_dpbf16_ps(a, x, x);                                                                             \
  OPAQUE512(a)
ARITHMETIC(bf16_avx512, BF16, __m512, _mm512_setzero_ps(),
           __m512bh x = (__m512bh)_mm512_set1_epi32(0x3f803f80), DOTBF16)

#define AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))

/* Tiles 0 to 3 accumulate, 4 to 7 are operands. */
#define TILES(name, dot)                                                                                     \
  AMX static uint64_t name(uint64_t rounds, const void *data, size_t bytes) {                                \
    (void)data, (void)bytes;                                                                                 \
    uint32_t sum[16 * 16];                                                                                   \
    hn_tiles_open(16);                                                                                       \
    _tile_zero(0);                                                                                           \
    _tile_zero(1);                                                                                           \
    _tile_zero(2);                                                                                           \
    _tile_zero(3);                                                                                           \
    _tile_zero(4);                                                                                           \
    _tile_zero(5);                                                                                           \
    _tile_zero(6);                                                                                           \
    _tile_zero(7);                                                                                           \
    for (uint64_t r = 0; r < rounds; r++) {                                                                  \
      dot(0, 4, 6);                                                                                          \
      dot(1, 4, 7);                                                                                          \
      dot(2, 5, 6);                                                                                          \
      dot(3, 5, 7);                                                                                          \
    }                                                                                                        \
    _tile_stored(3, sum, 64);                                                                                \
    _tile_release();                                                                                         \
    return bits_of(sum, sizeof sum);                                                                         \
  }
TILES(bf16_amx, _tile_dpbf16ps)
TILES(int8_amx, _tile_dpbusd)

/* Reads every vector once a round; eight independent sums. */
#define READ(name, target, vec, zero, load, add, width)                                                      \
  target static uint64_t name(uint64_t rounds, const void *data, size_t bytes) {                             \
    vec s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero, s6 = zero, s7 = zero;              \
    for (uint64_t r = 0; r < rounds; r++) {                                                                  \
      const char *p = data;                                                                                  \
      for (size_t i = 0; i + 8 * width <= bytes; i += 8 * width, p += 8 * width) {                           \
        s0 = add(s0, load((const void *)p));                                                                 \
        s1 = add(s1, load((const void *)(p + width)));                                                       \
        s2 = add(s2, load((const void *)(p + 2 * width)));                                                   \
        s3 = add(s3, load((const void *)(p + 3 * width)));                                                   \
        s4 = add(s4, load((const void *)(p + 4 * width)));                                                   \
        s5 = add(s5, load((const void *)(p + 5 * width)));                                                   \
        s6 = add(s6, load((const void *)(p + 6 * width)));                                                   \
        s7 = add(s7, load((const void *)(p + 7 * width)));                                                   \
      }                                                                                                      \
      __asm__ volatile("" : : : "memory");                                                                   \
    }                                                                                                        \
    vec all[8] = {s0, s1, s2, s3, s4, s5, s6, s7};                                                           \
    return bits_of(all, sizeof all);                                                                         \
  }

READ(read_avx2, AVX2, __m256i, _mm256_setzero_si256(), _mm256_load_si256, _mm256_add_epi64, 32)
READ(read_avx512, AVX512, __m512i, _mm512_setzero_si512(), _mm512_load_si512, _mm512_add_epi64, 64)
#endif

hn_roof_loops hn_roof_loops_of(hn_isa isa) {
  hn_roof_loops l = {.f32 = {f32_scalar, 8.0 * ACCUMULATORS}, .read = {read_scalar, 0}};
#if defined(__x86_64__)
  if (isa >= HN_ISA_AVX2) {
    l.f32 = (hn_roof_loop){f32_avx2, 16.0 * ACCUMULATORS};
    l.read = (hn_roof_loop){read_avx2, 0};
  }
  if (isa == HN_ISA_AVXVNNI) l.int8 = (hn_roof_loop){int8_avxvnni, 64.0 * ACCUMULATORS};
  if (isa >= HN_ISA_AVX512) {
    l.f32 = (hn_roof_loop){f32_avx512, 32.0 * ACCUMULATORS};
    l.read = (hn_roof_loop){read_avx512, 0};
  }
  if (isa >= HN_ISA_AVX512VNNI) l.int8 = (hn_roof_loop){int8_vnni, 128.0 * ACCUMULATORS};
  if (isa >= HN_ISA_AVX512BF16) l.bf16 = (hn_roof_loop){bf16_avx512, 64.0 * ACCUMULATORS};
  if (isa >= HN_ISA_AMX) {
    l.bf16 = (hn_roof_loop){bf16_amx, 4 * 2.0 * 16 * 16 * 32};
    l.int8_vector = l.int8;
    l.int8 = (hn_roof_loop){int8_amx, 4 * 2.0 * 16 * 16 * 64};
  }
#else
  (void)isa;
#endif
  return l;
}
