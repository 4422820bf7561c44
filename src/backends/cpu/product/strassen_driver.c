#include "backends/cpu/product/strassen_driver.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

/* The products, in the order in which they are computed, by their operands. The first four go to scratch,
 * where the kernel joins them; the others are added to three quarters of C. */
enum { P_A11_B11, P_S1_T1, P_S2_T2, P_S3_T3, P_A12_B21, P_S4_B22, P_A22_T4, PRODUCTS, JOINED = 4 };

enum { SPLIT_ROWS = 16, PLAIN_PANELS = 4 }; /* of a task */

/* Rows or columns that meet differ by at most this factor in their largest number: what one's roundings do to
 * the other stays far below what is asked of results. Magnitudes up to LARGEST: no sum of products overflows
 * that would not without us. */
#define MOST_RATIO 64.0f
#define LARGEST 0x1p+40f

bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  if (!o || !hn_strassen_find(p->isa) || p->k % 2 || p->n % (2 * (int64_t)o->nr) || p->m < 2 || p->k < 2)
    return false;
  p->half_k = p->k / 2, p->half_n = p->n / 2;
  p->ld = hn_fill_up(p->half_k, 16) + 16; /* an odd number of lines, mostly: rows spread over L1's sets */
  if (p->ld % 1024 == 0) p->ld += 16;
  const int64_t most = (int64_t)(l1 / 2 / sizeof(float) / o->mr);
  p->k_blocks = hn_div_up(p->half_k, most > 64 ? most : 64);
  p->kc = hn_div_up(p->half_k, p->k_blocks);
  enum { FEWEST = 200 }; /* rows of a block, beside which packed B is read anew */
  const int64_t fit = 2 * (int64_t)(l2 * 5 / 8) / (HN_STRASSEN_SUMS * p->ld * (int64_t)sizeof(float));
  p->blocks = hn_div_up(p->m, fit > FEWEST ? fit : FEWEST);
  p->rows = hn_div_up(p->m, p->blocks);
  p->blocks = hn_div_up(p->m, p->rows);
  p->upper = hn_div_up(p->rows, 2);
  const int64_t tiles = hn_div_up(p->upper, o->mr);
  p->tile_rows = hn_div_up(p->upper, tiles);
  p->tiles = hn_div_up(p->upper, p->tile_rows);
  p->panels = p->half_n / o->nr;
  p->group = p->panels >= 4 * (int64_t)threads ? 2 : 1;
  p->groups = hn_div_up(p->panels, p->group);
  p->sums_floats = HN_STRASSEN_SUMS * p->upper * p->ld + hn_fill_up(2 * p->upper, 16);
  const int64_t joined = JOINED * p->upper * p->group * o->nr, panel = PLAIN_PANELS * o->nr * p->kc;
  p->thread_floats = hn_fill_up(joined > panel ? joined : panel, 16);
  return true;
}

size_t hn_strassen_packed(const hn_strassen *p) { return (size_t)(PRODUCTS * p->half_k * p->half_n); }

size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads) {
  return (size_t)(p->sums_floats + p->thread_floats * threads);
}

/* Whether two that meet may be added. NaN: no. */
static bool alike(float a, float b) {
  if (!(a <= LARGEST && b <= LARGEST)) return false;
  return (a <= MOST_RATIO * b && b <= MOST_RATIO * a) || HN_FAULT("strassen_ratio");
}

/* The same of rows: beside one of zeros any will do, as its results are made zeros (group_task). */
static bool rows_alike(float a, float b) { return alike(a, a && b ? b : a) && alike(b, b); }

/* B row by row, times alpha. It may lie at any alignment. */
static void lay_out(const hn_strassen *p, const float *b, int64_t row, int64_t col, float alpha, float *to) {
  const int64_t count = p->k * p->n;
  if (row == 1)
    hn_gemm_turn(b, (ptrdiff_t)col, (size_t)p->k, (size_t)p->n, (size_t)p->n, to);
  else
    for (int64_t k = 0; k < p->k; k++)
      for (int64_t n = 0, run = col == 1 ? p->n : 1; n < p->n; n += run)
        memcpy(to + k * p->n + n, b + k * row + n * col, (size_t)run * sizeof *to);
  for (int64_t i = 0; i < count && alpha != 1; i++) to[i] *= alpha;
}

static bool columns_alike(const hn_strassen *p, const float *b, float *most) {
  memset(most, 0, (size_t)p->n * sizeof *most);
  for (int64_t k = 0; k < p->k; k++, b += p->n)
    for (int64_t n = 0; n < p->n; n++) {
      const float x = fabsf(b[n]);
      most[n] = most[n] >= x || most[n] != most[n] ? most[n] : x; /* NaN stays */
    }
  for (int64_t n = 0; n < p->half_n; n++)
    if (!alike(most[n], most[n + p->half_n])) return false;
  return true;
}

