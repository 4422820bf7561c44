/* Products of a tensor of codes with numbers that come again and again: part of the body of
 * quantize_8_<tier>.c, behind `quantized`.
 *
 * With k = a scale b / y scale, (a - zero) k is close to the product as defined: both round three times, and
 * neither is above 255 in size where it is not cut off, so that they lie within 2^-13 of each other. They
 * round to the same integer unless one is so close to the middle between two: such vectors are computed as
 * defined. */

/* A vector as defined. */
static inline __attribute__((always_inline)) void mul_exactly(unsigned char *dst, const unsigned char *a,
                                                              vf b, const hn_quantize_mul *p) {
  const vf lo = v_set1(p->y_signed ? -128.0f : 0.0f), hi = v_set1(p->y_signed ? 127.0f : 255.0f),
           x = p->a_signed ? v_load_i8(a) : v_load_u8(a),
           real = v_mul(v_mul(v_sub(x, v_set1(p->a_zero)), v_set1(p->a_scale)), b);
  v_store_8(dst, quantized(real, v_set1(p->y_scale), v_set1(p->y_zero), lo, hi, false));
}

static inline __attribute__((always_inline)) void mul_four(unsigned char *dst, const unsigned char *a,
                                                           const float *b, const float *k,
                                                           const hn_quantize_mul *p, const bool is_signed) {
  const vf z = v_set1(p->a_zero), least = v_set1((p->y_signed ? -128.0f : 0.0f) - p->y_zero),
           most = v_set1((p->y_signed ? 127.0f : 255.0f) - p->y_zero);
  vf t[4], far = v_zero();
  HN_UNROLL for (int j = 0; j < 4; j++) {
    const unsigned char *u = a + j * VEC_W;
    const vf x = is_signed ? v_load_i8(u) : v_load_u8(u);
    t[j] = v_min_number(most, v_max_number(v_mul(v_sub(x, z), v_load(k + j * VEC_W)), least));
    far = v_from_integer(t[j], far);
  }
  v_store_codes(dst, t, (int)p->y_zero, p->y_signed);
  if (__builtin_expect(v_any(v_lt(v_set1(0.5f - 0x1p-13f), far)), 0) && !HN_FAULT("quantize_mul_ties"))
    for (int j = 0; j < 4; j++) mul_exactly(dst + j * VEC_W, a + j * VEC_W, v_load(b + j * VEC_W), p);
}

static inline __attribute__((always_inline)) void mul_period(unsigned char *dst, const unsigned char *a,
                                                             size_t n, const float *b, const float *k,
                                                             const hn_quantize_mul *p, const bool is_signed) {
  size_t i = 0;
  for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) mul_four(dst + i, a + i, b + i, k + i, p, is_signed);
  for (; i + VEC_W <= n; i += VEC_W) mul_exactly(dst + i, a + i, v_load(b + i), p);
  if (i == n) return;
  unsigned char x[VEC_W] = {0}, rest[VEC_W];
  memcpy(x, a + i, n - i);
  mul_exactly(rest, x, v_loadn(b + i, n - i), p);
  memcpy(dst + i, rest, HN_FAULT("quantize_mul_tail") ? n - i - 1 : n - i);
}

static void mul(void *dst_, const void *a_, size_t n, const float *b, const float *k, size_t period,
                const hn_quantize_mul *p) {
  unsigned char *dst = dst_;
  const unsigned char *a = a_;
  for (size_t i = 0; i < n; i += period) {
    const size_t some = n - i < period ? n - i : period;
    if (p->a_signed)
      mul_period(dst + i, a + i, some, b, k, p, true);
    else
      mul_period(dst + i, a + i, some, b, k, p, false);
  }
}
