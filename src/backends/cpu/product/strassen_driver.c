#include "backends/cpu/product/strassen_driver.h"

#include <math.h>
#include <stdbool.h>

#include "backends/cpu/kernels/strassen/strassen.h"
#include "base/fault.h"
#include "base/integers.h"

/* Where piece i of half the inner length begins. */
static int64_t piece_at(const hn_strassen *p, int64_t i) { return i * (p->k / 2) / p->pieces; }

typedef struct job {
  const hn_strassen *p;
  const hn_gemm_ops *o;
  const hn_strassen_ops *s;
  const float *a, *b, *meets; /* meets: not 0 where a pair's columns may meet, piece by piece */
  float *c;
  const hn_epilogue *e;
  float *workspace;
} job;

/* [from, to): rows of A, blocks of them, pairs of panels. */
typedef struct span {
  int64_t from, to;
} span;

static span part_of(int64_t n, int64_t i, int64_t parts) {
  return (span){i * n / parts, (i + 1) * n / parts};
}

static span block_rows(const hn_strassen *p, int64_t block) {
  const int64_t each = hn_div_up(p->apart, p->meet), at = block / each * p->apart;
  const span r = part_of(p->apart, block % each, each);
  return (span){at + r.from, at + r.to};
}

/* Rows of the upper half of a block, and of the lower one, which may have one less. */
static int64_t upper(span r) { return hn_div_up(r.to - r.from, 2); }
static int64_t lower(span r) { return (r.to - r.from) / 2; }

/* Rows of a tile of the upper half of a block, of which the lower half may lack the last. */
typedef struct place {
  span block;
  int64_t from, to, low;
} place;

static place tile_of(const job *j, int64_t block, int64_t tile, int64_t *tiles) {
  const span r = block_rows(j->p, block);
  *tiles = hn_div_up(upper(r), j->o->mr);
  const span t = part_of(upper(r), tile, *tiles);
  return (place){r, t.from, t.to, hn_min(t.to, lower(r))};
}

/* What a thread has at hand. */
typedef struct worker {
  const job *j;
  float *factors, *sums; /* of A's rows; a tile of each quarter of C */
  bool *meets;           /* do all rows of a tile meet rows of near sizes? */
  span blocks;           /* whose factors are there, of one piece */
  int64_t piece, k0, half;
  /* of a pair of panels */
  int64_t column[2];    /* of the upper panel and of the lower */
  const float *b[4];    /* quarters */
  const float *next[4]; /* quarters of the next pair, NULL: none */
  int64_t calls, call;  /* of the kernel that ask for them, and that have asked */
} worker;

static float *factor(const worker *w, int64_t block, int64_t product) {
  const hn_strassen *p = w->j->p;
  return w->factors + (block - w->blocks.from) * hn_strassen_block_floats(p) +
         product * hn_div_up(p->meet, 2) * p->ld;
}

static bool *rows_meet(const worker *w, int64_t block, int64_t tile) {
  return w->meets + (block - w->blocks.from) * hn_strassen_tiles(w->j->p, w->j->o) + tile;
}

/* ---- factors of A */

/* Are rows i of a tile's halves, and the halves of these, alike in size? A row that none meets meets itself.
 */
static bool row_meets(const worker *w, const place *t, int64_t i) {
  const job *j = w->j;
  const float *top = j->a + (t->block.from + i) * j->p->x_row + w->k0;
  const float *bottom = i < t->low ? top + upper(t->block) * j->p->x_row : top;
  const float *const quarter[4] = {top, top + w->half, bottom, bottom + w->half};
  float sum[4], most = 0;
  for (int q = 0; q < 4; q++) {
    float largest;
    sum[q] = j->s->size(quarter[q], (size_t)w->half, &largest);
    if (largest > most) most = largest;
  }
  return hn_strassen_alike(sum, most, (size_t)w->half);
}

