/* Sums of two tensors of codes: part of the body of quantize_8_<tier>.c, behind `quantized`.
 *
 * The sum as defined takes a division and seven more roundings.  With ka and kb the scales over y's and c
 * what the zero points make, a ka + b kb + c is close to it: in units of 2^-24 255 (ka + kb) the definition
 * rounds by at most 3 (two products, the sum, the quotient), this by at most 5 (three constants, two sums),
 * so that both lie within 2^-13 (ka + kb) of each other. They round to the same integer unless one is so
 * close to the middle between two: such vectors are computed as defined.  Or there are constants with which
 * every pair of codes comes out right: those need no look. */

/* The sum as f32. */
static inline __attribute__((always_inline)) vf sum_at(const unsigned char *a, const unsigned char *b,
                                                       const hn_quantize_add *p) {
  const vf x = p->a_signed ? v_load_i8(a) : v_load_u8(a), y = p->b_signed ? v_load_i8(b) : v_load_u8(b);
  return v_add(v_mul(v_sub(x, v_set1(p->a_zero)), v_set1(p->a_scale)),
               v_mul(v_sub(y, v_set1(p->b_zero)), v_set1(p->b_scale)));
}

/* A vector as defined. */
static inline __attribute__((always_inline)) void
add_exactly(unsigned char *dst, const unsigned char *a, const unsigned char *b, const hn_quantize_add *p) {
  const vf lo = v_set1(p->y_signed ? -128.0f : 0.0f), hi = v_set1(p->y_signed ? 127.0f : 255.0f);
  v_store_8(dst, quantized(sum_at(a, b, p), v_set1(p->y_scale), v_set1(p->y_zero), lo, hi, false));
}

/* `proved`: no look at ties. */
static inline __attribute__((always_inline)) void add_four(unsigned char *dst, const unsigned char *a,
                                                           const unsigned char *b, const hn_quantize_add *p,
                                                           const bool proved) {
  const vf ka = v_set1(p->ka), kb = v_set1(p->kb), c = v_set1(p->c),
           tie = v_set1(0.5f - 0x1p-13f * (p->ka + p->kb) - 0x1p-23f);
  vf t[4], far = v_zero();
  HN_UNROLL for (int j = 0; j < 4; j++) {
    const unsigned char *u = a + j * VEC_W, *v = b + j * VEC_W;
    const vf x = p->a_signed ? v_load_i8(u) : v_load_u8(u), y = p->b_signed ? v_load_i8(v) : v_load_u8(v);
    t[j] = v_fma(x, ka, v_fma(y, kb, c));
    if (!proved) far = v_from_integer(t[j], far);
  }
  v_store_codes(dst, t, (int)p->y_zero, p->y_signed);
  if (proved || __builtin_expect(!v_any(v_lt(tie, far)), 1) || HN_FAULT("quantize_add_ties")) return;
  for (int j = 0; j < 4; j++)
    if (v_any(v_lt(tie, v_from_integer(t[j], v_zero()))))
      add_exactly(dst + j * VEC_W, a + j * VEC_W, b + j * VEC_W, p);
}

static inline __attribute__((always_inline)) void add_all(unsigned char *dst, const unsigned char *a,
                                                          const unsigned char *b, size_t n,
                                                          const hn_quantize_add *p) {
  size_t i = 0;
  if (p->fast == HN_ADD_PROVED)
    for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) add_four(dst + i, a + i, b + i, p, true);
  else if (p->fast == HN_ADD_CHECKED)
    for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) add_four(dst + i, a + i, b + i, p, false);
  for (; i + VEC_W <= n; i += VEC_W) add_exactly(dst + i, a + i, b + i, p);
  if (i == n) return;
  unsigned char x[VEC_W] = {0}, y[VEC_W] = {0}, rest[VEC_W];
  memcpy(x, a + i, n - i);
  memcpy(y, b + i, n - i);
  add_exactly(rest, x, y, p);
  memcpy(dst + i, rest, HN_FAULT("quantize_tail") ? n - i - 1 : n - i);
}

/* Writing dst over a or b is not allowed: a vector near a tie is computed twice. */
static void add(void *dst, const void *a, const void *b, size_t n, const hn_quantize_add *q) {
  hn_quantize_add p = *q;
  if (!p.a_signed && !p.b_signed && !p.y_signed) { /* the usual types, known to the compiler */
    p.a_signed = p.b_signed = p.y_signed = false;
    add_all(dst, a, b, n, &p);
  } else {
    add_all(dst, a, b, n, &p);
  }
}

/* ---------------------------------------------------------------- constants */

enum { CODES = 256, KILLERS = 32 };

/* Whether the two agree on b and all codes of a. */
static bool same_row(const hn_quantize_add *p, const hn_quantize_add *q, int b) {
  unsigned char as[CODES], bs[CODES], x[CODES], y[CODES];
  for (int i = 0; i < CODES; i++) as[i] = (unsigned char)i;
  memset(bs, b, CODES);
  add(x, as, bs, CODES, p);
  add(y, as, bs, CODES, q);
  return memcmp(x, y, CODES) == 0;
}

/* Rows on which constants failed: others are likely to fail there. */
typedef struct killers {
  int row[KILLERS], n;
} killers;

static bool same_for_all(const hn_quantize_add *p, const hn_quantize_add *checked, killers *k) {
  for (int i = 0; i < k->n; i++)
    if (!same_row(p, checked, k->row[i])) return false;
  for (int b = 0; b < CODES; b++)
    if (!same_row(p, checked, b)) {
      if (k->n < KILLERS) k->row[k->n++] = b;
      return false;
    }
  return true;
}

static float ulps(float x, int n) {
  for (; n > 0; n--) x = nextafterf(x, INFINITY);
  for (; n < 0; n++) x = nextafterf(x, -INFINITY);
  return x;
}

/* Looks for constants that need no look at ties, next to the ones that follow from the scales. */
static void find_proved(hn_quantize_add *q) {
  static const int nearest[] = {0, 1, -1}, further[] = {0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8};
  const hn_quantize_add checked = *q;
  hn_quantize_add p = *q;
  killers k = {.n = 0};
  p.fast = HN_ADD_PROVED;
  for (size_t i = 0; i < sizeof further / sizeof *further; i++)
    for (size_t j = 0; j < 9; j++) {
      p.ka = ulps(q->ka, nearest[j % 3]), p.kb = ulps(q->kb, nearest[j / 3]), p.c = ulps(q->c, further[i]);
      if (!same_for_all(&p, &checked, &k) && !HN_FAULT("quantize_add_unproved")) continue;
      *q = p;
      return;
    }
}

static void prepare_add(hn_quantize_add *q) {
  const double ka = (double)q->a_scale / (double)q->y_scale, kb = (double)q->b_scale / (double)q->y_scale;
  q->ka = (float)ka, q->kb = (float)kb, q->c = (float)-((double)q->a_zero * ka + (double)q->b_zero * kb);
  q->fast = ka + kb < 64 ? HN_ADD_CHECKED : HN_ADD_EXACT; /* all are near ties */
  if (VEC_W > 1 && q->fast == HN_ADD_CHECKED) find_proved(q);
}
