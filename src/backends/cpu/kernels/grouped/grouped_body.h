/* The body of the grouped kernels, written once for every vector width. The including file defines how many
 * output pixels have their sums in registers, at most PIXELS: EACH_OF_THREE(X) for three taps of stride 1,
 * EACH_OF_TWO(X) of stride 2, EACH(X) for others. */
#include <string.h>

/* Pixels are addressed as three from one pointer, and the pointers are kept apart: the compiler would make
 * one a pixel and spill them. */
#define POINTERS(n) (((n) + 2) / 3)
#define PIN(pointer) __asm__("" : "+r"(pointer))

/* In a register: the compiler would load it once for each use. */
#if VEC_W == 16
#define KEEP(vector) __asm__("" : "+v"(vector))
#elif VEC_W == 8
#define KEEP(vector) __asm__("" : "+x"(vector))
#else
#define KEEP(vector) (void)0
#endif

static inline vf load_live(const float *p, size_t live) {
  return live == VEC_W ? v_load(p) : v_loadn(p, live);
}

/* `side` values, over and over. Each is a load and nothing else. */
static inline __attribute__((always_inline)) vf all_of(const float *p, const int side) {
#if VEC_W == 16
  double pair;
  if (side == 2) return memcpy(&pair, p, sizeof pair), _mm512_castpd_ps(_mm512_set1_pd(pair));
  if (side == 4) return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
  if (side == 8) return _mm512_broadcast_f32x8(_mm256_loadu_ps(p));
#elif VEC_W == 8
  double pair;
  if (side == 2) return memcpy(&pair, p, sizeof pair), _mm256_castpd_ps(_mm256_set1_pd(pair));
  if (side == 4) return _mm256_broadcast_ps((const __m128 *)p);
#endif
  return (void)side, v_set1(*p);
}

static inline vf in_order(vf v, const int32_t *order) {
#if VEC_W == 16
  return _mm512_permutexvar_ps(_mm512_loadu_si512(order), v);
#elif VEC_W == 8
  return _mm256_permutevar8x32_ps(v, _mm256_loadu_si256((const __m256i *)order));
#else
  return (void)order, v;
#endif
}

/* What sums become, of n pixels from ox on. Apart from where they are made: that is there in many forms. */
static __attribute__((noinline)) void finish(const hn_grouped_row *r, const float *sums, int n, int64_t ox) {
  const size_t live = r->channels;
  const uint32_t flags = r->flags;
  const vf bias = flags & HN_EPI_BIAS && !HN_FAULT("grouped_no_bias") ? load_live(r->bias, live) : v_zero();
  for (int p = 0; p < n; p++, sums += VEC_W) {
    vf residual = v_zero(), acc = v_load(sums);
    if (r->side > 1) acc = in_order(acc, r->order);
    acc = v_add(acc, bias);
    if (flags & HN_EPI_RESIDUAL) residual = load_live(r->residual + (ox + p) * r->r_pixel, live);
    if ((flags & HN_EPI_RESIDUAL) && !(flags & HN_EPI_RESIDUAL_AFTER)) acc = v_add(acc, residual);
    if (flags & HN_EPI_CLAMP)
      acc = v_min_number(v_set1(r->hi), v_max_number(v_set1(r->lo), acc));
    else if (flags & HN_EPI_LEAKY)
      acc = v_sel(v_lt(acc, v_zero()), v_mul(acc, v_set1(r->slope)), acc);
    if ((flags & HN_EPI_RESIDUAL) && (flags & HN_EPI_RESIDUAL_AFTER)) acc = v_add(acc, residual);
    float *y = r->y + (ox + p) * r->y_pixel;
    if (live == VEC_W)
      v_store(y, acc);
    else
      v_storen(y, acc, HN_FAULT("grouped_tail_mask") ? live - 1 : live);
  }
}

enum { STEPS = 4 }; /* values in a row: what is added to addresses takes the place of multiply-adds */