/* Operand q of a quarter. In plain form what stands beside B11 is B12 itself. */
static void operand(const hn_strassen *p, const float *b, int q, float *to) {
  const int64_t w = p->half_n;
  for (int64_t k = 0; k < p->half_k; k++, b += p->n, to += w) {
    const float *b11 = b, *b12 = b + w, *b21 = b + p->half_k * p->n, *b22 = b21 + w;
#define EACH(x)                                                                                              \
  for (int64_t n = 0; n < w; n++) to[n] = x;                                                                 \
  break
    switch (q) {
    case P_A11_B11: EACH(b11[n]);
    case P_S1_T1: EACH(b12[n] - (p->plain ? 0 : b11[n]));
    case P_S2_T2: EACH(b22[n] - (b12[n] - b11[n]));
    case P_S3_T3: EACH(b22[n] - b12[n]);
    case P_A12_B21: EACH(b21[n]);
    case P_S4_B22: EACH(b22[n]);
    default: EACH(b21[n] - (b22[n] - (b12[n] - b11[n]))); /* -T4: its product is taken away */
    }
#undef EACH
  }
}

bool hn_strassen_pack(hn_strassen *p, const float *b, int64_t row, int64_t col, float alpha, float *dst) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  const int64_t quarter = p->half_k * p->half_n, most = hn_max(quarter, p->n);
  float *dense = hn_malloc((size_t)(p->k * p->n + most) * sizeof *dense), *part = dense + p->k * p->n;
  if (!dense) return false;
  lay_out(p, b, row, col, alpha, dense);
  p->plain = !columns_alike(p, dense, part);
  for (int q = 0; q < PRODUCTS; q++, dst += quarter) {
    operand(p, dense, q, part);
    hn_gemm_pack_b(o, part, p->half_n, 1, (size_t)p->half_k, (size_t)p->half_n, 0, (size_t)p->half_n, dst);
  }
  hn_free(dense);
  return true;
}

typedef struct job {
  const hn_strassen *p;
  const hn_gemm_ops *gemm;
  const struct hn_strassen_ops *ops;
  const float *a, *b;
  float *c, *sums, *most, *own;
  const hn_epilogue *e;
  int64_t row, m,
      upper; /* the block's first row, its rows and those of its upper half; a and c begin there */
} job;

static void split_task(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  (void)thread;
  const int64_t end = (t + 1) * SPLIT_ROWS < j->upper ? (t + 1) * SPLIT_ROWS : j->upper;
  for (int64_t r = t * SPLIT_ROWS; r < end; r++) {
    float *to[HN_STRASSEN_SUMS];
    for (int k = 0; k < HN_STRASSEN_SUMS; k++) to[k] = j->sums + (k * p->upper + r) * p->ld;
    const float *row = j->a + r * p->a_row;
    float *most = j->most + 2 * r;
    j->ops->split(to, row, r + j->upper < j->m ? row + j->upper * p->a_row : NULL, (size_t)p->half_k, most);
    /* Of the products that are added to the upper row's results one has nothing of that row alone. */
    if (most[0] == 0) memset(to[P_S4_B22], 0, (size_t)p->half_k * sizeof(float));
  }
}

/* Where panel i of product q begins in packed B, from row k0 on. */
static const float *panel_of(const job *j, int64_t q, int64_t i, int64_t k0) {
  const hn_strassen *p = j->p;
  return j->b + q * p->half_k * p->half_n + (i * p->half_k + k0) * j->gemm->nr;
}

/* What happens to a tile when its sum is there: in the kernel... */
static void set_epilogue(const job *j, hn_gemm_tile *t, int64_t row, int64_t column) {
  const hn_epilogue *e = j->e;
  t->flags = e->flags, t->lo = e->lo, t->hi = e->hi, t->slope = e->slope;
  t->ldr = e->residual_view.pixel;
  if (e->bias) t->bias = e->bias + column;
  if (e->residual) t->residual = e->residual + (j->row + row) * e->residual_view.pixel + column;
}

/* ...and behind it. */
static void finish(const job *j, int64_t row, int64_t rows, int64_t column) {
  if (j->e->n_post)
    hn_epilogue_post_pixels(j->e, j->c + row * j->p->n + column, j->p->n, rows, (size_t)column, j->gemm->nr,
                            0, 0, 0, j->row + row);
}