static void tile_factors(const worker *w, int64_t block, int64_t tile, const place *t) {
  const job *j = w->j;
  const hn_strassen *p = j->p;
  bool meets = true;
  for (int64_t i = t->from; i < t->to && meets; i++)
    meets = row_meets(w, t, i) || HN_FAULT("strassen_rows_any");
  *rows_meet(w, block, tile) = meets;
  for (int64_t i = t->from; i < t->to && meets; i++) {
    const float *top = j->a + (t->block.from + i) * p->x_row + w->k0;
    const float *bottom = i < t->low ? top + upper(t->block) * p->x_row : NULL;
    float *to[HN_STRASSEN_PRODUCTS];
    for (int q = 0; q < HN_STRASSEN_PRODUCTS; q++) to[q] = factor(w, block, q) + i * p->ld;
    j->s->rows(top, bottom, w->half, (size_t)w->half, to);
  }
}

static void make_factors(const worker *w) {
  for (int64_t block = w->blocks.from; block < w->blocks.to; block++)
    for (int64_t tile = 0, tiles = 1; tile < tiles; tile++) {
      const place t = tile_of(w->j, block, tile, &tiles);
      tile_factors(w, block, tile, &t);
    }
}

/* ---- products */

/* The quarters that make up a product's factor of B, and the quarters of C that it goes to, of 11, 12,
 * 21, 22. */
typedef struct product {
  int b, with;
  hn_strassen_form form;
  int c[2];
  hn_strassen_to to[2];
  int done; /* the quarter of C that is complete then; -1: none */
} product;

static const product products[HN_STRASSEN_PRODUCTS] = {
    {0, 3, HN_STRASSEN_SUM, {0, 3}, {HN_STRASSEN_FIRST, HN_STRASSEN_FIRST}, -1},
    {0, 0, HN_STRASSEN_ALONE, {2, 3}, {HN_STRASSEN_FIRST, HN_STRASSEN_TAKEN}, -1},
    {1, 3, HN_STRASSEN_DIFFERENCE, {1, 3}, {HN_STRASSEN_FIRST, HN_STRASSEN_ADDED}, -1},
    {2, 0, HN_STRASSEN_DIFFERENCE, {0, 2}, {HN_STRASSEN_ADDED, HN_STRASSEN_ADDED}, 2},
    {3, 3, HN_STRASSEN_ALONE, {0, 1}, {HN_STRASSEN_TAKEN, HN_STRASSEN_ADDED}, 1},
    {0, 1, HN_STRASSEN_SUM, {3, 3}, {HN_STRASSEN_ADDED, HN_STRASSEN_NONE}, 3},
    {2, 3, HN_STRASSEN_SUM, {0, 0}, {HN_STRASSEN_ADDED, HN_STRASSEN_NONE}, 0}};

/* Each call of the kernel asks for its part of what the next pair reads. */
static void ask_ahead(worker *w, hn_strassen_tile *t) {
  if (!w->next[0]) return;
  const int64_t floats = w->half * w->j->o->nr, each = hn_div_up(w->calls, 4), quarter = w->call / each,
                part = w->call % each;
  w->call++;
  if (quarter >= 4) return;
  t->prefetch = w->next[quarter] + part * floats / each;
  t->prefetch_end = w->next[quarter] + (part + 1) * floats / each;
}

static float *sum_of(const worker *w, int quarter) {
  return w->sums + quarter * (int64_t)w->j->o->mr * w->j->o->nr;
}

static void product_tile(worker *w, int64_t block, const place *t, int i) {
  const hn_strassen *p = w->j->p;
  const product *x = &products[i];
  hn_strassen_tile g = {.a = factor(w, block, i) + t->from * p->ld,
                        .lda = p->ld,
                        .b = w->b[x->b],
                        .with = w->b[x->with],
                        .k = (size_t)w->half,
                        .m = (uint32_t)(t->to - t->from),
                        .form = x->form,
                        .to = {x->to[0], x->to[1]},
                        .c = {sum_of(w, x->c[0]), sum_of(w, x->c[1])}};
  ask_ahead(w, &g);
  w->j->s->tile(&g);
}

