#include "backends/cpu/product/conv_driver.h"

#include <stdbool.h>

#include "backends/cpu/product/conv_rows.h"
#include "backends/cpu/product/conv_tiles.h"
#include "base/fault.h"
#include "base/integers.h"

/* The runs of taps, [first, last) of them, that the m grid positions from p on (of one line) walk where they
 * lie: all that are not left out lie inside the image, and one distance leads from each to the next. Else
 * none. */
typedef struct walk {
  int64_t first, last;
} walk;

static walk walk_of(const hn_conv *c, const hn_tap_run *runs, const hn_conv_place *p, int64_t m) {
  const walk none = {0, 0}, all = {0, c->n_runs};
  const hn_tap_run *first = runs, *last = runs + c->n_runs - 1;
  const int64_t z = p->z * c->stride[0], y = p->y * c->stride[1], x = p->x * c->stride[2];
  if (x + first->dx < 0 || x + (m - 1) * c->stride[2] + last->dx + (int64_t)last->taps > c->in[2])
    return none;
  if (z + first->dz >= 0 && z + last->dz < c->in[0] && y + first->dy >= 0 && y + last->dy < c->in[1])
    return all;
  if (!c->skips) return none;
  walk w = {c->n_runs, 0};
  for (int64_t r = 0; r < c->n_runs; r++) {
    const int64_t at_z = z + runs[r].dz, at_y = y + runs[r].dy;
    if (at_z < 0 || at_z >= c->in[0] || at_y < 0 || at_y >= c->in[1]) continue;
    if (w.last && r > w.last) return none;
    if (!w.last) w.first = r;
    w.last = r + 1;
  }
  if (w.last <= w.first) return none;
  return c->line_taps && (w.first % c->line_taps || w.last % c->line_taps) ? none : w;
}

/* Does one of the m grid positions from p on find a tap of the run inside the image? */
static bool met(const hn_conv *c, const hn_tap_run *t, hn_conv_place p, int64_t m) {
  for (int64_t i = 0, run; i < m; i += run) {
    run = hn_min(m - i, c->grid[2] - p.x);
    const int64_t z = p.z * c->stride[0] + t->dz, y = p.y * c->stride[1] + t->dy,
                  x = p.x * c->stride[2] + t->dx;
    if (z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1] && x < c->in[2] &&
        x + (run - 1) * c->stride[2] + (int64_t)t->taps > 0)
      return true;
    p.x += run - 1;
    hn_conv_advance(c, &p);
  }
  return false;
}

/* Takes from [*k0, *k1) what the m grid positions from p on all find outside of the image, at both ends.
 * Something is left in any case: results are written by products. */
static void leave_out(const hn_conv *c, const hn_tap_run *runs, hn_conv_place p, int64_t m, int64_t *k0,
                      int64_t *k1) {
  int64_t begin = 0, from = *k1, to = *k0;
  for (int64_t r = 0, end; r < c->n_runs && begin < *k1; r++, begin = end) {
    end = begin + runs[r].taps * c->cin;
    if (end <= *k0 || !met(c, &runs[r], p, m)) continue;
    from = hn_min(from, hn_max(begin, *k0));
    to = hn_min(end, *k1);
  }
  if (HN_FAULT("conv_leaves_out_too_much") && to - from > 1) to--;
  *k1 = from < to ? to : *k0 + 1;
  *k0 = from < to ? from : *k0;
}

/* A block of weights: rows from k0 on (kc of them), columns [n0, n1). */
typedef struct block {
  int64_t k0, n0, n1;
} block;

/* What a tile pulls into L2 of the next block: one part of each panel of this block, `parts` of them make a
 * panel of that one. */
typedef struct ahead {
  const block *next;           /* NULL: none */
  int64_t index, parts, share; /* of this tile's first part; parts of a panel, floats of one */
} ahead;

static int64_t panels_of(const hn_conv_args *a, const block *b) {
  return hn_div_up(b->n1 - b->n0, a->ops->nr);
}

/* All of the next block in `tiles` tiles of this one. */
static ahead ahead_of(const hn_conv_args *a, const block *now, const block *next, int64_t tiles) {
  const int64_t parts = tiles * panels_of(a, now) / panels_of(a, next), each = parts ? parts : 1;
  return (ahead){next, 0, each, hn_div_up(a->conv->kc * a->ops->nr, each)};
}

