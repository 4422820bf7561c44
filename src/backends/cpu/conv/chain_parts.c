/* The 1x1 convolutions of a chain in bf16 parts. Of three: while tiles make one block of results, vectors
 * take the one before it on: a block's sums lie in one of two places, and are left one block late. (Not those
 * of one or two parts, whose products are short.) */
#include "backends/cpu/conv/chain_work.h"

#include "backends/cpu/product/bf16_driver.h"
#include "base/fault.h"

typedef hn_chain_work work;

/* A block of results that vectors have yet to take on: of column or panel n, from pixel p on. */
typedef struct late {
  bool there;
  int64_t n, p;
  const uint16_t *a, *b;
  float *sums;
  uint32_t m, columns;
} late;

int64_t hn_chain_tile_rows(const work *w, int64_t pixels) {
  return pixels ? hn_div_up(pixels, hn_div_up(pixels, w->a->bf16->rows)) : 1;
}

void hn_chain_bring_rows(const work *w, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  for (int64_t h = h0; h < h1; h++) {
    const void *x = hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, h, 0));
    uint16_t *to = w->e_parts + (h - h0) * c->in[1] * c->unit;
    if (c->narrow_in)
      w->a->bf16->copy_to_steps(x, c->x.pixel, (size_t)c->in[1], (size_t)c->cin, to, c->e_block);
    else
      w->a->bf16->rows_to_steps(x, c->x.pixel, (size_t)c->in[1], (size_t)c->cin, to, c->e_block,
                                (uint32_t)c->parts);
  }
}

static hn_bf16_tile tile_of(const work *w, int64_t pixels, int64_t channels, const int32_t *step) {
  const hn_chain *c = w->a->chain;
  return (hn_bf16_tile){.step = step,
                        .steps = (size_t)hn_chain_steps_of(channels),
                        .short_from = (size_t)hn_chain_steps_of(channels) - 1,
                        .short_pairs = hn_bf16_short_pairs(channels),
                        .row = c->unit,
                        .lo = HN_BF16_STEP,
                        .c = w->sums,
                        .rows = (uint32_t)hn_chain_tile_rows(w, pixels),
                        .parts = (uint32_t)c->parts};
}

/* ------------------------------------------------------------------ weights */

/* A matrix in panels: `steps` steps of K from `from` on. */
typedef struct panels {
  const uint16_t *packed;
  int64_t columns, all_steps, from, steps, parts;
} panels;

static panels expanding(const work *w) {
  const hn_chain *c = w->a->chain;
  const int64_t steps = hn_chain_steps_of(c->cin);
  return (panels){w->a->w_expand, c->hidden, steps, 0, steps, c->e_parts};
}

static panels projecting(const work *w) {
  const hn_chain *c = w->a->chain;
  return (panels){w->a->w_project, c->cout, c->panels, w->p0, w->p1 - w->p0, c->p_parts};
}

static uint32_t width_at(const panels *m, int64_t panel) {
  return (uint32_t)hn_min(m->columns - panel * HN_BF16_PANEL, HN_BF16_PANEL);
}

static const uint16_t *panel_at(const panels *m, int64_t panel) {
  return m->packed + hn_chain_weights(panel * HN_BF16_PANEL, m->all_steps, m->parts) +
         hn_chain_weights(width_at(m, panel), m->from, m->parts);
}

void hn_chain_pack_parts(const hn_bf16_ops *o, int64_t parts, const float *w, int64_t columns, int64_t k,
                         uint16_t *to) {
  const int64_t steps = hn_chain_steps_of(k);
  int64_t at[HN_CHAIN_CHANNELS];
  for (int64_t i = 0; i < steps * HN_BF16_STEP; i++) at[i] = i < k ? i : -1;
  if (parts < 3) {
    hn_bf16_pack(o, w, at, k, (size_t)steps, (size_t)columns, 0, (size_t)columns, 1, (uint32_t)parts, to);
    return;
  }
  _Alignas(64) uint16_t step[4 * HN_BF16_TILE]; /* of a panel, as f32 */
  for (int64_t n = 0; n < columns; n += HN_BF16_PANEL) {
    const size_t width = (size_t)hn_min(columns - n, HN_BF16_PANEL);
    for (int64_t s = 0; s < steps; s++, to += hn_chain_weights((int64_t)width, 1, 3)) {
      hn_bf16_pack(o, w + n * k, at + s * HN_BF16_STEP, k, 1, width, 0, width, 1, 3, step);
      hn_bf16_part(o, step, width, 1, to);
    }
  }
}

