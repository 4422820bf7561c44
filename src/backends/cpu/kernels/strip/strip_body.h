/* The body of the strip kernels, written once for every vector width. The including file defines ROWS_TWO and
 * ROWS_ONE, the most rows of a tile of two vectors and of one, B_AHEAD, the rows of B that are asked for
 * ahead, and EACH_ROWS(X), all numbers of rows up to the larger one, after including vec_spread.h and
 * vec_half.h.
 *
 * A tile's columns are `full` vectors and `half` half ones: with AVX-512 eight columns and fewer are a vector
 * of 256 bits, which takes half of the time where vectors of 512 bits are two (Zen 4), and no longer
 * elsewhere. All counts are constants after inlining, so that sums live in registers. */

enum { MOST = ROWS_TWO > ROWS_ONE ? ROWS_TWO : ROWS_ONE, GROUPS = (MOST + 2) / 3, TURN = 4, LINE = 64 };

#define INLINE static inline __attribute__((always_inline))

/* Where a call stands. What vectors are stored to may be anything to a compiler, so that loops keep copies of
 * this. */
typedef struct walk {
  const float *a, *residual;
  float *c;
  const int32_t *at; /* the next tile's rows in c */
  ptrdiff_t c_row;   /* where they are the same for each tile: how far c moves a row */
  const char *ahead; /* lines to pull: so many a turn, `step` bytes apart */
  ptrdiff_t step;
  int lines;
} walk;

/* Value `s` of k behind where the pointers stand. A tile of one vector has a load for each product: the
 * processor broadcasts on the way into the product then, which takes no place of its own. */
INLINE void one_k(vf acc[MOST][2], hf half_acc[MOST], const float *const p[GROUPS], ptrdiff_t lda,
                  const float *b, const int s, const int rows, const int full, const int half) {
  vf bv[2];
  b += s * (full + half) * VEC_W;
  HN_UNROLL for (int j = 0; j < full; j++) bv[j] = v_load(b + j * VEC_W);
  HN_UNROLL for (int j = 0; full == 2 && j < full; j += LINE / (4 * VEC_W) ? LINE / (4 * VEC_W) : 1)
      __builtin_prefetch(b + B_AHEAD * full * VEC_W + j * VEC_W, 0, 3);
  const hf bh = half ? h_load(b + full * VEC_W) : h_zero();
  HN_UNROLL for (int i = 0; i < rows; i++) {
    if (full == 2) {
      const vf x = v_spread(p[i / 3], lda, i % 3, s);
      v_fma_into(&acc[i][0], x, bv[0]);
      v_fma_into(&acc[i][1], x, bv[1]);
    } else {
      if (full) v_fma_spread(&acc[i][0], p[i / 3], lda, i % 3, s, bv[0]);
      if (half) h_fma_spread(&half_acc[i], p[i / 3], lda, i % 3, s, bh);
    }
  }
  __asm__ volatile("" ::: "memory"); /* the next one's loads stay behind: there are no registers for them */
}

INLINE void move_on(const float *p[GROUPS], const ptrdiff_t by, const int rows) {
  HN_UNROLL for (int g = 0; g < GROUPS; g++) if (3 * g < rows) {
    p[g] += by;
    __asm__("" : "+r"(p[g])); /* one pointer a group: the compiler would make one a row and spill them */
  }
}

/* The last vector's columns that there are. */
INLINE size_t live_of(const hn_strip *t, const int full, const int half) {
  return t->n - (size_t)(full + half - 1) * VEC_W;
}

INLINE vf column_of(const hn_strip *t, const float *from, const int j, const int full, const int half) {
  return j + 1 == full && !half ? v_loadn(from + j * VEC_W, live_of(t, full, half))
                                : v_load(from + j * VEC_W);
}