static void set_prefetch(const hn_conv_args *a, const float *w, const ahead *f, int64_t panel,
                         hn_gemm_tile *t) {
  const hn_conv *c = a->conv;
  const int64_t part = f->index + panel, n = f->next->n0 + part / f->parts * a->ops->nr,
                rows = hn_min(c->kc, c->k - f->next->k0);
  if (n >= f->next->n1) return;
  int64_t width = (int64_t)hn_gemm_panel_width(a->ops, (size_t)c->cout, (size_t)n);
  const float *p = w + (n - a->w_column) * c->k + f->next->k0 * width;
  t->prefetch = p + hn_min(rows * width, f->share * (part % f->parts));
  t->prefetch_end = p + hn_min(rows * width, f->share * (part % f->parts + 1));
}

/* What all tiles of a block have in common: of a few hundred cycles that a tile of few products takes,
 * finding this anew takes a fifth. */
typedef struct frame {
  hn_gemm_tile t; /* filled in for each tile, its other members are the block's */
  const hn_conv_args *a;
  const block *b;
  const float *x, *w; /* of the group */
  int64_t g0, k1;     /* first channel of the output's group; the block's last value of k */
  int64_t run_k;      /* values of k in a run of taps */
  int64_t from, to;   /* columns whose taps all lie between the image's sides */
  int64_t tail;       /* width of the last panel of all columns, where nr do not fill it */
  int64_t row;        /* floats of the next tile's rows that each panel asks for, for each of this one's */
  bool last, dense, adds;
} frame;

static frame frame_of(const hn_conv_args *a, int64_t group, const block *b) {
  const hn_conv *c = a->conv;
  const hn_gemm_ops *o = a->ops;
  const hn_epilogue *e = a->epilogue;
  const int64_t step = c->stride[2], k1 = hn_min(b->k0 + c->kc, c->k);
  frame f = {.a = a,
             .b = b,
             .x = a->x + group * c->cin * c->in_k,
             .w = a->w + group * (int64_t)hn_gemm_packed_size(o, (size_t)c->cout, (size_t)c->k),
             .g0 = HN_FAULT("conv_group_offset") ? 0 : group * c->cout,
             .k1 = k1,
             .tail = hn_fill_up(c->cout % o->nr, o->vw),
             .last = k1 == c->k};
  f.t = (hn_gemm_tile){.ldc = c->out.pixel, .accumulate = b->k0 > 0};
  if (f.last) {
    f.t.flags = e->flags, f.t.lo = e->lo, f.t.hi = e->hi, f.t.slope = e->slope;
    f.t.ldr = e->residual_view.pixel;
  }
  if (c->read == HN_CONV_WALKED) {
    const hn_tap_run *last = a->runs + c->n_runs - 1;
    const int64_t dx = a->runs->dx, room = c->in[2] - (int64_t)last->taps - last->dx;
    f.run_k = c->k / c->n_runs;
    f.from = dx < 0 ? hn_div_up(-dx, step) : 0, f.to = room < 0 ? 0 : room / step + 1;
  }
  /* A contiguous activation: each panel's share of the rows that the tile after next will read, where more is
   * read than written; else the stores are what the memory system is busy with. */
  f.dense = c->read == HN_CONV_IN_PLACE && c->in_pitch == c->k && c->block_tiles == 1 && c->k >= c->cout;
  /* Else a contiguous residual, of most columns at least: the rows that the next tile adds. */
  f.adds = (f.t.flags & HN_EPI_RESIDUAL) && c->matrix && e->residual_view.pixel == c->cout &&
           (b->n1 - b->n0) * 4 >= c->cout * 3 && !HN_FAULT("conv_residual_not_asked");
  f.row = hn_div_up((f.dense ? c->k : c->cout) * o->nr, b->n1 - b->n0);
  return f;
}

/* Where the part of a tile that begins at m0 ends: pixels that can be read where they lie, whose runs of taps
 * are *w then, or those before and behind them, whose taps reach over the image's border. */
static int64_t part_end(const frame *f, const hn_conv_cursor *at, int64_t m0, int64_t m1, walk *w) {
  enum { WORTH = 4 };
  const hn_conv *c = f->a->conv;
  *w = (walk){0, 0};
  if (c->read != HN_CONV_WALKED) return m1;
  hn_conv_place p = hn_conv_cursor_pixel(c, at, m0);
  *w = walk_of(c, f->a->runs, &p, m1 - m0);
  if (w->last) return m1;
  const int64_t lo = hn_max(f->from, m0), hi = hn_min(f->to, m1);
  p.x = lo;
  if (hi - lo < WORTH) return m1;
  const walk inner = walk_of(c, f->a->runs, &p, hi - lo);
  if (!inner.last) return m1;
  if (m0 < lo) return lo;
  *w = inner;
  return hi;
}

