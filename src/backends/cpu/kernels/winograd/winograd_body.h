/* The tile transforms, written once for every vector width, tile size and stride.  The including file defines
 * WINO_M and WINO_STRIDE and includes vec.h and template.h first; WINO_BF16 where the products are of bf16,
 * with narrow_load, narrow_loadn, narrow_store and narrow_storen, which move a vector from and to bf16.
 * Channels are the vector; a transform of two dimensions is one of the rows and one of the columns.  It runs
 * in parts that keep what lies between the two in registers: the even and the odd half of the frequencies (or
 * output rows) need nothing from each other. */
#define WINO_N (WINO_STRIDE == 2 ? 2 * WINO_M + 1 : WINO_M + 2) /* pieces, and pixels of an input tile */
#define WINO_POINTS (WINO_STRIDE == 2 ? WINO_M + 1 : WINO_M + 2)
#define WINO_INLINE static inline __attribute__((always_inline))

#if WINO_STRIDE == 2
/* A piece is pixel a, or a with pixel b added or taken away; it lies at a place of so many of its frequency.
 */
typedef struct piece {
  int a, b, sign;
  int place, of;
} piece;
#if WINO_M == 3
static const piece pieces[WINO_N] = {{0, 4, -1, 0, 2}, {1, 3, -1, 1, 2}, {2, 4, 1, 0, 2}, {3, 3, 0, 1, 2},
                                     {4, 2, -1, 0, 1}, {6, 2, -1, 0, 2}, {5, 3, -1, 1, 2}};
/* A^T: [1 1 1 0], [0 1 -1 0], [0 1 1 1]. */
WINO_INLINE void from_points(const vf m[4], vf y[3]) {
  const vf s = v_add(m[1], m[2]);
  y[0] = v_add(m[0], s);
  y[1] = v_sub(m[1], m[2]);
  y[2] = v_add(s, m[3]);
}
#else
static const piece pieces[WINO_N] = {
    {0, 2, -1, 0, 2}, {1, 1, 0, 1, 2}, {2, 2, 0, 0, 1}, {4, 2, -1, 0, 2}, {3, 3, 0, 1, 2}};
/* A^T: [1 1 0], [0 1 1]. */
WINO_INLINE void from_points(const vf m[3], vf y[2]) {
  y[0] = v_add(m[0], m[1]);
  y[1] = v_add(m[1], m[2]);
}
#endif
#elif WINO_M == 4
#define WINO_A 0.70710678118654752f /* a; b = 2 a */
/* B^T d: rows of B^T are [1 0 -2.5 0 1 0], [0 -b -2 a 1 0], [0 b -2 -a 1 0], [0 -a -.5 b 1 0],
 * [0 a -.5 -b 1 0], [0 1 0 -2.5 0 1]; the first and the last, and those between. */
WINO_INLINE void to_outer(const vf d[6], vf *first, vf *last) {
  const vf c = v_set1(2.5f);
  *first = v_fnma(c, d[2], v_add(d[0], d[4]));
  *last = v_fnma(c, d[3], v_add(d[1], d[5]));
}
WINO_INLINE void to_inner(const vf d[6], vf v[4]) {
  const vf a = v_set1(WINO_A), b = v_set1(2 * WINO_A), two = v_set1(2.0f), half = v_set1(0.5f);
  vf e1 = v_fnma(two, d[2], d[4]), o1 = v_fnma(two, d[1], d[3]);
  vf e2 = v_fnma(half, d[2], d[4]), o2 = v_fnma(half, d[1], d[3]);
  v[0] = v_fma(a, o1, e1);
  v[1] = v_fnma(a, o1, e1);
  v[2] = v_fma(b, o2, e2);
  v[3] = v_fnma(b, o2, e2);
}
/* A^T m: row i holds the i-th powers of 0, a, -a, b, -b; infinity counts in the last row.  Rows 0 and 2, rows
 * 1 and 3. */