static inline __attribute__((always_inline)) void finish_all(const hn_grouped_row *r, const int P,
                                                             const int side, int64_t ox, const vf *acc) {
  float sums[PIXELS * VEC_W];
  if (side == 1 && r->channels == VEC_W && !(r->flags & ~(uint32_t)(HN_EPI_BIAS | HN_EPI_CLAMP))) {
    const bool clamp = r->flags & HN_EPI_CLAMP,
               biased = r->flags & HN_EPI_BIAS && !HN_FAULT("grouped_no_bias");
    const vf bias = biased ? v_load(r->bias) : v_zero(), lo = v_set1(clamp ? r->lo : -__builtin_inff()),
             hi = v_set1(clamp ? r->hi : __builtin_inff());
    float *y = r->y + ox * r->y_pixel;
    HN_UNROLL for (int p = 0; p < P; p++, y += r->y_pixel)
        v_store(y, v_min_number(hi, v_max_number(lo, v_add(acc[p], bias))));
    return;
  }
  HN_UNROLL for (int p = 0; p < P; p++) v_store(sums + p * VEC_W, acc[p]);
  finish(r, sums, P, ox);
}

/* Values of a plane's pixel, of those that are left. */
static inline int64_t in_plane(int64_t left, const int side) {
  return left < VEC_W / side ? left : VEC_W / side;
}

/* n values of each pixel. */
static inline __attribute__((always_inline)) void
values(const int n, const int P, const int side, const float **w, const float **q, int64_t step, vf *acc) {
  HN_UNROLL for (int k = 0; k < n; k++) {
    const vf weights = v_load(*w + k * VEC_W);
    HN_UNROLL for (int p = 0; p < P; p++) acc[p] =
        v_fma(all_of(q[p / 3] + p % 3 * step + k * side, side), weights, acc[p]);
  }
  *w += n * VEC_W;
  HN_UNROLL for (int g = 0; g < POINTERS(P); g++) {
    q[g] += n * side;
    PIN(q[g]);
  }
}

/* P pixels from ox on. */
static inline __attribute__((always_inline)) void pixels(const hn_grouped_row *r, const int P, const int side,
                                                         int64_t ox) {
  vf acc[PIXELS];
  const float *q[POINTERS(PIXELS)], *w = r->w;
  const int64_t step = VEC_W * r->stride;
  HN_UNROLL for (int p = 0; p < P; p++) acc[p] = v_zero();
  for (uint32_t v = 0; v < r->rows; v++)
    for (int64_t u = 0; u < r->taps; u++) {
      const float *x = r->x[v] + ox * step + u * r->dilation * VEC_W;
      for (int64_t left = r->cin; left > 0; left -= VEC_W / side, x += r->plane) {
        q[0] = x;
        HN_UNROLL for (int g = 1; g < POINTERS(P); g++) {
          q[g] = q[g - 1] + 3 * step;
          PIN(q[g]);
        }
        int64_t k = in_plane(left, side);
        for (; k >= STEPS; k -= STEPS) values(STEPS, P, side, &w, q, step, acc);
        for (; k > 0; k--) values(1, P, side, &w, q, step, acc);
      }
    }
  finish_all(r, P, side, ox, acc);
}

/* One value of three taps, of the first column's pixel on: it is read once and meets all pixels that it
 * belongs to. */
static inline __attribute__((always_inline)) void value_of_three(const float *q, const float *at, int64_t tap,
                                                                 const int P, const int side,
                                                                 const int stride, vf *acc) {
  vf w[3];
  HN_UNROLL for (int u = 0; u < 3; u++) w[u] = v_load(at + u * tap);
  HN_UNROLL for (int i = 0; i < (P - 1) * stride + 3; i++) {
    vf value = all_of(q + i * VEC_W, side);
    /* What a single product wants is a part of that instruction. */
    if (stride == 1 || (i % stride == 0 && i > 0 && i < P * stride)) KEEP(value);
    HN_UNROLL for (int u = 0; u < 3; u++) {
      const int p = (i - u) / stride;
      if (i >= u && (i - u) % stride == 0 && p < P) acc[p] = v_fma(value, w[u], acc[p]);
    }
  }
}

/* Fewer pixels than products are under way at once have two sums each, where there are registers for them. */
#define TWO_SUMS(P) (VEC_W == 16 && (P) < 8)

/* P pixels from ox on, of three taps without dilation. Loads are then half as many as multiply-adds; else
 * there are more, and they take longer. */