/* Pixels m0..m1 of a tile over one block of weights. */
static void tile_part(frame *f, const hn_conv_cursor *at, int64_t m0, int64_t m1, walk in_place,
                      const ahead *next, const hn_conv_room *bring) {
  const hn_conv_args *a = f->a;
  const int64_t n0 = f->b->n0, n1 = f->b->n1;
  const hn_conv *c = a->conv;
  const hn_gemm_ops *o = a->ops;
  const hn_epilogue *e = a->epilogue;
  int64_t k0 = f->b->k0, k1 = f->k1, panel = 0;
  hn_conv_place p = hn_conv_cursor_pixel(c, at, m0);
  if (in_place.last)
    k0 = in_place.first * f->run_k, k1 = in_place.last * f->run_k;
  else if (c->skips)
    leave_out(c, a->runs, p, m1 - m0, &k0, &k1);
  const float *x = f->x;
  hn_gemm_tile *t = &f->t;
  t->k = t->segment = (size_t)(k1 - k0);
  t->m = (uint32_t)(m1 - m0);
  t->skip = t->jump = 0, t->turns = 0;
  if (c->read == HN_CONV_COPIED_ONCE) {
    t->lda = hn_conv_copied_ld(c);
    t->a = bring->floats + (hn_conv_number(c, at, m0) - bring->first) * t->lda + k0;
  } else if (c->read == HN_CONV_IN_PLACE) {
    t->a = x + p.n * c->in_batch + ((p.z * c->in[1] + p.y) * c->in[2] + p.x) * c->in_pitch + k0;
    t->lda = c->in_pitch;
  } else if (c->read == HN_CONV_PADDED) {
    const int64_t row = c->padded_size[1] * c->cin;
    t->a = bring->floats + (p.n * c->padded_size[0] + p.y * c->stride[1]) * row + p.x * c->stride[2] * c->cin;
    t->lda = c->stride[2] * c->cin;
    const int64_t line = c->tap_step ? c->line_taps : 1; /* runs in a line of taps */
    t->segment = (size_t)(line * a->runs->taps * c->cin);
    t->skip = (c->n_runs > line ? a->runs[line].dy - a->runs[0].dy : 0) * row - (ptrdiff_t)t->segment;
  } else if (in_place.last) {
    const hn_tap_run *r = a->runs + (HN_FAULT("conv_walks_lines_left_out") ? 0 : in_place.first);
    t->a = x + p.n * c->in_batch +
           (((p.z * c->stride[0] + r->dz) * c->in[1] + p.y * c->stride[1] + r->dy) * c->in[2] +
            p.x * c->stride[2] + r->dx) *
               c->in_pitch;
    t->lda = c->stride[2] * c->in_pitch;
    t->segment = (size_t)(r->taps * c->cin);
    t->skip = (c->tap_step ? c->tap_step : c->run_step) - (ptrdiff_t)t->segment;
    t->turns = (size_t)c->line_taps;
    t->jump = c->run_step - (c->line_taps - 1) * c->tap_step - (ptrdiff_t)t->segment;
    if (HN_FAULT("conv_line_jump")) t->jump = t->skip;
  } else {
    t->lda = hn_conv_gather(c, a->runs, x, p, m1 - m0, k0, k1, bring->floats);
    t->a = bring->floats;
  }
  float *y = a->y + hn_view_at(&c->out, p.n, p.z, p.y, p.x) + f->g0;
  const float *residual =
      e->residual ? e->residual + hn_view_at(&e->residual_view, p.n, p.z, p.y, p.x) + f->g0 : NULL;
  const int64_t floats = (m1 - m0) * (f->dense ? c->k : c->cout), share = (m1 - m0) * f->row;
  for (int64_t n = n0; n < n1; n += o->nr, panel++) {
    const int64_t width = c->cout - n >= o->nr ? o->nr : f->tail;
    t->n = (uint32_t)hn_min(n1 - n, o->nr);
    t->b = f->w + (n - a->w_column) * c->k + k0 * width;
    t->c = y + n;
    t->bias = f->last && e->bias ? e->bias + f->g0 + n : NULL;
    t->residual = f->last && residual ? residual + n : NULL;
    t->prefetch = t->prefetch_end = NULL;
    if (next->next)
      set_prefetch(a, f->w, next, panel, t);
    else if (f->dense) {
      t->prefetch = t->a + 2 * floats + panel * share;
      t->prefetch_end = at->tile + 3 < c->tiles ? t->prefetch + share : NULL;
    } else if (f->adds) {
      t->prefetch = residual + floats + panel * share;
      t->prefetch_end = at->tile + 2 < c->tiles ? t->prefetch + share : NULL;
    }
    o->tile(t);
  }
  for (int64_t i = 0, run; f->last && e->n_post && i < m1 - m0; i += run, hn_conv_advance(c, &p)) {
    run = hn_min(m1 - m0 - i, c->grid[2] - p.x);
    hn_epilogue_post_pixels(e, y + n0 + i * c->out.pixel, c->out.pixel, run, (size_t)(f->g0 + n0),
                            (size_t)(n1 - n0), p.n, p.z, p.y, p.x);
    p.x += run - 1;
  }
}