WINO_INLINE void from_even(const vf m[6], vf *y0, vf *y2) {
  vf s1 = v_add(m[1], m[2]), s2 = v_add(m[3], m[4]);
  *y0 = v_add(m[0], v_add(s1, s2));
  *y2 = v_fma(v_set1(2.0f), s2, v_mul(v_set1(0.5f), s1));
}
WINO_INLINE void from_odd(const vf m[6], vf *y1, vf *y3) {
  vf d1 = v_sub(m[1], m[2]), d2 = v_sub(m[3], m[4]);
  *y1 = v_mul(v_set1(WINO_A), v_fma(v_set1(2.0f), d2, d1));
  *y3 = v_fma(v_set1(4.0f * WINO_A), d2, v_fma(v_set1(0.5f * WINO_A), d1, m[5]));
}
WINO_INLINE void from_points(const vf m[6], vf y[4]) {
  from_even(m, &y[0], &y[2]);
  from_odd(m, &y[1], &y[3]);
}
#else
/* B^T: [1 0 -1 0], [0 1 1 0], [0 -1 1 0], [0 1 0 -1]. */
WINO_INLINE void to_outer(const vf d[4], vf *first, vf *last) {
  *first = v_sub(d[0], d[2]);
  *last = v_sub(d[1], d[3]);
}
WINO_INLINE void to_inner(const vf d[4], vf v[2]) {
  v[0] = v_add(d[1], d[2]);
  v[1] = v_sub(d[2], d[1]);
}
/* A^T: [1 1 1 0], [0 1 -1 -1]. */
WINO_INLINE void from_points(const vf m[4], vf y[2]) {
  y[0] = v_add(m[0], v_add(m[1], m[2]));
  y[1] = v_sub(v_sub(m[1], m[2]), m[3]);
}
#endif

#ifdef WINO_BF16
enum { NARROW_ABLE = true, V_BYTES = 2, V_STEP = HN_WINOGRAD_STEP };
#else /* never called: what lies in memory is f32 */
enum { NARROW_ABLE = false, V_BYTES = 4, V_STEP = VEC_W };
WINO_INLINE vf narrow_load(const void *p) { return v_load(p); }
WINO_INLINE vf narrow_loadn(const void *p, size_t n) { return v_loadn(p, n); }
WINO_INLINE void narrow_store(void *p, vf x) { v_store(p, x); }
WINO_INLINE void narrow_storen(void *p, vf x, size_t n) { v_storen(p, x, n); }
#endif

WINO_INLINE vf load_live(const void *p, size_t live, const bool narrow) {
  if (narrow) return live == VEC_W ? narrow_load(p) : narrow_loadn(p, live);
  return live == VEC_W ? v_load(p) : v_loadn(p, live);
}

WINO_INLINE void store_live(void *p, vf x, size_t live, const bool narrow) {
  if (narrow && live == VEC_W)
    narrow_store(p, x);
  else if (narrow)
    narrow_storen(p, x, live);
  else if (live == VEC_W)
    v_store(p, x);
  else
    v_storen(p, x, live);
}

/* Elements i of a tensor of either type, in bytes. */
WINO_INLINE ptrdiff_t bytes(ptrdiff_t i, const bool narrow) { return i * (narrow ? 2 : 4); }

/* Up to WINO_N places at one distance in bytes, addressed as three from one pointer: base, base + d, base + 2
 * d. Left alone, compilers make one pointer a place and spill them all. */
typedef struct line {
  const char *p[(WINO_N + 2) / 3];
  ptrdiff_t distance;
} line;
WINO_INLINE line line_at(const void *base, ptrdiff_t at, ptrdiff_t distance, const int places) {
  line l = {.distance = distance};
  HN_UNROLL for (int g = 0; g < (WINO_N + 2) / 3; g++) if (3 * g < places) {
    l.p[g] = (const char *)base + at + 3 * g * distance;
    __asm__("" : "+r"(l.p[g]));
  }
  return l;
}
WINO_INLINE const char *line_place(const line *l, int i) { return l->p[i / 3] + i % 3 * l->distance; }

WINO_INLINE void put_piece(const char *to, vf f) {
  store_live((void *)(uintptr_t)to, f, VEC_W, NARROW_ABLE);
  /* V lives in L2: ask for the next group's line before its store has to wait for it. */
  if (VEC_W > 1) __builtin_prefetch(to + VEC_W * V_BYTES, 1, 3);
}

