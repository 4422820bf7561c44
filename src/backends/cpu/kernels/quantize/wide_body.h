/* Codes of 16 bits (quantize.h). */

static inline void quantize_wide(void *dst_, const float *src, size_t n, const float *scale,
                                 const float *zero, bool vectors, bool is_signed) {
  const vf lo = v_set1(is_signed ? -32768.0f : 0.0f), hi = v_set1(is_signed ? 32767.0f : 65535.0f);
  unsigned char *dst = dst_;
  size_t i = 0;
  if (n == 0) return;
  const vf s1 = v_set1(*scale), z1 = v_set1(*zero);
  if (!vectors && *scale > 0x1p-100f && *scale < 0x1p100f)
    for (const double over = 1 / (double)*scale; i + VEC_W <= n; i += VEC_W) {
      const vf q = v_add(v_round(v_over(v_load(src + i), over)), z1);
      v_store_16(dst + 2 * i, v_min_number(hi, v_max_number(q, lo)));
    }
  for (; i + VEC_W <= n; i += VEC_W)
    v_store_16(dst + 2 * i, quantized(v_load(src + i), vectors ? v_load(scale + i) : s1,
                                      vectors ? v_load(zero + i) : z1, lo, hi, false));
  if (i == n) return;
  unsigned char rest[2 * VEC_W];
  const vf s = vectors ? v_loadn(scale + i, n - i) : s1, z = vectors ? v_loadn(zero + i, n - i) : z1;
  v_store_16(rest, quantized(v_loadn(src + i, n - i), s, z, lo, hi, false));
  memcpy(dst + 2 * i, rest, 2 * (HN_FAULT("quantize_wide_tail") ? n - i - 1 : n - i));
}

static inline void dequantize_wide(float *dst, const void *src_, size_t n, const float *scale,
                                   const float *zero, bool vectors, bool is_signed) {
  const unsigned char *src = src_;
  size_t i = 0;
  if (n == 0) return;
  const vf s1 = v_set1(*scale), z1 = v_set1(*zero);
  for (; i + VEC_W <= n; i += VEC_W) {
    const vf q = is_signed ? v_load_i16(src + 2 * i) : v_load_u16(src + 2 * i);
    v_store(dst + i,
            vectors ? v_mul(v_sub(q, v_load(zero + i)), v_load(scale + i)) : v_mul(v_sub(q, z1), s1));
  }
  if (i == n) return;
  unsigned char rest[2 * VEC_W] = {0};
  memcpy(rest, src + 2 * i, 2 * (n - i));
  const vf q = is_signed ? v_load_i16(rest) : v_load_u16(rest);
  const vf s = vectors ? v_loadn(scale + i, n - i) : s1, z = vectors ? v_loadn(zero + i, n - i) : z1;
  v_storen(dst + i, v_mul(v_sub(q, z), s), n - i);
}

/* Plain loops, which compilers make vectors of. */
static void split(uint8_t *restrict high, uint8_t *restrict low, const uint16_t *restrict src, size_t n,
                  bool is_signed) {
  const uint16_t turn = is_signed ? 0x8000 : 0;
  for (size_t i = 0; i < n; i++) {
    high[i] = (uint8_t)((uint16_t)(src[i] ^ turn) >> 8);
    low[i] = (uint8_t)src[i];
  }
}

/* Exact in f64, and so rounded once on the way to f32. */
static void join(float *restrict y, const int32_t *restrict high, const int32_t *restrict low, size_t n,
                 const float *restrict scale) {
  for (size_t i = 0; i < n; i++)
    y[i] = (float)((double)high[i] * (HN_FAULT("join_high") ? 255.0 : 256.0) + (double)low[i]) * scale[i];
}

static void grid(float *dst, const float *src, size_t n, const hn_quantize_grid *g) {
  const double over = 1 / (double)g->scale;
  const vf s = v_set1(g->scale), lo = v_set1(g->lo), hi = v_set1(g->hi);
  size_t i = 0;
  for (; i < n; i += VEC_W) {
    const size_t left = n - i;
    const vf x = left < VEC_W ? v_loadn(src + i, left) : v_load(src + i), r = v_round(v_over(x, over)),
             least = g->least ? v_max_number(r, lo) : v_max_number(lo, r),
             y = v_mul(v_min_number(hi, least), s);
    if (left < VEC_W)
      v_storen(dst + i, y, HN_FAULT("quantize_grid_tail") ? left - 1 : left);
    else
      v_store(dst + i, y);
  }
}