static void tile_row(frame *f, const hn_conv_cursor *at, const ahead *next, const hn_conv_room *bring) {
  static const ahead none = {0};
  const int64_t m1 = hn_conv_cursor_end(f->a->conv, at);
  walk w;
  for (int64_t m0 = at->m, end; m0 < m1; m0 = end, next = &none) {
    end = part_end(f, at, m0, m1, &w);
    tile_part(f, at, m0, end, w, next, bring);
  }
}

/* Walks the blocks of weights: K innermost, then columns. The first are narrow: nobody has pulled in what
 * they begin with. */
static bool next_block(const hn_conv *c, int64_t n_end, block *b) {
  b->k0 += c->kc;
  if (b->k0 < c->k) return true;
  const int64_t width = hn_min(2 * (b->n1 - b->n0), c->block_columns);
  b->k0 = 0;
  b->n0 = b->n1;
  b->n1 = hn_min(b->n0 + width, n_end);
  return b->n0 < n_end;
}

/* May rows go through the strip kernels, which know one distance between rows and no pixels? */
static bool in_strips(const hn_conv_args *a, const hn_conv_cursor *at) {
  return a->strip && a->conv->read == HN_CONV_IN_PLACE && (at->even || !hn_conv_runs_on(a->conv));
}

/* Pixels m0..m1 of a line, panel after panel. What as many behind them read is asked for meanwhile. */
static void strip_of(const frame *f, hn_strip *s, const hn_conv_cursor *at, int64_t m0, int64_t m1) {
  const hn_conv_args *a = f->a;
  const hn_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  const int64_t n0 = f->b->n0, n1 = f->b->n1;
  const hn_conv_place p = hn_conv_cursor_pixel(c, at, m0);
  float *y = a->y + hn_view_at(&c->out, p.n, p.z, p.y, p.x) + f->g0;
  const float *residual =
      e->residual ? e->residual + hn_view_at(&e->residual_view, p.n, p.z, p.y, p.x) + f->g0 : NULL;
  s->a = f->x + p.n * c->in_batch + ((p.z * c->in[1] + p.y) * c->in[2] + p.x) * c->in_pitch;
  s->m = (size_t)(m1 - m0) - (HN_FAULT("conv_strip_last_row") && m1 - m0 > 1);
  const float *next = f->dense ? s->a + (m1 - m0) * c->k : f->adds ? residual + (m1 - m0) * c->cout : NULL;
  const int64_t share = hn_min(m1 - m0, c->line - m1) * f->row;
  for (int64_t n = n0, panel = 0; n < n1; n += a->ops->nr, panel++) {
    if (next) s->prefetch = next + panel * share, s->prefetch_end = s->prefetch + share;
    s->n = (uint32_t)hn_min(n1 - n, a->ops->nr);
    s->b = f->w + (n - a->w_column) * c->k;
    s->c = y + n;
    s->bias = e->bias ? e->bias + f->g0 + n : NULL;
    s->residual = residual ? residual + n : NULL;
    a->strip->run(s);
  }
  if (e->n_post)
    hn_epilogue_post_pixels(e, y + n0, c->out.pixel, m1 - m0, (size_t)(f->g0 + n0), (size_t)(n1 - n0), p.n,
                            p.z, p.y, p.x);
}