#if WINO_STRIDE == 2
/* Pixels of row i of the tile; `whole`: the tile lies inside the image. */
WINO_INLINE void get_row(const hn_winograd_in *t, int i, size_t c, size_t live, const bool whole,
                         const bool narrow, const bool ahead, vf d[WINO_N]) {
  if (!whole && (i < t->y0 || i >= t->y1)) {
    HN_UNROLL for (int j = 0; j < WINO_N; j++) d[j] = v_zero();
    return;
  }
  const int end = t->x1 + HN_FAULT("winograd_right_border");
  const line l = line_at(t->x, bytes((ptrdiff_t)c + i * t->row, narrow), bytes(t->pixel, narrow), WINO_N);
  HN_UNROLL for (int j = 0; j < WINO_N; j++) d[j] =
      whole || (j >= t->x0 && j < end) ? load_live(line_place(&l, j), live, narrow) : v_zero();
  if (VEC_W > 1 && ahead)
    HN_UNROLL for (int j = 1; j < WINO_N; j++) __builtin_prefetch(
        line_place(&l, j) + bytes(2 * WINO_M * t->pixel, narrow), 0, 3); /* the tile to the right */
}

WINO_INLINE vf joined(const piece *p, vf a, vf b) {
  return p->sign > 0 ? v_add(a, b) : p->sign < 0 ? v_sub(a, b) : a;
}

/* Row i of the grid of pieces. */
WINO_INLINE void put_pieces(const hn_winograd_in *t, const vf f[WINO_N], int i, size_t c) {
  const piece *const row = &pieces[i];
  const char *to = NULL;
  HN_UNROLL for (int j = 0; j < WINO_N; j++) {
    const piece *const column = &pieces[j];
    if (column->place == 0) {
      const int before = (i - row->place) * WINO_N + row->of * j, n = row->of * column->of;
      to =
          (const char *)t->v +
          (before * t->frequency + n * t->tile + row->place * column->of * t->pitch + (ptrdiff_t)c) * V_BYTES;
      __asm__("" : "+r"(to)); /* one pointer a frequency: see line_at */
    }
    put_piece(to + column->place * t->pitch * V_BYTES, f[j]);
  }
}

/* One group of channels, `live` of them. */
WINO_INLINE void input_group(const hn_winograd_in *t, size_t c, size_t live, const bool whole,
                             const bool narrow) {
  HN_UNROLL for (int i = 0; i < WINO_N; i++) {
    const piece *const p = &pieces[i];
    vf d[WINO_N], other[WINO_N], f[WINO_N];
    get_row(t, p->a, c, live, whole, narrow, true, d);
    if (p->sign) {
      get_row(t, p->b, c, live, whole, narrow, false, other);
      HN_UNROLL for (int j = 0; j < WINO_N; j++) d[j] = joined(p, d[j], other[j]);
    }
    HN_UNROLL for (int j = 0; j < WINO_N; j++) f[j] = joined(&pieces[j], d[pieces[j].a], d[pieces[j].b]);
    put_pieces(t, f, i, c);
  }
}
#else
/* Pixels [from, to) of column j of the tile; `whole`: the tile lies inside the image. */
WINO_INLINE void get_column(const hn_winograd_in *t, int j, size_t c, size_t live, const bool whole,
                            const bool narrow, const int from, const int to, vf d[WINO_N]) {
  if (!whole && (j < t->x0 || j >= t->x1 + HN_FAULT("winograd_right_border"))) {
    HN_UNROLL for (int i = from; i < to; i++) d[i] = v_zero();
    return;
  }
  const line l = line_at(t->x, bytes((ptrdiff_t)c + j * t->pixel, narrow), bytes(t->row, narrow), WINO_N);
  HN_UNROLL for (int i = from; i < to; i++) d[i] =
      whole || (i >= t->y0 && i < t->y1) ? load_live(line_place(&l, i), live, narrow) : v_zero();
}

/* The second dimension of frequency row i, and out. */
WINO_INLINE void put_row(const hn_winograd_in *t, const vf d[WINO_N], int i, size_t c) {
  vf f[WINO_N];
  to_outer(d, &f[0], &f[WINO_N - 1]);
  to_inner(d, f + 1);
  const line l = line_at(t->v, (t->tile + (ptrdiff_t)c + i * WINO_N * t->frequency) * V_BYTES,
                         t->frequency * V_BYTES, WINO_N);
  HN_UNROLL for (int j = 0; j < WINO_N; j++) put_piece(line_place(&l, j), f[j]);
}