INLINE void start(const hn_strip *t, const float *from, const int32_t *at, vf acc[MOST][2], hf half_acc[MOST],
                  const int rows, const int full, const int half) {
  vf bias[2] = {v_zero(), v_zero()};
  hf half_bias = h_zero();
  const size_t live = live_of(t, full, half);
  if ((t->flags & HN_EPI_BIAS) && !HN_FAULT("strip_no_bias")) {
    HN_UNROLL for (int j = 0; j < full; j++) bias[j] = column_of(t, t->bias, j, full, half);
    if (half) half_bias = h_loadn(t->bias + full * VEC_W, live);
  }
  HN_UNROLL for (int i = 0; i < rows; i++) {
    HN_UNROLL for (int j = 0; j < full; j++) acc[i][j] = bias[j];
    if (half) half_acc[i] = half_bias;
  }
  if (!t->accumulate || HN_FAULT("strip_no_accumulate")) return;
  HN_UNROLL for (int i = 0; i < rows; i++) {
    const float *c = from + at[i];
    HN_UNROLL for (int j = 0; j < full; j++) acc[i][j] = v_add(acc[i][j], column_of(t, c, j, full, half));
    if (half) half_acc[i] = h_add(half_acc[i], h_loadn(c + full * VEC_W, live));
  }
}

/* Rows whose last vector is not all there, or whose activation is a rare one: they lie in `sums`. */
static __attribute__((noinline)) void leave_rows(const hn_strip *t, float *to, const int32_t *at,
                                                 const float *residual, const float *sums, size_t width,
                                                 int rows) {
  const bool after = t->flags & HN_EPI_RESIDUAL_AFTER;
  const vf slope = v_set1(t->slope), lo = v_set1(t->lo), hi = v_set1(t->hi);
  for (int i = 0; i < rows; i++, sums += width)
    for (size_t j = 0; j < t->n; j += VEC_W) {
      const size_t lanes = t->n - j < VEC_W ? t->n - j : VEC_W;
      vf x = v_load(sums + j), r = v_zero();
      if (t->flags & HN_EPI_RESIDUAL) r = v_loadn(residual + i * t->ldr + j, lanes);
      if (!after && (t->flags & HN_EPI_RESIDUAL)) x = v_add(x, r);
      if (t->flags & HN_EPI_CLAMP)
        x = v_min_number(hi, v_max_number(lo, x));
      else if (t->flags & HN_EPI_LEAKY)
        x = v_sel(v_lt(x, v_zero()), v_mul(x, slope), x);
      if (after && (t->flags & HN_EPI_RESIDUAL)) x = v_add(x, r);
      if (lanes == VEC_W)
        v_store(to + at[i] + j, x);
      else
        v_storen(to + at[i] + j, x, HN_FAULT("strip_tail_mask") ? lanes - 1 : lanes);
    }
}

/* Row by row, so that the first are on their way while the last are still summed up. */
INLINE void leave_whole(const hn_strip *t, float *to, const int32_t *at, const float *residual,
                        vf acc[MOST][2], hf half_acc[MOST], const int rows, const int full, const int half,
                        const bool clamp, const bool before, const bool after) {
  const bool bounds = t->flags & HN_EPI_CLAMP;
  const vf lo = v_set1(bounds ? t->lo : -__builtin_inff()),
           hi = v_set1(bounds ? HN_FAULT("strip_clamp_high") ? t->hi * 1.01f : t->hi : __builtin_inff());
  const ptrdiff_t ldr = HN_FAULT("strip_residual_stride") ? t->ldr + 1 : t->ldr;
  HN_UNROLL for (int i = 0; i < rows; i++) {
    float *c = to + at[i];
    HN_UNROLL for (int j = 0; j < full; j++) {
      vf x = acc[i][j];
      if (before) x = v_add(x, v_load(residual + j * VEC_W));
      if (clamp) x = v_min_number(hi, v_max_number(lo, x));
      if (after) x = v_add(x, v_load(residual + j * VEC_W));
      v_store(c + j * VEC_W, x);
    }
    if (half) {
      hf x = half_acc[i];
      if (before) x = h_add(x, h_load(residual + full * VEC_W));
      if (clamp) x = h_clamp(lo, hi, x);
      if (after) x = h_add(x, h_load(residual + full * VEC_W));
      h_store(c + full * VEC_W, x);
    }
    if (before || after) residual += ldr;
  }
}