/* Rows [r.from, r.to) of C as usual: one panel, of `width` columns from n on, k values from k0 on. */
static void plain(const job *j, span r, int64_t n, int64_t columns, const float *b, int64_t k0, int64_t k) {
  const int64_t tiles = hn_div_up(r.to - r.from, j->o->mr);
  for (int64_t i = 0; i < tiles; i++) {
    const span t = part_of(r.to - r.from, i, tiles);
    const hn_gemm_tile g = {.a = j->a + (r.from + t.from) * j->p->x_row + k0,
                            .lda = j->p->x_row,
                            .b = b,
                            .c = j->c + (r.from + t.from) * j->p->y_row + n,
                            .ldc = j->p->y_row,
                            .k = (size_t)k,
                            .segment = (size_t)k,
                            .m = (uint32_t)(t.to - t.from),
                            .n = (uint32_t)columns,
                            .accumulate = k0 > 0};
    j->o->tile(&g);
  }
}

/* m rows of sums, at most a tile. */
typedef struct sums {
  float *y;
  ptrdiff_t pitch;
  int64_t row, column; /* of C */
  int64_t m, n;
} sums;

/* The end of a usual tile, with no product before it. */
static void pass_out(const job *j, const sums *s, const hn_epilogue *e, const float *residual,
                     ptrdiff_t ldr) {
  const hn_gemm_tile g = {.a = j->a,
                          .b = j->b,
                          .c = s->y,
                          .ldc = s->pitch,
                          .m = (uint32_t)s->m,
                          .n = (uint32_t)s->n,
                          .accumulate = 1,
                          .flags = e->flags,
                          .lo = e->lo,
                          .hi = e->hi,
                          .slope = e->slope,
                          .bias = e->bias ? e->bias + s->column : NULL,
                          .residual = residual,
                          .ldr = ldr};
  j->o->tile(&g);
}

static void add_rows(const job *j, const sums *s, const float *more, ptrdiff_t pitch) {
  static const hn_epilogue adds = {.flags = HN_EPI_RESIDUAL};
  pass_out(j, s, &adds, more, pitch);
}

static void finish(const job *j, const sums *s) {
  const hn_epilogue *e = j->e;
  const ptrdiff_t ldr = e->residual_view.pixel;
  if (e->flags) pass_out(j, s, e, e->residual ? e->residual + s->row * ldr + s->column : NULL, ldr);
  if (e->n_post)
    hn_epilogue_post_pixels(e, s->y, s->pitch, s->m, (size_t)s->column, (size_t)s->n, 0, 0, 0, s->row);
}

/* The same of rows that are many tiles, where they lie in C. */
static void finish_rows(const job *j, span r, int64_t column, int64_t columns) {
  const int64_t tiles = hn_div_up(r.to - r.from, j->o->mr), ldc = j->p->y_row;
  for (int64_t i = 0; i < tiles; i++) {
    const span t = part_of(r.to - r.from, i, tiles);
    const int64_t row = r.from + t.from;
    finish(j, &(sums){j->c + row * ldc + column, ldc, row, column, t.to - t.from, columns});
  }
}

/* A tile's results of this piece in one quarter of C go there: each as soon as it is complete, since all four
 * at once are more stores than processors hold back. */
static void write_quarter(const worker *w, const place *t, int c) {
  const job *j = w->j;
  const hn_strassen *p = j->p;
  const bool last = w->piece + 1 == p->pieces, held = w->piece > 0 && !HN_FAULT("strassen_forgets_a_piece");
  const int64_t end = c < 2 ? t->to : t->low, row = t->block.from + (c < 2 ? 0 : upper(t->block)) + t->from;
  const sums s = {sum_of(w, c), j->o->nr, row, w->column[c & 1], end - t->from, j->o->nr};
  float *y = j->c + row * p->y_row + s.column;
  if (s.m <= 0) return;
  if (last && held) add_rows(j, &s, y, p->y_row);
  if (last) finish(j, &s);
  j->s->give(s.y, (size_t)s.m, y, p->y_row, held && !last);
}

