#include "backends/cpu/product/strassen_driver.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

/* The products, in the order in which they are computed, by their operands. The first four go to scratch, where
 * the kernel joins them; the others are added to three quarters of C. */
enum { P_A11_B11, P_S1_T1, P_S2_T2, P_S3_T3, P_A12_B21, P_S4_B22, P_A22_T4, PRODUCTS, JOINED = 4 };

/* Rows or columns that meet differ by at most this factor in their largest number: what one's roundings do to the
 * other stays far below what is asked of results. Magnitudes up to LARGEST: no sum of products overflows that would
 * not without us. */
#define MOST_RATIO 64.0f
#define LARGEST 0x1p+40f

bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  if (!o || !hn_strassen_find(p->isa) || p->k % 2 || p->n % (2 * (int64_t)o->nr) || p->m < 2 || p->k < 2) return false;
  p->upper = hn_div_up(p->m, 2), p->half_k = p->k / 2, p->half_n = p->n / 2;
  p->ld = hn_fill_up(p->half_k, 16) + 16; /* an odd number of lines, mostly: rows spread over L1's sets */
  if (p->ld % 1024 == 0) p->ld += 16;
  const int64_t most = (int64_t)(l1 / 2 / sizeof(float) / o->mr);
  p->k_blocks = hn_div_up(p->half_k, most > 64 ? most : 64);
  p->kc = hn_div_up(p->half_k, p->k_blocks);
  const int64_t tiles = hn_div_up(p->upper, o->mr);
  p->tile_rows = hn_div_up(p->upper, tiles);
  p->tiles = hn_div_up(p->upper, p->tile_rows);
  p->panels = p->half_n / o->nr;
  p->group = p->panels >= 4 * (int64_t)threads ? 2 : 1;
  p->groups = hn_div_up(p->panels, p->group);
  p->sums_floats = HN_STRASSEN_SUMS * p->upper * p->ld + hn_fill_up(2 * p->upper, 16);
  const int64_t joined = JOINED * p->upper * p->group * o->nr, panel = o->nr * p->half_k;
  p->thread_floats = hn_fill_up(joined > panel ? joined : panel, 16);
  return true;
}

size_t hn_strassen_packed(const hn_strassen *p) {
  return (size_t)(PRODUCTS * p->half_k * p->half_n);
}

size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads) {
  return (size_t)(p->sums_floats + p->thread_floats * threads);
}

/* Whether two that meet may be added. NaN: no; nor what is 0 and what is not, so that the results of zeros stay
 * zeros. */
static bool alike(float a, float b) {
  if (!(a <= LARGEST && b <= LARGEST)) return false;
  return (a <= MOST_RATIO * b && b <= MOST_RATIO * a) || HN_FAULT("strassen_ratio");
}

typedef struct source {
  const float *b;
  int64_t row, col;
  float alpha;
} source;

static float at(const source *s, int64_t k, int64_t n) { return s->b[k * s->row + n * s->col] * s->alpha; }

static bool columns_alike(const hn_strassen *p, const source *s, float *most) {
  memset(most, 0, (size_t)p->n * sizeof *most);
  for (int64_t k = 0; k < p->k; k++)
    for (int64_t n = 0; n < p->n; n++) {
      const float x = fabsf(at(s, k, n));
      if (!(x <= most[n])) most[n] = x; /* keeps NaN */
    }
  for (int64_t n = 0; n < p->half_n; n++)
    if (!alike(most[n], most[n + p->half_n])) return false;
  return true;
}

/* Operand q of a quarter. In plain form what stands beside B11 is B12 itself. */
static void operand(const hn_strassen *p, const source *s, int q, float *to) {
  for (int64_t k = 0; k < p->half_k; k++)
    for (int64_t n = 0; n < p->half_n; n++, to++) {
      const float b11 = at(s, k, n), b12 = at(s, k, n + p->half_n), b21 = at(s, k + p->half_k, n),
                  b22 = at(s, k + p->half_k, n + p->half_n), t1 = b12 - b11, t2 = b22 - t1;
      switch (q) {
      case P_A11_B11: *to = b11; break;
      case P_S1_T1: *to = p->plain ? b12 : t1; break;
      case P_S2_T2: *to = t2; break;
      case P_S3_T3: *to = b22 - b12; break;
      case P_A12_B21: *to = b21; break;
      case P_S4_B22: *to = b22; break;
      default: *to = b21 - t2; /* -T4: its product is taken away */
      }
    }
}

bool hn_strassen_pack(hn_strassen *p, const float *b, int64_t row, int64_t col, float alpha, float *dst) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  const source s = {b, row, col, alpha};
  const int64_t quarter = p->half_k * p->half_n;
  float *temp = hn_malloc((size_t)(quarter > p->n ? quarter : p->n) * sizeof *temp);
  if (!temp) return false;
  p->plain = !columns_alike(p, &s, temp);
  for (int q = 0; q < PRODUCTS; q++, dst += quarter) {
    operand(p, &s, q, temp);
    hn_gemm_pack_b(o, temp, p->half_n, 1, (size_t)p->half_k, (size_t)p->half_n, 0, (size_t)p->half_n, dst);
  }
  hn_free(temp);
  return true;
}

typedef struct job {
  const hn_strassen *p;
  const hn_gemm_ops *gemm;
  const struct hn_strassen_ops *ops;
  const float *a, *b;
  float *c, *sums, *most, *own;
  const hn_epilogue *e;
} job;

enum { SPLIT_ROWS = 16 };