/* One group of channels, `live` of them. */
WINO_INLINE void input_group(const hn_winograd_in *t, size_t c, size_t live, const bool whole,
                             const bool narrow) {
  vf inner[WINO_M][WINO_N], first[WINO_N], last[WINO_N];
  HN_UNROLL for (int j = 0; j < WINO_N; j++) {
    vf d[WINO_N], f[WINO_M];
    get_column(t, j, c, live, whole, narrow, 1, WINO_N - 1, d);
    to_inner(d, f);
    HN_UNROLL for (int i = 0; i < WINO_M; i++) inner[i][j] = f[i];
  }
  HN_UNROLL for (int i = 0; i < WINO_M; i++) put_row(t, inner[i], i + 1, c);
  HN_UNROLL for (int j = 0; j < WINO_N; j++) {
    vf d[WINO_N];
    get_column(t, j, c, live, whole, narrow, 0, WINO_N, d);
    to_outer(d, &first[j], &last[j]);
  }
  put_row(t, first, 0, c);
  put_row(t, last, WINO_N - 1, c);
}
#endif

WINO_INLINE void input_as(const hn_winograd_in *t, const bool whole, const bool narrow) {
  size_t c = 0;
  for (; c + VEC_W <= t->channels; c += VEC_W) input_group(t, c, VEC_W, whole, narrow);
  for (; c < (t->channels + V_STEP - 1) / V_STEP * V_STEP; c += VEC_W)
    input_group(t, c, c < t->channels ? t->channels - c : 0, whole, narrow);
}

/* The arguments are read where they lie: whoever copies what has just been written in small pieces waits. */
static void input(const hn_winograd_in *t) {
  const bool whole = t->y0 == 0 && t->x0 == 0 && t->y1 == WINO_N && t->x1 == WINO_N;
  if (NARROW_ABLE && t->narrow && whole)
    input_as(t, true, true);
  else if (NARROW_ABLE && t->narrow)
    input_as(t, false, true);
  else if (whole)
    input_as(t, true, false);
  else
    input_as(t, false, false);
}

/* Adds the residual to the pixels of row i. */
WINO_INLINE void add_residual(const hn_winograd_out *t, vf y[WINO_M], int i, size_t c, size_t live,
                              const int n) {
  const bool narrow = NARROW_ABLE && t->narrow_residual;
  const ptrdiff_t row = t->residual_row + (HN_FAULT("winograd_residual_row") ? t->residual_pixel : 0);
  const line l =
      line_at(t->residual, bytes(i * row + (ptrdiff_t)c, narrow), bytes(t->residual_pixel, narrow), WINO_M);
  HN_UNROLL for (int j = 0; j < WINO_M; j++) if (j < n) {
    const char *from = line_place(&l, j);
    y[j] = v_add(y[j], load_live(from, live, narrow));
    if (VEC_W > 1) __builtin_prefetch(from + bytes(WINO_M * t->residual_pixel, narrow), 0, 3);
  }
}

/* Epilogue and store of the first n pixels of row i. */
WINO_INLINE void store_pixels(const hn_winograd_out *t, vf y[WINO_M], vf bias, int i, size_t c, size_t live,
                              const int n) {
  const uint32_t flags = t->flags;
  if (flags & HN_EPI_BIAS) HN_UNROLL for (int j = 0; j < WINO_M; j++) y[j] = v_add(y[j], bias);
  if ((flags & (HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER)) == HN_EPI_RESIDUAL)
    add_residual(t, y, i, c, live, n);
  if (flags & HN_EPI_CLAMP) {
    const vf lo = v_set1(t->lo), hi = v_set1(t->hi);
    HN_UNROLL for (int j = 0; j < WINO_M; j++) y[j] = v_min_number(hi, v_max_number(lo, y[j]));
  } else if (flags & HN_EPI_LEAKY) {
    const vf slope = v_set1(t->slope);
    HN_UNROLL for (int j = 0; j < WINO_M; j++) y[j] = v_sel(v_lt(y[j], v_zero()), v_mul(y[j], slope), y[j]);
  }
  if ((flags & HN_EPI_RESIDUAL) && (flags & HN_EPI_RESIDUAL_AFTER)) add_residual(t, y, i, c, live, n);
  const bool narrow = NARROW_ABLE && t->narrow;
  const line l = line_at(t->y, bytes(i * t->row + (ptrdiff_t)c, narrow), bytes(t->pixel, narrow), WINO_M);
  HN_UNROLL for (int j = 0; j < WINO_M; j++) if (j < n) {
    char *to = (char *)(uintptr_t)line_place(&l, j);
    store_live(to, y[j], live, narrow);
    if (VEC_W > 1)
      __builtin_prefetch(to + bytes(WINO_M * t->pixel, narrow), 1, 3); /* the tile to the right */
  }
}

