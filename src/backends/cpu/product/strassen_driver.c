#include "backends/cpu/product/strassen_driver.h"

#include <stdbool.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "base/fault.h"
#include "base/integers.h"

enum {
  LINE = 16,       /* floats of a cache line */
  LEAST_HALF = 24, /* rows, and columns in panels, that a half must have */
  LEAST_K = 128    /* of a half */
};

/* Where piece i of half the inner length begins. */
static int64_t piece_at(const hn_strassen *p, int64_t i) { return i * (p->k / 2) / p->pieces; }

static int64_t longest_piece(const hn_strassen *p) { return hn_div_up(p->k / 2, p->pieces); }

static int64_t half_rows(int64_t rows) { return hn_div_up(rows, 2); }

/* Floats of the seven factors of a block's piece. */
static int64_t block_floats(const hn_strassen *p) {
  return HN_STRASSEN_PRODUCTS * half_rows(p->meet) * p->ld;
}

static int64_t most_tiles(const hn_strassen *p) {
  return hn_div_up(half_rows(p->meet), hn_gemm_find(p->isa)->mr);
}

static void plan_tasks(hn_strassen *p, uint32_t threads) {
  const int64_t want = threads == 1 ? 1 : 2 * (int64_t)threads;
  double best = 0;
  p->m_tasks = p->n_tasks = 1;
  for (int64_t n = 1; n <= p->pairs && n <= want; n++) {
    const int64_t m = hn_min(hn_div_up(want, n), p->blocks), rounds = hn_div_up(m * n, threads);
    /* Each task makes its columns' factors. */
    const double each =
                     (double)hn_div_up(p->pairs, n) * ((double)hn_div_up(p->blocks, m) * (double)p->meet + 6),
                 all = (double)rounds * each;
    if (best == 0 || all < best * 0.999) best = all, p->m_tasks = m, p->n_tasks = n;
  }
}

bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->pairs = p->n / 2 / o->nr;
  if (p->k % 2 || p->k / 2 < LEAST_K || p->pairs * (int64_t)o->nr < LEAST_HALF || p->apart < 2 * LEAST_HALF)
    return false;
  /* A tile's rows of a factor in most of L1, as those of the usual product; the four quarters of a
   * pair of panels in a quarter of L2. */
  const int64_t rows = (int64_t)(l1 / 8 * 7 / 4 / o->mr), panel = (int64_t)(l2 / 4 / 4 / 4 / o->nr);
  p->pieces = hn_div_up(p->k / 2, hn_max(LEAST_K, hn_min(rows, panel)));
  p->ld = (hn_div_up(longest_piece(p), LINE) | 1) * LINE;
  /* Factors of so many rows at once as stay in L2 beside the panels. */
  const int64_t floats = (int64_t)(l2 / 4 * 3 / 4),
                most = hn_max(2 * LEAST_HALF, 2 * (floats / (HN_STRASSEN_PRODUCTS * p->ld)));
  p->meet = hn_div_up(p->apart, hn_div_up(p->apart, most));
  const int64_t all = p->m / p->apart * hn_div_up(p->apart, p->meet);
  p->blocks = hn_max(1, hn_min(all, floats / block_floats(p)));
  plan_tasks(p, threads);
  p->factors = p->blocks * block_floats(p);
  p->flags = hn_fill_up(hn_div_up(p->blocks * most_tiles(p), sizeof(float)), LINE);
  p->thread_floats = hn_fill_up(4 * (int64_t)o->mr * o->nr, LINE);
  return true;
}

size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads) {
  return (size_t)(p->factors + p->flags + p->thread_floats * threads);
}

double hn_strassen_products(const hn_strassen *p) {
  return 1 - 2.0 * (double)p->pairs * (double)hn_gemm_find(p->isa)->nr / (double)p->n / 8;
}