static void split_task(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  (void)thread;
  const int64_t end = (t + 1) * SPLIT_ROWS < p->upper ? (t + 1) * SPLIT_ROWS : p->upper;
  for (int64_t r = t * SPLIT_ROWS; r < end; r++) {
    float *to[HN_STRASSEN_SUMS];
    for (int k = 0; k < HN_STRASSEN_SUMS; k++) to[k] = j->sums + (k * p->upper + r) * p->ld;
    const float *row = j->a + r * p->a_row;
    j->ops->split(to, row, r + p->upper < p->m ? row + p->upper * p->a_row : NULL, (size_t)p->half_k,
                  j->most + 2 * r);
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
  if (e->residual) t->residual = e->residual + row * e->residual_view.pixel + column;
}

/* ...and behind it. */
static void finish(const job *j, int64_t row, int64_t rows, int64_t column) {
  if (j->e->n_post)
    hn_epilogue_post_pixels(j->e, j->c + row * j->p->n + column, j->p->n, rows, (size_t)column,
                            j->gemm->nr, 0, 0, 0, row);
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
  const int64_t lower = p->m - p->upper, rows = at->q == P_A22_T4 ? lower : p->upper;
  /* The quarter of C that the product is added to. */
  const int64_t row0 = at->q == P_A22_T4 ? p->upper : 0,
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
    t.c = joined ? scratch + (at->q * p->upper + r) * width + (at->panel - first) * o->nr
                 : j->c + (row0 + r) * p->n + column0;
    t.prefetch = next ? next + hn_min(i * share, next_floats) : NULL;
    t.prefetch_end = next ? next + hn_min((i + 1) * share, next_floats) : NULL;
    if (last) set_epilogue(j, &t, row0 + r, column0);
    o->tile(&t);
    if (last) finish(j, row0 + r, t.m, column0);
  }
}

/* The quarter that no product is added to. */
static void last_quarter(const job *j, int64_t panel) {
  const hn_strassen *p = j->p;
  const int64_t column = p->half_n + panel * j->gemm->nr;
  if (HN_FAULT("strassen_last_quarter")) return;
  for (int64_t r = p->upper; r < p->m; r += p->tile_rows) {
    const int64_t rows = hn_min(p->m - r, p->tile_rows);
    if (j->e->flags) {
      float *c = j->c + r * p->n + column;
      hn_gemm_tile t = {.a = j->a, .b = j->b, .c = c, .ldc = p->n, .m = (uint32_t)rows, .n = j->gemm->nr, .accumulate = 1};
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
    for (int64_t r = 0; r < p->upper; r++) {
      float *c = j->c + r * p->n + first * nr, *below = r + p->upper < p->m ? c + p->upper * p->n : NULL;
      const float *from[JOINED];
      for (int q = 0; q < JOINED; q++) from[q] = scratch + (q * p->upper + r) * width;
      j->ops->join((float *const[]){c, c + p->half_n, below, below ? below + p->half_n : NULL}, from,
                   (size_t)width);
    }
  }
  for (int64_t i = first; i < first + panels; i++) last_quarter(j, i);
}

/* The usual way: a panel of all columns. B12 is T1 + B11 where it was not kept. */
static void plain_task(void *arg, int64_t panel, uint32_t thread) {
  const job *j = arg;
  const hn_strassen *p = j->p;
  const hn_gemm_ops *o = j->gemm;
  const bool right = panel >= p->panels;
  const int64_t at = panel - (right ? p->panels : 0), column = panel * o->nr;
  const float *half[2] = {panel_of(j, right ? P_S1_T1 : P_A11_B11, at, 0),
                          panel_of(j, right ? P_S4_B22 : P_A12_B21, at, 0)};
  if (right && !p->plain) {
    float *b12 = j->own + thread * p->thread_floats;
    const float *b11 = panel_of(j, P_A11_B11, at, 0);
    for (int64_t i = 0; i < o->nr * p->half_k; i++) b12[i] = half[0][i] + b11[i];
    half[0] = b12;
  }
  for (int64_t r = 0; r < p->m; r += p->tile_rows)
    for (int64_t h = 0; h < 2; h++)
      for (int64_t k0 = 0; k0 < p->half_k; k0 += p->kc) {
        const int64_t k = hn_min(p->kc, p->half_k - k0);
        const bool last = h == 1 && k0 + k == p->half_k;
        hn_gemm_tile t = {.a = j->a + r * p->a_row + h * p->half_k + k0,
                          .lda = p->a_row,
                          .b = half[h] + k0 * o->nr,
                          .c = j->c + r * p->n + column,
                          .ldc = p->n,
                          .k = (size_t)k,
                          .segment = (size_t)k,
                          .m = (uint32_t)hn_min(p->m - r, p->tile_rows),
                          .n = o->nr,
                          .accumulate = h > 0 || k0 > 0};
        if (last) set_epilogue(j, &t, r, column);
        o->tile(&t);
        if (last) finish(j, r, t.m, column);
      }
}

void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool) {
  job j = {.p = p,
           .gemm = hn_gemm_find(p->isa),
           .ops = hn_strassen_find(p->isa),
           .a = a,
           .b = b,
           .c = c,
           .e = e,
           .sums = workspace,
           .most = workspace + HN_STRASSEN_SUMS * p->upper * p->ld,
           .own = workspace + p->sums_floats};
  bool plain = p->plain != 0;
  if (!plain) {
    parallel(pool, hn_div_up(p->upper, SPLIT_ROWS), split_task, &j);
    for (int64_t r = 0; r < p->upper && !plain; r++) /* the middle one of an odd number is alone */
      plain = !alike(j.most[2 * r], j.most[2 * r + (r + p->upper < p->m)]);
  }
  if (plain)
    parallel(pool, 2 * p->panels, plain_task, &j);
  else
    parallel(pool, p->groups, group_task, &j);
}