/* Output row i from its WINO_POINTS frequencies of the other dimension. */
WINO_INLINE void put_pixels(const hn_winograd_out *t, const vf f[WINO_POINTS], vf bias, int i, size_t c,
                            size_t live, const bool whole) {
  vf y[WINO_M];
  if (!whole && i >= t->rows) return;
  from_points(f, y);
  store_pixels(t, y, bias, i, c, live, whole ? WINO_M : t->columns);
}

/* Frequencies [from, to) of column j. */
WINO_INLINE void get_products(const hn_winograd_out *t, int j, size_t c, const int from, const int to,
                              vf f[WINO_POINTS]) {
  const ptrdiff_t at =
      NARROW_ABLE ? (ptrdiff_t)(c / V_STEP) * t->group + (ptrdiff_t)(c % V_STEP) : (ptrdiff_t)c;
  const line l = line_at(t->m, (at + j * t->frequency) * 4, WINO_POINTS * t->frequency * 4, WINO_POINTS);
  HN_UNROLL for (int i = from; i < to; i++) f[i] = v_load((const float *)(const void *)line_place(&l, i));
}

WINO_INLINE void output_group(const hn_winograd_out *t, size_t c, size_t live, const bool whole) {
  const vf bias = t->flags & HN_EPI_BIAS && !HN_FAULT("winograd_no_bias")
                      ? load_live(t->bias + c, live, false)
                      : v_zero();
#if WINO_M == 4
  vf s[2][WINO_POINTS]; /* [output row][frequency column] */
  HN_UNROLL for (int j = 0; j < WINO_POINTS; j++) {
    vf f[WINO_POINTS];
    get_products(t, j, c, 0, WINO_POINTS - 1, f);
    from_even(f, &s[0][j], &s[1][j]);
  }
  put_pixels(t, s[0], bias, 0, c, live, whole);
  put_pixels(t, s[1], bias, 2, c, live, whole);
  HN_UNROLL for (int j = 0; j < WINO_POINTS; j++) {
    vf f[WINO_POINTS];
    get_products(t, j, c, 1, WINO_POINTS, f);
    from_odd(f, &s[0][j], &s[1][j]);
  }
  put_pixels(t, s[0], bias, 1, c, live, whole);
  put_pixels(t, s[1], bias, 3, c, live, whole);
#else
  vf s[WINO_M][WINO_POINTS];
  HN_UNROLL for (int j = 0; j < WINO_POINTS; j++) {
    vf f[WINO_POINTS], y[WINO_M];
    get_products(t, j, c, 0, WINO_POINTS, f);
    from_points(f, y);
    HN_UNROLL for (int i = 0; i < WINO_M; i++) s[i][j] = y[i];
  }
  HN_UNROLL for (int i = 0; i < WINO_M; i++) put_pixels(t, s[i], bias, i, c, live, whole);
#endif
}

WINO_INLINE void output_as(const hn_winograd_out *t, const bool whole) {
  const size_t end = t->channels - (t->channels % VEC_W && HN_FAULT("winograd_channel_tail"));
  size_t c = 0;
  for (; c + VEC_W <= end; c += VEC_W) output_group(t, c, VEC_W, whole);
  if (c < end) output_group(t, c, end - c, whole);
}

static void output(const hn_winograd_out *t) {
  if (t->rows == WINO_M && t->columns == WINO_M)
    output_as(t, true);
  else
    output_as(t, false);
}

static const hn_winograd_ops ops = {WINO_M, WINO_STRIDE, VEC_W, input, output};
