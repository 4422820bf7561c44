/* The tile transforms, written once for every vector width and both tile sizes.  The including file defines
 * WINO_M and includes vec.h and template.h first.  Channels are the vector: each transform is a few sums of
 * vectors, columns first (into a small array on the stack), then rows. */
#define WINO_N (WINO_M + 2)

#if WINO_M == 4
#define WINO_A 0.70710678118654752f /* a; b = 2 a */
/* B^T d: rows of B^T are [1 0 -2.5 0 1 0], [0 -b -2 a 1 0], [0 b -2 -a 1 0], [0 -a -.5 b 1 0], [0 a -.5 -b 1
 * 0], [0 1 0 -2.5 0 1]. */
static inline __attribute__((always_inline)) void to_frequencies(const vf d[6], vf v[6]) {
  const vf a = v_set1(WINO_A), b = v_set1(2 * WINO_A), two = v_set1(2.0f), half = v_set1(0.5f),
           c = v_set1(2.5f);
  vf e1 = v_fnma(two, d[2], d[4]), o1 = v_fnma(two, d[1], d[3]);
  vf e2 = v_fnma(half, d[2], d[4]), o2 = v_fnma(half, d[1], d[3]);
  v[0] = v_fnma(c, d[2], v_add(d[0], d[4]));
  v[1] = v_fma(a, o1, e1);
  v[2] = v_fnma(a, o1, e1);
  v[3] = v_fma(b, o2, e2);
  v[4] = v_fnma(b, o2, e2);
  v[5] = v_fnma(c, d[3], v_add(d[1], d[5]));
}
/* A^T m: row i holds the i-th powers of 0, a, -a, b, -b; infinity counts in the last row. */
static inline __attribute__((always_inline)) void from_frequencies(const vf m[6], vf y[4]) {
  const vf a = v_set1(WINO_A), two = v_set1(2.0f), half = v_set1(0.5f), b3 = v_set1(4.0f * WINO_A),
           a3 = v_set1(0.5f * WINO_A);
  vf s1 = v_add(m[1], m[2]), d1 = v_sub(m[1], m[2]), s2 = v_add(m[3], m[4]), d2 = v_sub(m[3], m[4]);
  y[0] = v_add(m[0], v_add(s1, s2));
  y[1] = v_mul(a, v_fma(two, d2, d1));
  y[2] = v_fma(two, s2, v_mul(half, s1));
  y[3] = v_fma(b3, d2, v_fma(a3, d1, m[5]));
}
#else
/* B^T: [1 0 -1 0], [0 1 1 0], [0 -1 1 0], [0 1 0 -1]. */
static inline __attribute__((always_inline)) void to_frequencies(const vf d[4], vf v[4]) {
  v[0] = v_sub(d[0], d[2]);
  v[1] = v_add(d[1], d[2]);
  v[2] = v_sub(d[2], d[1]);
  v[3] = v_sub(d[1], d[3]);
}
/* A^T: [1 1 1 0], [0 1 -1 -1]. */
static inline __attribute__((always_inline)) void from_frequencies(const vf m[4], vf y[2]) {
  y[0] = v_add(m[0], v_add(m[1], m[2]));
  y[1] = v_sub(v_sub(m[1], m[2]), m[3]);
}
#endif

/* One group of channels; `whole`: the tile lies inside the image; live: channels of the group. */
static inline __attribute__((always_inline)) void input_group(const hn_winograd_in *t, size_t c, size_t live,
                                                              const bool whole) {
  vf s[WINO_N][WINO_N]; /* [column][frequency of the rows] */
  const float *x = t->x + c;
  HN_UNROLL for (int j = 0; j < WINO_N; j++) {
    vf d[WINO_N];
    const bool column = whole || (j >= t->x0 && j < t->x1);
    HN_UNROLL for (int i = 0; i < WINO_N; i++) {
      const float *p = x + i * t->row + j * t->pixel;
      d[i] = whole || (column && i >= t->y0 && i < t->y1) ? live == VEC_W ? v_load(p) : v_loadn(p, live)
                                                          : v_zero();
    }
    to_frequencies(d, s[j]);
  }
  float *v = t->v + c;
  HN_UNROLL for (int i = 0; i < WINO_N; i++) {
    vf d[WINO_N], f[WINO_N];
    HN_UNROLL for (int j = 0; j < WINO_N; j++) d[j] = s[j][i];
    to_frequencies(d, f);
    HN_UNROLL for (int j = 0; j < WINO_N; j++) v_store(v + (i * WINO_N + j) * t->frequency, f[j]);
  }
}