/* Call `call` of `calls` asks for its share of a panel. */
static void ask(const panels *m, int64_t panel, int64_t call, int64_t calls, hn_bf16_tile *t) {
  const size_t bytes = hn_chain_weights(width_at(m, panel), m->steps, m->parts) * 2;
  const size_t from = bytes * (size_t)call / (size_t)calls / 64 * 64;
  t->prefetch = (const char *)panel_at(m, panel) + from;
  t->prefetch_bytes = bytes * (size_t)(call + 1) / (size_t)calls - from;
}

/* ------------------------------------------------------------------ the convolution in front */

static late late_of(const hn_bf16_tile *t, int64_t n, int64_t p) {
  return (late){true, n, p, t->a, t->b, t->c, t->m, t->n};
}

/* What infinite operands make of three parts, once more. */
static void check(const work *w, const hn_bf16_tile *t, const late *l) {
  if (t->parts < 3 || HN_FAULT("chain_parts_alone") || w->a->bf16->finite(l->sums, l->m, l->columns)) return;
  hn_bf16_tile again = *t;
  again.a = l->a, again.b = l->b, again.c = l->sums, again.m = l->m, again.n = l->columns;
  hn_bf16_rows_again(w->a->bf16, &again);
}

static void leave_hidden(const work *w, const hn_bf16_tile *t, int64_t h0, late *l) {
  const hn_chain *c = w->a->chain;
  const hn_epilogue *e = w->a->e_expand;
  const int64_t n0 = l->n * c->width;
  hn_bf16_store s = hn_chain_store_of(e, n0);
  if (!l->there) return;
  check(w, t, l);
  s.n = l->columns, s.ldc = c->width;
  for (int64_t i = 0; i < l->m; i += s.m) {
    const int64_t h = h0 + (l->p + i) / c->in[1], x = (l->p + i) % c->in[1];
    s.m = (uint32_t)hn_min(c->in[1] - x, l->m - i);
    s.from = l->sums + i * HN_BF16_PANEL;
    float *to = hn_chain_ring_row(w, l->n, h) + (c->pad[1] + x) * c->width;
    s.c = to;
    w->a->bf16->store(&s);
    if (e->n_post) hn_chain_post(e, to, c->width, n0, s.n, 0, 0, 0, s.m);
  }
  l->there = false;
}

/* Of one or two parts: products are too short to wait for. */
static void expand_short(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_expand;
  int64_t n0 = panel * c->width, pixels = (h1 - h0) * c->in[1];
  hn_bf16_tile t = tile_of(w, pixels, c->cin, w->e_step);
  hn_bf16_store s = hn_chain_store_of(e, n0);
  int64_t block = t.rows * (int64_t)a->bf16->row_tiles;
  t.n = s.n = (uint32_t)hn_chain_live(c, panel, panel + 1);
  t.b = (const uint16_t *)a->w_expand + hn_bf16_packed((size_t)n0, t.steps, t.parts);
  s.ldc = c->width;
  for (int64_t p = 0; p < pixels; p += block) {
    t.a = w->e_parts + p * c->unit;
    t.m = (uint32_t)hn_min(block, pixels - p);
    a->bf16->tile(&t);
    for (int64_t i = 0; i < t.m; i += s.m) {
      int64_t h = h0 + (p + i) / c->in[1], x = (p + i) % c->in[1];
      s.m = (uint32_t)hn_min(c->in[1] - x, t.m - i);
      s.from = w->sums + i * HN_BF16_PANEL;
      float *to = hn_chain_ring_row(w, panel, h) + (c->pad[1] + x) * c->width;
      s.c = to;
      a->bf16->store(&s);
      if (e->n_post) hn_chain_post(e, to, c->width, n0, t.n, 0, 0, 0, s.m);
    }
  }
}