/* The steps of a group: a block of k of a product over one panel each. */
typedef struct place {
  int64_t q, kb, panel;
} place;

static place place_of(const hn_strassen *p, int64_t group, int64_t step) {
  const int64_t first = group * p->group, panels = hn_min(p->group, p->panels - first),
                joined = JOINED * p->k_blocks * panels;
  const int64_t each = step < joined ? JOINED : PRODUCTS - JOINED, i = step < joined ? step : step - joined;
  return (place){(step < joined ? 0 : JOINED) + i / panels % each, i / panels / each, first + i % panels};
}

/* All rows of a product over one block of k and one panel. */
static void product(const job *j, const place *at, const float *next, int64_t next_floats, float *scratch,
                    int64_t width, int64_t first) {
  const hn_strassen *p = j->p;
  const hn_gemm_ops *o = j->gemm;
  const bool joined = at->q < JOINED, last = !joined && at->kb + 1 == p->k_blocks;
  const int64_t k0 = at->kb * p->kc, k = hn_min(p->kc, p->half_k - k0);
  const int64_t lower = j->m - j->upper, rows = at->q == P_A22_T4 ? lower : j->upper;
  /* The quarter of C that the product is added to. */
  const int64_t row0 = at->q == P_A22_T4 ? j->upper : 0,
                column0 = (at->q == P_S4_B22 ? p->half_n : 0) + at->panel * o->nr;
  const float *a = j->sums + at->q * p->upper * p->ld + k0;
  const int64_t share = hn_div_up(next_floats, p->tiles);
  hn_gemm_tile t = {.lda = p->ld,
                    .b = panel_of(j, at->q, at->panel, k0),
                    .ldc = joined ? width : p->n,
                    .k = (size_t)k,
                    .segment = (size_t)k,
                    .n = o->nr,
                    .accumulate = !joined || at->kb > 0};
  if (HN_FAULT("strassen_last_k") && last && k > 1) t.k = t.segment = (size_t)(k - 1);
  for (int64_t i = 0, r = 0; r < rows; i++, r += p->tile_rows) {
    t.m = (uint32_t)hn_min(rows - r, p->tile_rows);
    t.a = a + r * p->ld;
    t.c = joined ? scratch + (at->q * j->upper + r) * width + (at->panel - first) * o->nr
                 : j->c + (row0 + r) * p->n + column0;
    t.prefetch = next ? next + hn_min(i * share, next_floats) : NULL;
    t.prefetch_end = next ? next + hn_min((i + 1) * share, next_floats) : NULL;
    if (last) set_epilogue(j, &t, row0 + r, column0);
    for (uint32_t k1 = 0; t.accumulate && k1 < t.m; k1++) { /* where the sums go when the products are done */
      __builtin_prefetch(t.c + k1 * t.ldc, 1, 3);
      __builtin_prefetch(t.c + k1 * t.ldc + 16, 1, 3);
    }
    o->tile(&t);
    if (last) finish(j, row0 + r, t.m, column0);
  }
}

/* The quarter that no product is added to. */
static void last_quarter(const job *j, int64_t panel) {
  const hn_strassen *p = j->p;
  const int64_t column = p->half_n + panel * j->gemm->nr;
  if (HN_FAULT("strassen_last_quarter")) return;
  for (int64_t r = j->upper; r < j->m; r += p->tile_rows) {
    const int64_t rows = hn_min(j->m - r, p->tile_rows);
    if (j->e->flags) {
      float *c = j->c + r * p->n + column;
      hn_gemm_tile t = {
          .a = j->a, .b = j->b, .c = c, .ldc = p->n, .m = (uint32_t)rows, .n = j->gemm->nr, .accumulate = 1};
      set_epilogue(j, &t, r, column);
      j->gemm->tile(&t);
    }
    finish(j, r, rows, column);
  }
}