/* Rows of a tile of both halves, and both panels, as usual. */
static void plain_tile(const worker *w, const place *t) {
  const job *j = w->j;
  const int64_t nr = j->o->nr, half = t->block.from + upper(t->block);
  const span rows[2] = {{t->block.from + t->from, t->block.from + t->to}, {half + t->from, half + t->low}};
  for (int i = 0; i < 4; i++) { /* the second half of the piece follows the first */
    plain(j, rows[i & 1], w->column[i >> 1], nr, w->b[i >> 1], w->k0, 2 * w->half);
    if (w->piece + 1 == j->p->pieces) finish_rows(j, rows[i & 1], w->column[i >> 1], nr);
  }
}

static void multiply_pair(worker *w, int64_t pair) {
  const bool columns = w->j->meets[w->piece * w->j->p->pairs + pair] != 0 || HN_FAULT("strassen_columns_any");
  for (int64_t block = w->blocks.from; block < w->blocks.to; block++)
    for (int64_t tile = 0, tiles = 1; tile < tiles; tile++) {
      const place t = tile_of(w->j, block, tile, &tiles);
      const bool meets = columns && *rows_meet(w, block, tile);
      if (!meets) plain_tile(w, &t);
      for (int i = 0; i < HN_STRASSEN_PRODUCTS && meets; i++) {
        product_tile(w, block, &t, i);
        if (products[i].done >= 0) write_quarter(w, &t, products[i].done);
      }
    }
}

static void set_quarters(const worker *w, int64_t pair, int64_t piece, const float *b[4]) {
  const hn_strassen *p = w->j->p;
  const int64_t nr = w->j->o->nr, k0 = piece_at(p, piece), half = piece_at(p, piece + 1) - k0;
  for (int side = 0; side < 2; side++) {
    b[side] = w->j->b + (pair + side * p->pairs) * nr * p->k + 2 * k0 * nr;
    b[2 + side] = b[side] + half * nr;
  }
}

/* One piece of some blocks, against all of a task's pairs. */
static void multiply_piece(worker *w, span pairs) {
  const hn_strassen *p = w->j->p;
  const int64_t nr = w->j->o->nr;
  w->k0 = 2 * piece_at(p, w->piece);
  w->half = piece_at(p, w->piece + 1) - piece_at(p, w->piece);
  make_factors(w);
  for (int64_t i = pairs.from; i < pairs.to; i++) {
    const bool last = i + 1 == pairs.to;
    set_quarters(w, i, w->piece, w->b);
    w->column[0] = i * nr, w->column[1] = (p->pairs + i) * nr;
    w->next[0] = NULL;
    w->call = 0;
    w->calls = (w->blocks.to - w->blocks.from) * HN_STRASSEN_PRODUCTS * hn_strassen_tiles(p, w->j->o);
    if (!last || w->piece + 1 < p->pieces)
      set_quarters(w, last ? pairs.from : i + 1, w->piece + last, w->next);
    multiply_pair(w, i);
  }
}