static inline __attribute__((always_inline)) void
pixels_of_three(const hn_grouped_row *r, const int P, const int side, const int stride, int64_t ox) {
  vf acc[2][PIXELS];
  const float *at = r->w;
  const int64_t tap = r->cin * VEC_W;
  HN_UNROLL for (int p = 0; p < P; p++) acc[0][p] = acc[1][p] = v_zero();
  for (uint32_t v = 0; v < r->rows; v++, at += 2 * tap) {
    const float *x = r->x[v] + ox * stride * VEC_W;
    for (int64_t left = r->cin; left > 0; left -= VEC_W / side, x += r->plane) {
      const float *q = x;
      int64_t k = in_plane(left, side);
      if (HN_FAULT("grouped_last_value") && left <= VEC_W / side) k--, at += VEC_W;
      for (; TWO_SUMS(P) && k > 1; k -= 2, q += 2 * side, at += 2 * VEC_W) {
        value_of_three(q, at, tap, P, side, stride, acc[0]);
        value_of_three(q + side, at + VEC_W, tap, P, side, stride, acc[1]);
      }
      for (; k > 0; k--, q += side, at += VEC_W) value_of_three(q, at, tap, P, side, stride, acc[0]);
    }
  }
  if (TWO_SUMS(P) && !HN_FAULT("grouped_second_sum"))
    HN_UNROLL for (int p = 0; p < P; p++) acc[0][p] = v_add(acc[0][p], acc[1][p]);
  finish_all(r, P, side, ox, acc[0]);
}

/* The next piece of a row, of which n pixels are left: pieces as long as each other, since few pixels wait
 * for their sums, of the lengths that there are. */
static inline int piece(int64_t n, const int *length) {
  const int64_t pieces = (n + length[0] - 1) / length[0], want = (n + pieces - 1) / pieces;
  int i = 0;
  while (length[i] > n || length[i + 1] >= want) i++;
  return length[i];
}

/* `body` of the row's pieces: X of each length, the longest first; 0 ends them. */
#define PIECES(r, EACH)                                                                                      \
  static const int length[] = {EACH(LENGTH) 0};                                                              \
  for (int64_t ox = 0; ox < (r)->n;) {                                                                       \
    const int n = piece((r)->n - ox, length);                                                                \
    switch (n) {                                                                                             \
      EACH(CASE)                                                                                             \
    default: break;                                                                                          \
    }                                                                                                        \
    ox += n;                                                                                                 \
  }
#define LENGTH(P) P,

static inline __attribute__((always_inline)) void row_of(const hn_grouped_row *r, const int side) {
  if (r->taps == 3 && r->dilation == 1 && r->stride == 1) {
#define CASE(P)                                                                                              \
  case P: pixels_of_three(r, P, side, 1, ox); break;
    PIECES(r, EACH_OF_THREE)
#undef CASE
  } else if (r->taps == 3 && r->dilation == 1 && r->stride == 2) {
#define CASE(P)                                                                                              \
  case P: pixels_of_three(r, P, side, 2, ox); break;
    PIECES(r, EACH_OF_TWO)
#undef CASE
  } else {
#define CASE(P)                                                                                              \
  case P: pixels(r, P, side, ox); break;
    PIECES(r, EACH)
#undef CASE
  }
}

static __attribute__((noinline)) void row_1(const hn_grouped_row *r) { row_of(r, 1); }
#if VEC_W > 1
static __attribute__((noinline)) void row_2(const hn_grouped_row *r) { row_of(r, 2); }
static __attribute__((noinline)) void row_4(const hn_grouped_row *r) { row_of(r, 4); }
#endif
#if VEC_W == 16
static __attribute__((noinline)) void row_8(const hn_grouped_row *r) { row_of(r, 8); }
#endif

static void row(const hn_grouped_row *r) {
  switch (r->side) {
#if VEC_W == 16
  case 8: row_8(r); break;
#endif
#if VEC_W > 1
  case 4: row_4(r); break;
  case 2: row_2(r); break;
#endif
  default: row_1(r); break;
  }
}

static void spread(float *dst, const float *src, ptrdiff_t src_pixel, size_t live, const int32_t *order,
                   size_t n) {
  if (!order && live == VEC_W)
    for (size_t i = 0; i < n; i++, dst += VEC_W, src += src_pixel) v_store(dst, v_load(src));
  else
    for (size_t i = 0; i < n; i++, dst += VEC_W, src += src_pixel)
      v_store(dst, order ? in_order(load_live(src, live), order) : load_live(src, live));
}