static void input(const hn_winograd_in *t) {
  size_t c = 0;
  hn_winograd_in u = *t;
  if (HN_FAULT("winograd_right_border") && u.x1 < WINO_N) u.x1++;
  if (u.y0 == 0 && u.x0 == 0 && u.y1 == WINO_N && u.x1 == WINO_N) {
    for (; c + VEC_W <= u.channels; c += VEC_W) input_group(&u, c, VEC_W, true);
    if (c < u.channels) input_group(&u, c, u.channels - c, true);
  } else {
    for (; c + VEC_W <= u.channels; c += VEC_W) input_group(&u, c, VEC_W, false);
    if (c < u.channels) input_group(&u, c, u.channels - c, false);
  }
}

static inline __attribute__((always_inline)) vf load_live(const float *p, size_t live) {
  return live == VEC_W ? v_load(p) : v_loadn(p, live);
}

/* One pixel's epilogue, then the store. */
static inline __attribute__((always_inline)) void finish(const hn_winograd_out *t, vf y, vf bias, int i,
                                                         int j, size_t c, size_t live) {
  const uint32_t flags = t->flags;
  const ptrdiff_t at = i * t->residual_row + j * t->residual_pixel + (ptrdiff_t)c;
  float *to = t->y + i * t->row + j * t->pixel + c;
  if (flags & HN_EPI_BIAS) y = v_add(y, bias);
  if ((flags & (HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER)) == HN_EPI_RESIDUAL)
    y = v_add(y, load_live(t->residual + at, live));
  if (flags & HN_EPI_CLAMP)
    y = v_min_number(v_set1(t->hi), v_max_number(v_set1(t->lo), y));
  else if (flags & HN_EPI_LEAKY)
    y = v_sel(v_lt(y, v_zero()), v_mul(y, v_set1(t->slope)), y);
  if ((flags & HN_EPI_RESIDUAL) && (flags & HN_EPI_RESIDUAL_AFTER))
    y = v_add(y, load_live(t->residual + at, live));
  if (live == VEC_W)
    v_store(to, y);
  else
    v_storen(to, y, live);
}

static inline __attribute__((always_inline)) void output_group(const hn_winograd_out *t, size_t c,
                                                               size_t live, const bool whole) {
  vf s[WINO_N][WINO_M]; /* [column of frequencies][output row] */
  const float *m = t->m + c;
  HN_UNROLL for (int j = 0; j < WINO_N; j++) {
    vf f[WINO_N];
    HN_UNROLL for (int i = 0; i < WINO_N; i++) f[i] = v_load(m + (i * WINO_N + j) * t->frequency);
    from_frequencies(f, s[j]);
  }
  const vf bias =
      t->flags & HN_EPI_BIAS && !HN_FAULT("winograd_no_bias") ? load_live(t->bias + c, live) : v_zero();
  HN_UNROLL for (int i = 0; i < WINO_M; i++) if (whole || i < t->rows) {
    vf f[WINO_N], y[WINO_M];
    HN_UNROLL for (int j = 0; j < WINO_N; j++) f[j] = s[j][i];
    from_frequencies(f, y);
    HN_UNROLL for (int j = 0; j < WINO_M; j++) if (whole || j < t->columns)
        finish(t, y[j], bias, i, j, c, live);
  }
}

static void output(const hn_winograd_out *t) {
  size_t c = 0;
  hn_winograd_out u = *t;
  if (HN_FAULT("winograd_channel_tail") && u.channels % VEC_W) u.channels--;
  if (HN_FAULT("winograd_residual_row")) u.residual_row += u.residual_pixel;
  const bool whole = u.rows == WINO_M && u.columns == WINO_M;
  for (; c + VEC_W <= u.channels; c += VEC_W)
    if (whole)
      output_group(&u, c, VEC_W, true);
    else
      output_group(&u, c, VEC_W, false);
  if (c < u.channels) output_group(&u, c, u.channels - c, false);
}

static const hn_winograd_ops ops = {WINO_M, VEC_W, input, output};