/* Cycles, fitted on Zen 4: for a vector of A whose seven factors are made, of which more than the arithmetic is that they
 * leave L1; for a tile and each of its vectors; for a vector of C that is written. Five of seven products add two panels in
 * their loops, which takes turns with the multiply-adds where sums have no units of their own. */
static const double row_cycles = 8, tile_cycles = 150, sum_cycles = 6, write_cycles = 3, panel_cycles = 0.5;

double hn_strassen_cycles(const hn_strassen *p, uint32_t threads) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  const double m = (double)p->m, n = 2.0 * (double)p->pairs * o->nr, pieces = (double)p->pieces;
  const double vectors = (double)o->nr / o->vw;
  const double blocks = m / (double)p->apart * (double)hn_div_up(p->apart, p->meet);
  const double tiles = HN_STRASSEN_PRODUCTS * pieces * (double)p->pairs * blocks * (double)most_tiles(p);
  const double panels = hn_cpu()->adds_aside ? 0 : 5.0 / 7 * (double)longest_piece(p) * vectors * panel_cycles;
  const double sums = tile_cycles + sum_cycles * o->mr * vectors + panels;
  const double all = m * (double)p->k / o->vw * row_cycles + tiles * sums + m * n / o->vw * pieces * write_cycles;
  return all / (double)hn_min(threads, p->m_tasks * p->n_tasks);
}

typedef struct job {
  const hn_strassen *p;
  const hn_gemm_ops *o;
  const hn_strassen_ops *s;
  const float *a, *b, *columns; /* columns: their sizes */
  float *c;
  const hn_epilogue *e;
  float *factors, *threads;
  bool *meets;
  int64_t first, count, piece; /* blocks of rows and the piece of which the factors are there */
} job;

/* Rows [from, to) of a block of all of A's. */
typedef struct span {
  int64_t from, to;
} span;

static span block_rows(const hn_strassen *p, int64_t block) {
  const int64_t each = hn_div_up(p->apart, p->meet), at = block / each * p->apart, i = block % each;
  return (span){at + i * p->apart / each, at + (i + 1) * p->apart / each};
}

/* Rows of the upper half of a block, and of the lower one, which may have one less. */
static int64_t upper(span r) { return half_rows(r.to - r.from); }
static int64_t lower(span r) { return (r.to - r.from) / 2; }

static float *factor(const job *j, int64_t block, int64_t product) {
  const hn_strassen *p = j->p;
  return j->factors + (block - j->first) * block_floats(p) + product * half_rows(p->meet) * p->ld;
}

static span tile_rows(int64_t rows, int64_t i, int64_t tiles) {
  return (span){i * rows / tiles, (i + 1) * rows / tiles};
}

/* Do all rows of a tile meet rows of near sizes? */
static bool *rows_meet(const job *j, int64_t block, int64_t tile) {
  return j->meets + (block - j->first) * most_tiles(j->p) + tile;
}

/* ---- factors of A */

