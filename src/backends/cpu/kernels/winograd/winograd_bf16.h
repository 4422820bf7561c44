/* Vectors from and to bf16 for winograd_body.h, AVX512-BF16.  Included before it, behind vec.h. */
#define WINO_BF16

static inline vf narrow_load(const void *p) { return v_load_bf16(p); }
static inline vf narrow_loadn(const void *p, size_t n) {
  const __m256i x = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
/* The instruction takes denormals as 0, as the products do. */
static inline void narrow_store(void *p, vf x) { _mm256_storeu_si256(p, (__m256i)_mm512_cvtneps_pbh(x)); }
static inline void narrow_storen(void *p, vf x, size_t n) {
  _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)_mm512_cvtneps_pbh(x));
}