/* Columns that the halves leave over. */
static void multiply_rest(const worker *w) {
  const job *j = w->j;
  const hn_strassen *p = j->p;
  const int64_t nr = j->o->nr;
  const span rows = {block_rows(p, w->blocks.from).from, block_rows(p, w->blocks.to - 1).to};
  for (int64_t c = 2 * p->pairs * nr; c < p->n; c += nr) {
    const int64_t width = (int64_t)hn_gemm_panel_width(j->o, (size_t)p->n, (size_t)c),
                  columns = hn_min(nr, p->n - c);
    plain(j, rows, c, columns, j->b + c * p->k + w->k0 * width, w->k0, 2 * w->half);
    if (w->piece + 1 == p->pieces) finish_rows(j, rows, c, columns);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  const int64_t n = index / p->m_tasks;
  const span blocks = part_of(hn_strassen_blocks(p), index % p->m_tasks, p->m_tasks),
             pairs = part_of(p->pairs, n, p->n_tasks);
  worker w = {.j = j, .sums = j->workspace + thread * p->thread_floats};
  w.factors = w.sums + hn_fill_up(4 * (int64_t)j->o->mr * j->o->nr, HN_STRASSEN_LINE);
  w.meets = (bool *)(w.factors + hn_fill_up(p->factors, HN_STRASSEN_LINE));
  for (w.blocks = blocks; w.blocks.from < blocks.to; w.blocks.from = w.blocks.to) {
    w.blocks.to = hn_min(w.blocks.from + p->blocks, blocks.to);
    for (w.piece = 0; w.piece < p->pieces; w.piece++) {
      multiply_piece(&w, pairs);
      if (n + 1 == p->n_tasks) multiply_rest(&w);
    }
  }
}

/* Are the channels of the inner length alike in size in these columns? Else what is large in one row of A,
 * and small here, would meet what is not. Pairs that are all zeros add nothing to anything. */
static bool channels_meet(const hn_strassen_ops *s, const float *const b[4], size_t half) {
  enum { WIDE = 64 }; /* the largest over the smallest */
  float least = INFINITY, largest = 0;
  for (size_t k = 0; k < half; k++) {
    float sum[2] = {0, 0}, most;
    for (int q = 0; q < 4; q++) sum[q >> 1] += s->size(b[q] + k * s->nr, s->nr, &most);
    const float low = sum[0] < sum[1] ? sum[0] : sum[1], high = sum[0] < sum[1] ? sum[1] : sum[0];
    if (high == 0) continue;
    if (low < least) least = low;
    if (high > largest) largest = high;
  }
  return largest <= WIDE * least || HN_FAULT("strassen_channels_any");
}

static bool pair_meets(const hn_strassen *p, const float *b, int64_t pair, int64_t piece) {
  const hn_strassen_ops *s = hn_strassen_find(p->isa);
  const int64_t k0 = piece_at(p, piece), half = piece_at(p, piece + 1) - k0, nr = s->nr;
  float sum[4][HN_STRASSEN_MOST_COLUMNS], most[4][HN_STRASSEN_MOST_COLUMNS];
  const float *quarter[4];
  for (int q = 0; q < 4; q++) {
    quarter[q] = b + (pair + (q & 1) * p->pairs) * nr * p->k + (2 * k0 + (q >> 1) * half) * nr;
    s->columns(quarter[q], (size_t)half, sum[q], most[q]);
  }
  for (int64_t i = 0; i < nr; i++) {
    float all[4], largest = 0;
    for (int q = 0; q < 4; q++) {
      all[q] = sum[q][i];
      if (most[q][i] > largest) largest = most[q][i];
    }
    if (!hn_strassen_alike(all, largest, (size_t)half)) return false;
  }
  return channels_meet(s, quarter, (size_t)half);
}

void hn_strassen_mark(const hn_strassen *p, const float *b, float *meets) {
  for (int64_t piece = 0; piece < p->pieces; piece++)
    for (int64_t i = 0; i < p->pairs; i++) *meets++ = pair_meets(p, b, i, piece);
}

void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  job j = {.p = p,
           .o = o,
           .s = hn_strassen_find(p->isa),
           .a = a,
           .b = b,
           .meets = b + hn_gemm_packed_size(o, (size_t)p->n, (size_t)p->k),
           .c = c,
           .e = e,
           .workspace = workspace};
  parallel(pool, p->m_tasks * p->n_tasks, task, &j);
}