static void group_task(void *arg, int64_t group, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  const int64_t nr = j->gemm->nr, first = group * p->group, panels = hn_min(p->group, p->panels - first),
                width = panels * nr, joined = JOINED * p->k_blocks * panels,
                steps = PRODUCTS * p->k_blocks * panels;
  float *scratch = j->own + thread * p->thread_floats;
  for (int64_t i = 0; i < steps; i++) {
    const place at = place_of(p, group, i);
    const bool more = i + 1 < steps || group + 1 < p->groups;
    const place then = i + 1 < steps ? place_of(p, group, i + 1) : place_of(p, group + (more ? 1 : 0), 0);
    const int64_t k0 = then.kb * p->kc;
    product(j, &at, more ? panel_of(j, then.q, then.panel, k0) : NULL, hn_min(p->kc, p->half_k - k0) * nr,
            scratch, width, first);
    if (i + 1 != joined) continue;
    for (int64_t r = 0; r < j->upper; r++) {
      float *c = j->c + r * p->n + first * nr, *below = r + j->upper < j->m ? c + j->upper * p->n : NULL;
      const float *from[JOINED];
      for (int q = 0; q < JOINED; q++) from[q] = scratch + (q * j->upper + r) * width;
      j->ops->join((float *const[]){c, c + p->half_n, below, below ? below + p->half_n : NULL}, from,
                   (size_t)width);
      /* What a row of zeros gives is 0, not what is left of its neighbour's sums. */
      const size_t bytes = (size_t)width * sizeof *c;
      if (j->most[2 * r] == 0) memset(c + p->half_n, 0, bytes);
      if (below && j->most[2 * r + 1] == 0) memset(below, 0, bytes), memset(below + p->half_n, 0, bytes);
    }
  }
  for (int64_t i = first; i < first + panels; i++) last_quarter(j, i);
}

/* The usual way: some panels of all rows, of the left or the right half. */
static void plain_task(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  const hn_gemm_ops *o = j->gemm;
  const int64_t each = hn_div_up(p->panels, PLAIN_PANELS), first = t % each * PLAIN_PANELS,
                end = hn_min(first + PLAIN_PANELS, p->panels), nr = o->nr;
  const bool right = t >= each, sums = right && !p->plain;
  float *b12 = j->own + thread * p->thread_floats;
  for (int64_t i = 0; i < 2 * p->k_blocks; i++) {
    const bool low = i >= p->k_blocks, last = i + 1 == 2 * p->k_blocks; /* of B's rows, the lower half */
    const int64_t k0 = i % p->k_blocks * p->kc, k = hn_min(p->kc, p->half_k - k0);
    const int64_t q = low ? (right ? P_S4_B22 : P_A12_B21) : right ? P_S1_T1 : P_A11_B11;
    /* B12 is T1 + B11 where it was not kept. */
    for (int64_t n = first; n < end && sums && !low; n++) {
      const float *t1 = panel_of(j, P_S1_T1, n, k0), *b11 = panel_of(j, P_A11_B11, n, k0);
      float *to = b12 + (n - first) * nr * p->kc;
      for (int64_t x = 0; x < k * nr; x++) to[x] = t1[x] + b11[x];
    }
    for (int64_t r = 0; r < j->m; r += p->tile_rows)
      for (int64_t n = first; n < end; n++) {
        const int64_t column = n * nr + (right ? p->half_n : 0);
        hn_gemm_tile tile = {.a = j->a + r * p->a_row + (low ? p->half_k : 0) + k0,
                             .lda = p->a_row,
                             .b = sums && !low ? b12 + (n - first) * nr * p->kc : panel_of(j, q, n, k0),
                             .c = j->c + r * p->n + column,
                             .ldc = p->n,
                             .k = (size_t)k,
                             .segment = (size_t)k,
                             .m = (uint32_t)hn_min(j->m - r, p->tile_rows),
                             .n = o->nr,
                             .accumulate = i > 0};
        if (last) set_epilogue(j, &tile, r, column);
        o->tile(&tile);
        if (last) finish(j, r, tile.m, column);
      }
  }
}

/* Whether A's rows may be added, whose sums are made on the way. */
static bool split(const job *j, hn_parallel_fn parallel, void *pool) {
  const int64_t upper = j->upper;
  parallel(pool, hn_div_up(upper, SPLIT_ROWS), split_task, (void *)(uintptr_t)j);
  for (int64_t r = 0; r < upper; r++)
    if (!rows_alike(j->most[2 * r], j->most[2 * r + 1])) return false;
  return true;
}

void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool) {
  job j = {.p = p,
           .gemm = hn_gemm_find(p->isa),
           .ops = hn_strassen_find(p->isa),
           .b = b,
           .e = e,
           .sums = workspace,
           .most = workspace + HN_STRASSEN_SUMS * p->upper * p->ld,
           .own = workspace + p->sums_floats};
  for (j.row = 0; j.row < p->m; j.row += p->rows) {
    j.a = a + j.row * p->a_row;
    j.c = c + j.row * p->n;
    j.m = hn_min(p->rows, p->m - j.row);
    j.upper = hn_div_up(j.m, 2);
    if (!p->plain && split(&j, parallel, pool))
      parallel(pool, p->groups, group_task, &j);
    else
      parallel(pool, 2 * hn_div_up(p->panels, PLAIN_PANELS), plain_task, &j);
  }
}