INLINE void leave(const hn_strip *t, float *to, const int32_t *at, const float *residual, vf acc[MOST][2],
                  hf half_acc[MOST], const int rows, const int full, const int half) {
  const uint32_t flags = t->flags;
  if (live_of(t, full, half) != (half ? HALF : VEC_W) || flags & HN_EPI_LEAKY) {
    float sums[MOST * 2 * VEC_W];
    HN_UNROLL for (int i = 0; i < rows; i++) {
      HN_UNROLL for (int j = 0; j < full; j++) v_store(sums + (i * (full + half) + j) * VEC_W, acc[i][j]);
      if (half) h_store(sums + (i * (full + half) + full) * VEC_W, half_acc[i]);
    }
    leave_rows(t, to, at, residual, sums, (size_t)(full + half) * VEC_W, rows);
    return;
  }
  if (!(flags & HN_EPI_RESIDUAL)) {
    if (flags & HN_EPI_CLAMP)
      leave_whole(t, to, at, residual, acc, half_acc, rows, full, half, true, false, false);
    else
      leave_whole(t, to, at, residual, acc, half_acc, rows, full, half, false, false, false);
  } else if (flags & HN_EPI_RESIDUAL_AFTER) {
    leave_whole(t, to, at, residual, acc, half_acc, rows, full, half, true, false, true);
  } else {
    leave_whole(t, to, at, residual, acc, half_acc, rows, full, half, true, true, false);
  }
}

/* Lines that a tile ends at, of C and of a residual: asked for in its first turns. */
typedef struct ends {
  const char *to, *from; /* from: NULL where no residual is added */
  int rows;              /* not asked for yet */
} ends;

INLINE void ask_row(const hn_strip *t, ends *e, const int full, const int half) {
  enum { VECTOR = 4 * VEC_W };
  const int apart = full + half > 1 ? (full + (full ? 0 : half)) * VECTOR : 0; /* bytes to another line */
  __builtin_prefetch(e->to, 1, 3);
  if (apart) __builtin_prefetch(e->to + (apart > LINE ? LINE : apart - 4), 1, 3);
  e->to += t->ldc * (ptrdiff_t)sizeof *t->c;
  if (!e->from) return;
  __builtin_prefetch(e->from, 0, 3);
  if (apart) __builtin_prefetch(e->from + (apart > LINE ? LINE : apart - 4), 0, 3);
  e->from += t->ldr * (ptrdiff_t)sizeof *t->residual;
}

/* So many tiles of so many rows. */
INLINE void tiles_fixed(const hn_strip *t, walk *w, size_t tiles, const int rows, const int full,
                        const int half) {
  const ptrdiff_t lda = t->lda;
  const size_t all = t->k - (HN_FAULT("strip_last_k") && t->k > 0), whole = t->segment;
  const int lines = w->lines, ends_rows = t->far && t->segment >= TURN ? rows : 0;
  const int ends_turn =
      ends_rows ? (rows - 1) / (int)((t->segment < ROWS_TWO * TURN ? t->segment : ROWS_TWO * TURN) / TURN) + 1
                : 0;
  const char *ahead = w->ahead;
  const float *a = w->a, *residual = w->residual;
  float *c = w->c;
  const int32_t *at = w->at;
  const ptrdiff_t c_row = w->c_row, at_rows = t->at ? rows : 0;
  for (; tiles; tiles--) {
    vf acc[MOST][2];
    hf half_acc[MOST];
    const float *p[GROUPS], *b = t->b;
    ends e = {(const char *)c, (const char *)residual, ends_rows};
    start(t, c, at, acc, half_acc, rows, full, half);
    p[0] = a;
    HN_UNROLL for (int g = 1; g < GROUPS; g++) p[g] = p[g - 1] + (3 * g < rows ? 3 : 0) * lda;
    HN_ROLLED for (size_t left = all, n; left; left -= n) {
      n = whole < left ? whole : left;
      size_t s = n;
      HN_ROLLED for (; s >= TURN; s -= TURN) {
        HN_UNROLL for (int i = 0; i < TURN; i++) one_k(acc, half_acc, p, lda, b, i, rows, full, half);
        move_on(p, TURN, rows);
        b += TURN * (full + half) * VEC_W;
        HN_ROLLED for (int i = lines; i; i--) {
          __builtin_prefetch(ahead, 0, 2);
          ahead += w->step;
        }
        const int asks = ends_turn < e.rows ? ends_turn : e.rows;
        e.rows -= asks;
        HN_ROLLED for (int i = asks; i; i--) ask_row(t, &e, full, half);
      }
      HN_ROLLED for (; s; s--) {
        one_k(acc, half_acc, p, lda, b, 0, rows, full, half);
        move_on(p, 1, rows);
        b += (full + half) * VEC_W;
      }
      move_on(p, t->skip, rows);
    }
    leave(t, c, at, residual, acc, half_acc, rows, full, half);
    a += rows * lda;
    c += rows * c_row;
    at += at_rows;
    if (residual) residual += rows * t->ldr;
  }
  w->ahead = ahead, w->a = a, w->c = c, w->at = at, w->residual = residual;
}