static void expand_triple(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  const panels m = expanding(w), behind = projecting(w);
  const int64_t pixels = (h1 - h0) * c->in[1];
  hn_bf16_tile t = tile_of(w, pixels, c->cin, w->e_step);
  const int64_t block = t.rows * (int64_t)w->a->bf16->row_tiles, calls = hn_div_up(pixels, block);
  late l = {0};
  t.n = width_at(&m, panel);
  t.b = panel_at(&m, panel);
  for (int64_t i = 0, p = 0; i < calls; i++, p += block) {
    t.a = w->e_parts + p * c->unit;
    t.m = (uint32_t)hn_min(block, pixels - p);
    t.c = w->sums + i % 2 * HN_CHAIN_SUMS;
    if (w->first && panel + 1 < w->p1)
      ask(&m, panel + 1, i, calls, &t);
    else if (w->first && c->p_parts)
      ask(&behind, 0, i, calls, &t);
    w->a->bf16->tile(&t);
    if (l.there) leave_hidden(w, &t, h0, &l);
    l = late_of(&t, panel, p);
  }
  leave_hidden(w, &t, h0, &l);
}

/* ------------------------------------------------------------------ the convolution behind */

void hn_chain_bring_middle(const work *w, int64_t panel, int64_t y0, int64_t y1) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const int64_t pixels = (y1 - y0) * c->out[1], live = hn_chain_live(c, panel, panel + 1);
  if (a->e_depthwise->n_post)
    hn_chain_post(a->e_depthwise, w->middle, c->width, panel * c->width, live, 0, 0, 0, pixels);
  a->bf16->rows_to_steps(w->middle, c->width, (size_t)pixels, (size_t)live,
                         w->p_parts + panel * c->p_block + (y0 - w->g0) * c->out[1] * c->unit, c->p_block,
                         (uint32_t)c->parts);
}

void hn_chain_post_and_narrow(const work *w, float *sums, int64_t p, int64_t n, uint32_t m,
                              uint32_t columns) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  for (int64_t i = 0, run; i < m; i += run) {
    const int64_t row = (p + i) / c->out[1], x = (p + i) % c->out[1];
    run = hn_min(c->out[1] - x, m - i);
    hn_chain_post(a->e_project, sums + i * HN_BF16_PANEL, HN_BF16_PANEL, n, columns, w->n, w->g0 + row, x,
                  run);
  }
  const hn_bf16_store narrowed = {
      .from = sums,
      .c = hn_chain_y_at(a, hn_view_at(&c->y, w->n, 0, w->g0, 0) + p * c->y.pixel + n),
      .ldc = c->y.pixel,
      .m = m,
      .n = columns,
      .flags = HN_BF16_NARROW_C};
  a->bf16->store(&narrowed);
}

static void leave_result(const work *w, const hn_bf16_tile *t, late *l) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  const int64_t n = l->n, p = l->p, y0 = hn_view_at(&c->y, w->n, 0, w->g0, 0), pitch = c->y.pixel;
  if (!l->there) return;
  check(w, t, l);
  l->there = false;
  hn_bf16_store s = hn_chain_store_of(e, n);
  s.from = l->sums, s.m = l->m, s.n = l->columns;
  if (c->splits > 1) {
    const hn_bf16_store part = {
        .from = s.from, .m = s.m, .n = s.n, .c = hn_chain_partials_of(w) + p * c->cout + n, .ldc = c->cout};
    a->bf16->store(&part);
    return;
  }
  s.c = hn_chain_y_at(a, y0 + p * pitch + n);
  s.ldc = pitch;
  const int64_t r0 = e->flags & HN_EPI_RESIDUAL ? hn_view_at(&e->residual_view, w->n, 0, w->g0, 0) : 0;
  if (e->residual) s.residual = e->residual + r0 + p * s.ldr + n;
  a->bf16->store(&s);
}