/* Tiles up to t1, a few at a time, whose values stay in L1 while panels pass. */
static void strips(const frame *f, hn_conv_cursor *at, int64_t t1) {
  enum { NEAR = 4096 }; /* values */
  const hn_conv *c = f->a->conv;
  const hn_epilogue *e = f->a->epilogue;
  hn_strip s = {.lda = c->in_pitch,
                .ldc = c->out.pixel,
                .k = (size_t)c->k,
                .segment = (size_t)c->k,
                .flags = e->flags,
                .lo = e->lo,
                .hi = e->hi,
                .slope = e->slope,
                .ldr = e->residual_view.pixel,
                .far = true};
  const int64_t rows = hn_max(NEAR / hn_max(c->k, 1), 1);
  while (at->tile < t1) {
    const hn_conv_cursor first = *at;
    int64_t end;
    do {
      end = hn_conv_cursor_end(c, at);
      hn_conv_cursor_next(c, at);
    } while (at->tile < t1 && at->line == first.line && end - first.m < rows);
    strip_of(f, &s, &first, first.m, end);
  }
}

void hn_conv_block(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, int64_t n0, int64_t n1,
                   float *scratch) {
  const hn_conv *c = a->conv;
  hn_conv_cursor first = t0 < t1 ? hn_conv_cursor_at(a, t0) : (hn_conv_cursor){0}, at = first;
  int64_t width = c->first_columns;
  hn_conv_room bring = {scratch, 0};
  if (c->block_tiles == 1 && c->read != HN_CONV_COPIED_ONCE && c->kc >= c->k &&
      width >= n1 - n0) { /* one block, the same for all tiles */
    const block all = {0, n0, n1};
    const ahead none = {0};
    frame shared = frame_of(a, group, &all);
    if (t0 < t1 && in_strips(a, &at)) {
      strips(&shared, &at, t1);
      return;
    }
    for (; at.tile < t1; hn_conv_cursor_next(c, &at)) tile_row(&shared, &at, &none, &bring);
    return;
  }
  for (int64_t b0 = t0; b0 < t1; b0 += c->block_tiles, first = at, width = c->block_columns) {
    int64_t b1 = hn_min(b0 + c->block_tiles, t1);
    block b = {0, n0, hn_min(n0 + width, n1)};
    if (c->read == HN_CONV_COPIED_ONCE) hn_conv_copy_rows(a, group, &first, b1, &bring);
    for (bool more = true; more;) {
      block next = b;
      more = next_block(c, n1, &next);
      if (HN_FAULT("conv_skip_last_k_block") && b.k0 > 0 && b.k0 + c->kc >= c->k) {
        b = next;
        continue;
      }
      const bool again = !more && b1 < t1 && !c->resident; /* the first block, for the next rows */
      if (again) next = (block){0, n0, hn_min(n0 + c->block_columns, n1)};
      const bool pull = c->block_tiles > 1 && (more || again) && !(c->resident && b0 > t0);
      ahead f = pull ? ahead_of(a, &b, &next, b1 - b0) : (ahead){0};
      const int64_t panels = panels_of(a, &b);
      frame shared = frame_of(a, group, &b);
      at = first;
      for (; at.tile < b1; hn_conv_cursor_next(c, &at), f.index += panels) tile_row(&shared, &at, &f, &bring);
      b = next;
    }
  }
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hn_conv_args *a = arg;
  const hn_conv *c = a->conv;
  int64_t m = i % c->m_tasks, rest = i / c->m_tasks, n = rest % c->n_tasks, group = rest / c->n_tasks;
  int64_t t0 = m * c->tiles / c->m_tasks, t1 = (m + 1) * c->tiles / c->m_tasks;
  int64_t n0 = n * c->n_panels / c->n_tasks * a->ops->nr,
          n1 = (n + 1) * c->n_panels / c->n_tasks * a->ops->nr;
  if (HN_FAULT("conv_last_tile") && m == c->m_tasks - 1) t1--;
  float *scratch = a->scratch + thread * hn_conv_scratch(c, a->ops);
  if (c->read == HN_CONV_PADDED) hn_conv_pad_rows(a, group, t0, t1, scratch);
  hn_conv_block(a, group, t0, t1, n0, hn_min(n1, c->cout), scratch);
}

void hn_conv_exec(const hn_conv_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_conv *c = a->conv;
  if (c->tiles == 0 || c->cout == 0 || c->groups == 0) return;
  parallel(pool, c->groups * c->m_tasks * c->n_tasks, task, (void *)(uintptr_t)a);
}