#define INSTANCE(m)                                                                                          \
  static void two_##m(const hn_strip *t, walk *w, size_t tiles) { tiles_fixed(t, w, tiles, m, 2, 0); }       \
  static void one_##m(const hn_strip *t, walk *w, size_t tiles) { tiles_fixed(t, w, tiles, m, 1, 0); }
EACH_ROWS(INSTANCE)
#undef INSTANCE
#if VEC_W == 16
#define INSTANCE(m)                                                                                          \
  static void more_##m(const hn_strip *t, walk *w, size_t tiles) { tiles_fixed(t, w, tiles, m, 1, 1); }      \
  static void half_##m(const hn_strip *t, walk *w, size_t tiles) { tiles_fixed(t, w, tiles, m, 0, 1); }
EACH_ROWS(INSTANCE)
#undef INSTANCE
#define ENTRY(m) {half_##m, one_##m, more_##m, two_##m},
#else
#define ENTRY(m) {one_##m, one_##m, two_##m, two_##m},
#endif

/* Lines of the weights to pull, an even number in every turn. */
static void look_ahead(const hn_strip *t, walk *w, size_t tiles) {
  const size_t turns = t->k ? tiles * (t->k / t->segment) * (t->segment / TURN) : 0;
  if (turns == 0 || !t->prefetch || t->prefetch >= t->prefetch_end) return;
  const size_t bytes = (size_t)(t->prefetch_end - t->prefetch) * sizeof *t->prefetch,
               lines = (bytes + LINE - 1) / LINE;
  w->lines = (int)((lines + turns - 1) / turns);
  const size_t steps = turns * (size_t)w->lines;
  w->step = (ptrdiff_t)(bytes / steps);
  w->ahead = (const char *)t->prefetch;
}

static void run(const hn_strip *t) {
  static void (*const table[MOST][4])(const hn_strip *, walk *, size_t) = {EACH_ROWS(ENTRY)};
  const int two = t->n > VEC_W, last = (int)t->n - two * VEC_W, kind = two * 2 + (last > HALF);
  const size_t most = kind == 3 || !HALF ? (two ? ROWS_TWO : ROWS_ONE) : ROWS_ONE,
               tiles = (t->m + most - 1) / most;
  if (tiles == 0) return;
  int32_t own[MOST];
  for (int i = 0; i < MOST; i++) own[i] = (int32_t)(i * t->ldc);
  walk w = {
      .a = t->a, .residual = t->residual, .c = t->c, .at = t->at ? t->at : own, .c_row = t->at ? 0 : t->ldc};
  look_ahead(t, &w, tiles);
  const size_t rows = t->m / tiles, longer = t->m % tiles;
  if (longer) table[rows][kind](t, &w, longer);
  if (!HN_FAULT("strip_last_tiles") || tiles - longer < 2) table[rows - 1][kind](t, &w, tiles - longer);
}