/* Of one or two parts. */
static void project_short(const work *w) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  int64_t pixels = (w->g1 - w->g0) * c->out[1], pitch = c->y.pixel;
  const int64_t y0 = hn_view_at(&c->y, w->n, 0, w->g0, 0);
  const int64_t r0 = e->flags & HN_EPI_RESIDUAL ? hn_view_at(&e->residual_view, w->n, 0, w->g0, 0) : 0;
  const bool later = c->narrow_out && e->n_post; /* more operations: in f32, where the sums are */
  hn_bf16_tile t = tile_of(w, pixels, c->hidden, w->p_step);
  int64_t block = t.rows * (int64_t)a->bf16->row_tiles;
  if (HN_FAULT("chain_last_step")) t.steps -= t.steps > 1;
  a->bf16->begin(t.rows);
  for (int64_t p = 0; p < pixels; p += block)
    for (int64_t n = 0; n < c->cout; n += HN_BF16_PANEL) {
      hn_bf16_store s = hn_chain_store_of(e, n);
      t.a = w->p_parts + p * c->unit;
      t.b = (const uint16_t *)a->w_project +
            hn_bf16_packed((size_t)n, (size_t)hn_chain_steps_of(c->hidden), (uint32_t)c->parts);
      t.m = s.m = (uint32_t)hn_min(block, pixels - p);
      t.n = s.n = (uint32_t)hn_min(c->cout - n, HN_BF16_PANEL);
      a->bf16->tile(&t);
      s.from = w->sums;
      s.c = later ? w->sums : hn_chain_y_at(a, y0 + p * pitch + n);
      s.ldc = later ? HN_BF16_PANEL : pitch;
      if (e->residual) s.residual = e->residual + r0 + p * s.ldr + n;
      if (e->narrow_residual) s.residual = e->narrow_residual + r0 + p * s.ldr + n;
      if (e->narrow_residual) s.flags |= HN_BF16_NARROW_RESIDUAL;
      if (c->narrow_out && !later) s.flags |= HN_BF16_NARROW_C;
      a->bf16->store(&s);
      if (later) hn_chain_post_and_narrow(w, w->sums, p, n, s.m, t.n);
    }
  for (int64_t r = w->g0; r < w->g1 && e->n_post && !later; r++)
    hn_chain_post(e, hn_chain_y_at(a, y0 + (r - w->g0) * c->out[1] * pitch), pitch, 0, c->cout, w->n, r, 0,
                  c->out[1]);
}

static void project_triple(const work *w) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  const panels m = projecting(w);
  const int64_t pixels = (w->g1 - w->g0) * c->out[1], columns = hn_div_up(c->cout, HN_BF16_PANEL);
  hn_bf16_tile t = tile_of(w, pixels, hn_chain_live(c, w->p0, w->p1), w->p_step + w->p0);
  const int64_t block = t.rows * (int64_t)a->bf16->row_tiles, calls = hn_div_up(pixels, block);
  late l = {0};
  if (HN_FAULT("chain_last_step")) t.steps -= t.steps > 1;
  a->bf16->begin(t.rows);
  for (int64_t panel = 0, turn = 0; panel < columns; panel++)
    for (int64_t call = 0; call < calls; call++, turn++) {
      const int64_t p = call * block;
      t.a = w->p_parts + p * c->unit;
      t.b = panel_at(&m, panel);
      t.m = (uint32_t)hn_min(block, pixels - p);
      t.n = width_at(&m, panel);
      t.c = w->sums + turn % 2 * HN_CHAIN_SUMS;
      t.prefetch_bytes = 0;
      if (w->first && panel + 1 < columns) ask(&m, panel + 1, call, calls, &t);
      a->bf16->tile(&t);
      if (l.there) leave_result(w, &t, &l);
      l = late_of(&t, panel * HN_BF16_PANEL, p);
    }
  leave_result(w, &t, &l);
  const int64_t y0 = hn_view_at(&c->y, w->n, 0, w->g0, 0);
  for (int64_t r = w->g0; r < w->g1 && e->n_post && c->splits == 1; r++)
    hn_chain_post(e, hn_chain_y_at(a, y0 + (r - w->g0) * c->out[1] * c->y.pixel), c->y.pixel, 0, c->cout,
                  w->n, r, 0, c->out[1]);
}

/* ------------------------------------------------------------------ both */

void hn_chain_expand_parts(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  if (w->a->chain->parts == 3)
    expand_triple(w, panel, h0, h1);
  else
    expand_short(w, panel, h0, h1);
}

void hn_chain_project_parts(const work *w) {
  if (w->a->chain->parts == 3)
    project_triple(w);
  else
    project_short(w);
}