static void make_factors(void *arg, int64_t index, uint32_t thread) {
  (void)thread;
  const job *j = arg;
  const hn_strassen *p = j->p;
  const int64_t most = most_tiles(p), block = j->first + index / most, tile = index % most;
  const span r = block_rows(p, block);
  const int64_t tiles = hn_div_up(upper(r), j->o->mr);
  if (tile >= tiles) return;
  const span t = tile_rows(upper(r), tile, tiles);
  const int64_t k = 2 * piece_at(p, j->piece), half = piece_at(p, j->piece + 1) - piece_at(p, j->piece);
  bool meets = true;
  for (int64_t i = t.from; i < t.to; i++) {
    const float *top = j->a + (r.from + i) * p->x_row + k;
    const float *bottom = i < lower(r) ? top + upper(r) * p->x_row : NULL;
    float *to[HN_STRASSEN_PRODUCTS], size[2];
    for (int q = 0; q < HN_STRASSEN_PRODUCTS; q++) to[q] = factor(j, block, q) + i * p->ld;
    j->s->rows(top, bottom, half, (size_t)half, to, size);
    meets = meets && hn_strassen_alike(size[0], bottom ? size[1] : size[0]);
  }
  *rows_meet(j, block, tile) = meets || HN_FAULT("strassen_rows_any");
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

/* What one pair of panels needs over one piece. */
typedef struct pair {
  int64_t piece, k0, half, column[2]; /* of the upper panel and of the lower */
  const float *b[4];                  /* quarters */
  float *sums;                        /* of this thread: a tile of each quarter of C */
  const float *next[4];               /* quarters of the next pair, NULL: none */
  int64_t calls, call;                /* of the kernel that ask for them, and that have asked */
  const float *rows;                  /* of A that come next, where this task may ask for all of them */
  int64_t rows_floats, row_calls, rows_left;
} pair;

static bool columns_meet(const job *j, const pair *q) {
  for (int64_t i = 0; i < j->o->nr; i++)
    if (!hn_strassen_alike(j->columns[q->column[0] + i], j->columns[q->column[1] + i]))
      return HN_FAULT("strassen_columns_any");
  return true;
}

/* Part i of n of what lies from `from` on. */
static void ask_for(hn_strassen_tile *t, const float *from, int64_t floats, int64_t i, int64_t n) {
  t->prefetch = from + i * floats / n;
  t->prefetch_end = from + (i + 1) * floats / n;
}

/* Each call of the kernel asks for its part of what the next pair reads, and each tile's last one for its
 * part of the rows whose factors are made next. */
static void ask_ahead(pair *q, int64_t floats, bool last, hn_strassen_tile *t) {
  if (last) {
    if (q->rows_left > 0)
      ask_for(t, q->rows, q->rows_floats, q->row_calls - q->rows_left, q->row_calls), q->rows_left--;
    return;
  }
  if (!q->next[0] || q->calls < 4) return;
  const int64_t each = hn_div_up(q->calls, 4), quarter = q->call / each, part = q->call % each;
  q->call++;
  if (quarter < 4) ask_for(t, q->next[quarter], floats, part, each);
}

static float *sum_of(const job *j, const pair *q, int quarter) {
  return q->sums + quarter * (int64_t)j->o->mr * j->o->nr;
}

/* Rows of a tile of the upper half of a block, of which the lower half may lack the last. */
typedef struct place {
  int64_t block, from, to, low;
} place;

static void product_tile(const job *j, pair *q, const place *t, int i) {
  const hn_strassen *p = j->p;
  const product *x = &products[i];
  hn_strassen_tile g = {.a = factor(j, t->block, i) + t->from * p->ld,
                        .lda = p->ld,
                        .b = q->b[x->b],
                        .with = q->b[x->with],
                        .k = (size_t)q->half,
                        .m = (uint32_t)(t->to - t->from),
                        .form = x->form,
                        .to = {x->to[0], x->to[1]},
                        .c = {sum_of(j, q, x->c[0]), sum_of(j, q, x->c[1])}};
  ask_ahead(q, q->half * j->o->nr, i + 1 == HN_STRASSEN_PRODUCTS, &g);
  j->s->tile(&g);
}

/* Rows [r.from, r.to) of C as usual: one panel, of `width` columns from n on, k values from k0 on. */
static void plain(const job *j, span r, int64_t n, int64_t columns, const float *b, int64_t k0, int64_t k) {
  const int64_t tiles = hn_div_up(r.to - r.from, j->o->mr);
  for (int64_t i = 0; i < tiles; i++) {
    const span t = tile_rows(r.to - r.from, i, tiles);
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

static void add_rows(const job *j, const sums *s, const float *more, ptrdiff_t pitch) {
  const hn_gemm_tile g = {.a = j->a,
                          .b = j->b,
                          .c = s->y,
                          .ldc = s->pitch,
                          .m = (uint32_t)s->m,
                          .n = (uint32_t)s->n,
                          .accumulate = 1,
                          .flags = HN_EPI_RESIDUAL,
                          .residual = more,
                          .ldr = pitch};
  j->o->tile(&g);
}

static void finish(const job *j, const sums *s) {
  const hn_epilogue *e = j->e;
  const ptrdiff_t ldr = e->residual_view.pixel;
  if (e->flags) {
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
                            .residual = e->residual ? e->residual + s->row * ldr + s->column : NULL,
                            .ldr = ldr};
    j->o->tile(&g);
  }
  if (e->n_post)
    hn_epilogue_post_pixels(e, s->y, s->pitch, s->m, (size_t)s->column, (size_t)s->n, 0, 0, 0, s->row);
}

/* The same of rows that are many tiles, where they lie in C. */
static void finish_rows(const job *j, span r, int64_t column, int64_t columns) {
  const int64_t tiles = hn_div_up(r.to - r.from, j->o->mr), ldc = j->p->y_row;
  for (int64_t i = 0; i < tiles; i++) {
    const span t = tile_rows(r.to - r.from, i, tiles);
    const int64_t row = r.from + t.from;
    finish(j, &(sums){j->c + row * ldc + column, ldc, row, column, t.to - t.from, columns});
  }
}

/* A tile's results of this piece in one quarter of C go there: each as soon as it is complete, since all four
 * at once are more stores than processors hold back. */
static void write_quarter(const job *j, const pair *q, const place *t, int c) {
  const hn_strassen *p = j->p;
  const span r = block_rows(p, t->block);
  const bool last = q->piece + 1 == p->pieces, held = q->piece > 0 && !HN_FAULT("strassen_forgets_a_piece");
  const int64_t end = c < 2 ? t->to : t->low, row = r.from + (c < 2 ? 0 : upper(r)) + t->from;
  const sums s = {sum_of(j, q, c), j->o->nr, row, q->column[c & 1], end - t->from, j->o->nr};
  float *y = j->c + row * p->y_row + s.column;
  if (s.m <= 0) return;
  if (last && held) add_rows(j, &s, y, p->y_row);
  if (last) finish(j, &s);
  j->s->give(s.y, (size_t)s.m, y, p->y_row, held && !last);
}

/* Rows of a tile of both halves, and both panels, as usual. */
static void plain_tile(const job *j, const pair *q, const place *t) {
  const span r = block_rows(j->p, t->block), top = {r.from + t->from, r.from + t->to},
             bottom = {r.from + upper(r) + t->from, r.from + upper(r) + t->low};
  for (int side = 0; side < 2; side++) { /* the second half of the piece follows the first */
    plain(j, top, q->column[side], j->o->nr, q->b[side], q->k0, 2 * q->half);
    plain(j, bottom, q->column[side], j->o->nr, q->b[side], q->k0, 2 * q->half);
    if (q->piece + 1 < j->p->pieces) continue;
    finish_rows(j, top, q->column[side], j->o->nr);
    finish_rows(j, bottom, q->column[side], j->o->nr);
  }
}

static void pair_over_piece(const job *j, pair *q, span blocks) {
  const hn_strassen *p = j->p;
  const bool columns = columns_meet(j, q);
  for (int64_t block = blocks.from; block < blocks.to; block++) {
    const span r = block_rows(p, block);
    const int64_t tiles = hn_div_up(upper(r), j->o->mr);
    for (int64_t tile = 0; tile < tiles; tile++) {
      const span rows = tile_rows(upper(r), tile, tiles);
      const place t = {block, rows.from, rows.to, hn_min(rows.to, lower(r))};
      if (columns && *rows_meet(j, block, tile)) {
        for (int i = 0; i < HN_STRASSEN_PRODUCTS; i++) {
          product_tile(j, q, &t, i);
          if (products[i].done >= 0) write_quarter(j, q, &t, products[i].done);
        }
      } else
        plain_tile(j, q, &t);
    }
  }
}

static void set_quarters(const job *j, int64_t pair_index, int64_t piece, const float *b[4]) {
  const hn_strassen *p = j->p;
  const int64_t nr = j->o->nr, k0 = 2 * piece_at(p, piece),
                half = piece_at(p, piece + 1) - piece_at(p, piece);
  for (int side = 0; side < 2; side++) {
    b[side] = j->b + (pair_index + side * p->pairs) * nr * p->k + k0 * nr;
    b[2 + side] = b[side] + half * nr;
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  const hn_gemm_ops *o = j->o;
  const int64_t m = index % p->m_tasks, n = index / p->m_tasks, nr = o->nr;
  const span blocks = {j->first + m * j->count / p->m_tasks, j->first + (m + 1) * j->count / p->m_tasks},
             pairs = {n * p->pairs / p->n_tasks, (n + 1) * p->pairs / p->n_tasks};
  if (blocks.from == blocks.to) return;
  const span rows = {block_rows(p, blocks.from).from, block_rows(p, blocks.to - 1).to};
  pair q = {.sums = j->threads + thread * p->thread_floats};
  const int64_t tiles = (blocks.to - blocks.from) * most_tiles(p);
  q.piece = j->piece;
  if (p->pieces == 1 && p->x_row == p->k && rows.to + rows.to - rows.from <= p->m) {
    q.rows = j->a + rows.to * p->x_row;
    q.rows_floats = (rows.to - rows.from) * p->x_row;
    q.row_calls = q.rows_left = (pairs.to - pairs.from) * tiles;
  }
  q.k0 = 2 * piece_at(p, q.piece);
  q.half = piece_at(p, q.piece + 1) - piece_at(p, q.piece);
  for (int64_t i = pairs.from; i < pairs.to; i++) {
    const bool last = i + 1 == pairs.to;
    set_quarters(j, i, q.piece, q.b);
    q.column[0] = i * nr, q.column[1] = (p->pairs + i) * nr;
    q.calls = q.call = 0;
    q.next[0] = NULL;
    if (!last || q.piece + 1 < p->pieces) {
      set_quarters(j, last ? pairs.from : i + 1, q.piece + last, q.next);
      q.calls = tiles * (HN_STRASSEN_PRODUCTS - 1);
    }
    pair_over_piece(j, &q, blocks);
  }
  if (n + 1 < p->n_tasks) return;
  for (int64_t c = 2 * p->pairs * nr; c < p->n; c += nr) {
    const int64_t width = (int64_t)hn_gemm_panel_width(o, (size_t)p->n, (size_t)c),
                  columns = hn_min(nr, p->n - c);
    plain(j, rows, c, columns, j->b + c * p->k + q.k0 * width, q.k0, 2 * q.half);
    if (q.piece + 1 == p->pieces) finish_rows(j, rows, c, columns);
  }
}

void hn_strassen_sizes(const hn_strassen *p, const float *b, float *sizes) {
  const hn_strassen_ops *s = hn_strassen_find(p->isa);
  for (int64_t i = 0; i < 2 * p->pairs; i++)
    s->columns(b + i * s->nr * p->k, (size_t)p->k, sizes + i * s->nr);
}

void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool) {
  job j = {.p = p,
           .o = hn_gemm_find(p->isa),
           .s = hn_strassen_find(p->isa),
           .a = a,
           .b = b,
           .columns = b + hn_gemm_packed_size(hn_gemm_find(p->isa), (size_t)p->n, (size_t)p->k),
           .c = c,
           .e = e,
           .factors = workspace,
           .meets = (bool *)(workspace + p->factors),
           .threads = workspace + p->factors + p->flags};
  const int64_t all = p->m / p->apart * hn_div_up(p->apart, p->meet);
  for (; j.first < all; j.first += j.count) {
    j.count = hn_min(p->blocks, all - j.first);
    for (j.piece = 0; j.piece < p->pieces; j.piece++) {
      parallel(pool, j.count * most_tiles(p), make_factors, &j);
      parallel(pool, p->m_tasks * p->n_tasks, task, &j);
    }
  }
}
