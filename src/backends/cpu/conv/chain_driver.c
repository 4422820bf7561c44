#include "backends/cpu/conv/chain_driver.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

const hn_strip_ops *hn_strip_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("strip", "f32", isa);
  return k ? k->ops : NULL;
}

/* ------------------------------------------------------------------ one task */

typedef hn_chain_work work;

/* The same when paired. */
static uint16_t *pair_row(const work *w, int64_t panel, int64_t row) {
  const hn_chain *c = w->a->chain;
  const int64_t slot = c->slots > 1 ? panel - w->p0 : 0;
  return (uint16_t *)(void *)w->ring + slot * c->ring_panel + row % c->ring_rows * c->ring_row;
}

static void set_epilogue(hn_strip *s, const hn_epilogue *e) {
  s->flags = e->flags, s->lo = e->lo, s->hi = e->hi, s->slope = e->slope;
}

/* A narrow input in front of the depthwise convolution: rows [h0, h1) of a panel, in f32, into the ring. */
static void widen_rows(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  const size_t live = (size_t)hn_chain_live(c, panel, panel + 1);
  for (int64_t h = h0; h < h1; h++) {
    float *to = hn_chain_ring_row(w, panel, h) + c->pad[1] * c->width;
    const int64_t at = hn_view_at(&c->x, w->n, 0, h, 0) + panel * c->width;
    for (int64_t x = 0; x < c->in[1]; x++)
      w->a->widen(to + x * c->width, hn_chain_x_at(w->a, at + x * c->x.pixel), live);
  }
}

/* The image rows that hidden row h is made of, with zeros where they stand for padding. */
static void bring_window(const work *w, int64_t h) {
  const hn_chain *c = w->a->chain;
  for (int64_t v = 0; v < c->e_kernel[0]; v++) {
    int64_t y = h * c->e_stride[0] + v - c->e_pad[0], left = c->e_pad[1] * c->cin;
    float *to = w->rows + v * c->e_row;
    bool inside = y >= 0 && y < c->image[0];
    int64_t n = inside ? hn_min(c->image[1] * c->cin, c->e_row - left) : 0;
    const void *from = inside ? hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, y, 0)) : NULL;
    memset(to, 0, (size_t)hn_min(left, c->e_row) * sizeof *to);
    if (n > 0 && c->x.pixel == c->cin && c->narrow_in)
      w->a->widen(to + left, from, (size_t)n);
    else if (n > 0 && c->x.pixel == c->cin)
      memcpy(to + left, from, (size_t)n * sizeof *to);
    else
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = i / c->cin * c->x.pixel + i % c->cin;
        if (c->narrow_in)
          w->a->widen(to + left + i, (const uint16_t *)from + at, 1);
        else
          to[left + i] = ((const float *)from)[at];
      }
    if (left + hn_max(n, 0) < c->e_row)
      memset(to + left + hn_max(n, 0), 0, (size_t)(c->e_row - left - hn_max(n, 0)) * sizeof *to);
  }
}

/* bring_window in bf16. */
static void bring_window_pairs(const work *w, int64_t h) {
  const hn_chain *c = w->a->chain;
  for (int64_t v = 0; v < c->e_kernel[0]; v++) {
    const int64_t y = h * c->e_stride[0] + v - c->e_pad[0], left = hn_min(c->e_pad[1] * c->cin, c->e_row);
    uint16_t *to = (uint16_t *)(void *)w->rows + v * c->e_row;
    const bool inside = y >= 0 && y < c->image[0];
    const int64_t n = inside ? hn_max(0, hn_min(c->image[1] * c->cin, c->e_row - left)) : 0;
    const void *from = inside ? hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, y, 0)) : NULL;
    memset(to, 0, (size_t)left * sizeof *to);
    if (n > 0 && c->x.pixel == c->cin && c->narrow_in)
      memcpy(to + left, from, (size_t)n * sizeof *to);
    else if (n > 0 && c->x.pixel == c->cin)
      w->a->bf16->split(from, (size_t)n, to + left, 0, 1);
    else
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = i / c->cin * c->x.pixel + i % c->cin;
        if (c->narrow_in)
          to[left + i] = ((const uint16_t *)from)[at];
        else
          w->a->bf16->split((const float *)from + at, 1, to + left + i, 0, 1);
      }
    memset(to + left + n, 0, (size_t)(c->e_row - left - n) * sizeof *to);
  }
}

static hn_bf16_tile pairs_tile(const hn_chain *c, const int32_t *step, int64_t channels) {
  return (hn_bf16_tile){.step = step,
                        .steps = (size_t)hn_chain_steps_of(channels),
                        .short_from = (size_t)hn_chain_steps_of(channels) - 1,
                        .short_pairs = hn_bf16_short_pairs(channels),
                        .row = c->unit,
                        .parts = 1};
}

/* Hidden rows [h0, h1) of a panel into the ring of pairs; bring_pairs has been called for them. */
static void expand_pairs(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const int64_t n0 = panel * c->width;
  hn_bf16_tile t = pairs_tile(c, w->e_step, c->cin);
  hn_bf16_store s = hn_chain_store_of(a->e_expand, n0);
  if (c->direct) t.row = c->x.pixel;
  t.n = s.n = (uint32_t)hn_chain_live(c, panel, panel + 1);
  t.m = (uint32_t)((h1 - h0) * c->in[1]);
  t.a = w->e_from;
  t.b = (const uint16_t *)a->w_expand + hn_bf16_packed((size_t)n0, t.steps, 1);
  s.flags |= HN_BF16_PAIRS;
  s.at = w->at;
  s.c = pair_row(w, panel, 0);
  a->bf16->fused(&t, &s);
}

/* The same of a window. */
static void expand_window_pairs(const work *w, int64_t h0, int64_t h1) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  hn_bf16_tile t = {.a = (const uint16_t *)(const void *)w->rows,
                    .step = w->e_step,
                    .steps = (size_t)hn_chain_window_steps(c),
                    .short_pairs = (uint32_t)c->e_width / 2,
                    .row = c->e_stride[1] * c->cin,
                    .m = (uint32_t)c->in[1]};
  for (int64_t h = h0; h < h1; h++) {
    bring_window_pairs(w, h);
    for (int64_t p = w->p0; p < w->p1; p++) {
      hn_bf16_store s = hn_chain_store_of(a->e_expand, p * c->width);
      s.flags |= HN_BF16_PAIRS;
      s.ldc = c->width;
      s.c = pair_row(w, p, h) + c->pad[1] * c->width;
      t.n = s.n = (uint32_t)hn_chain_live(c, p, p + 1);
      t.b = (const uint16_t *)a->w_expand + hn_bf16_packed((size_t)(p * c->width), t.steps, 1);
      a->bf16->fused(&t, &s);
    }
  }
}

/* Where the pixels of hidden rows [h0, h1) lie in a panel's ring. */
static void find_places(const work *w, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  int32_t *at = w->at;
  for (int64_t h = h0; h < h1; h++) {
    const int64_t row = h % c->ring_rows * c->ring_row + c->pad[1] * c->width;
    for (int64_t x = 0; x < c->in[1]; x++) *at++ = (int32_t)(row + x * c->width);
  }
}

/* What the group's hidden rows [h0, h1) are made of, and where their pixels go. */
static void bring_pairs(work *w, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  w->e_from = w->e_parts;
  if (c->direct)
    w->e_from = hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, h0, 0));
  else
    hn_chain_bring_rows(w, h0, h1);
  find_places(w, h0, h1);
}

/* Without a convolution in front: rows [h0, h1) of a panel of the input, into the ring. */
static void pair_rows(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain *c = w->a->chain;
  for (int64_t h = h0; h < h1; h++)
    w->a->pairs->pair(hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, h, 0) + panel * c->width), c->x.pixel,
                      (size_t)c->in[1], (size_t)hn_chain_live(c, panel, panel + 1),
                      pair_row(w, panel, h) + c->pad[1] * c->width);
}

/* The group's rows of a panel from the ring to the operand of the last convolution. */
static void depthwise_pairs(const work *w, int64_t panel) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_depthwise;
  const uint16_t *rows[HN_CHAIN_ROWS];
  const int64_t c0 = panel * c->width;
  hn_depthwise_bf16_row r = {.x = rows,
                             .w_tap = c->w_tap,
                             .taps = (uint32_t)c->kernel[1],
                             .stride = c->stride[1],
                             .dilation = c->dilation[1],
                             .y = w->p_parts + panel * c->p_block,
                             .n = c->out[1],
                             .channels = (uint32_t)hn_chain_live(c, panel, panel + 1),
                             .flags = e->flags,
                             .lo = e->lo,
                             .hi = e->hi,
                             .slope = e->slope,
                             .bias = e->bias ? e->bias + c0 : NULL};
  for (int64_t y = w->g0; y < w->g1; y++, r.y += c->out[1] * c->unit) {
    /* Kernel rows [v0, v1) lie inside the image. */
    const int64_t top = y * c->stride[0] - c->pad[0];
    int64_t v0 = 0, v1 = c->kernel[0];
    while (v0 < v1 && top + v0 * c->dilation[0] < 0) v0++;
    while (v1 > v0 && top + (v1 - 1) * c->dilation[0] >= c->in[0]) v1--;
    r.rows = (uint32_t)(v1 - v0);
    for (int64_t v = v0; v < v1; v++) {
      int64_t h = top + v * c->dilation[0];
      if (HN_FAULT("chain_pair_row") && h > 0) h--;
      rows[v - v0] = pair_row(w, panel, h);
    }
    r.w = a->w_depthwise + v0 * c->kernel[1] * c->w_tap + c0;
    a->pairs->row(&r);
  }
}

/* project_block when paired. */
static void project_pairs(const work *w) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  const int64_t pixels = (w->g1 - w->g0) * c->out[1], pitch = c->y.pixel;
  const int64_t y0 = hn_view_at(&c->y, w->n, 0, w->g0, 0);
  const int64_t r0 = e->flags & HN_EPI_RESIDUAL ? hn_view_at(&e->residual_view, w->n, 0, w->g0, 0) : 0;
  const bool later = c->narrow_out && e->n_post; /* more operations: in f32, where the sums are */
  /* A panel of weights that half of L1 holds meets all pixels; else some pixels meet all weights. */
  const bool small = c->hidden * HN_BF16_PANEL * 2 <= 32 << 10 && !later;
  const int64_t block = small ? pixels : hn_chain_tile_rows(w, pixels);
  hn_bf16_tile t = pairs_tile(c, w->p_step, c->hidden);
  if (HN_FAULT("chain_last_step")) t.steps -= t.steps > 1;
  for (int64_t p = 0; p < pixels; p += block)
    for (int64_t n = 0; n < c->cout; n += HN_BF16_PANEL) {
      hn_bf16_store s = hn_chain_store_of(e, n);
      t.a = w->p_parts + p * c->unit;
      t.b =
          (const uint16_t *)a->w_project + hn_bf16_packed((size_t)n, (size_t)hn_chain_steps_of(c->hidden), 1);
      t.m = s.m = (uint32_t)hn_min(block, pixels - p);
      t.n = s.n = (uint32_t)hn_min(c->cout - n, HN_BF16_PANEL);
      s.c = later ? w->sums : hn_chain_y_at(a, y0 + p * pitch + n);
      s.ldc = later ? HN_BF16_PANEL : pitch;
      if (e->residual) s.residual = e->residual + r0 + p * s.ldr + n;
      if (e->narrow_residual) s.residual = e->narrow_residual + r0 + p * s.ldr + n;
      if (e->narrow_residual) s.flags |= HN_BF16_NARROW_RESIDUAL;
      if (c->narrow_out && !later) s.flags |= HN_BF16_NARROW_C;
      a->bf16->fused(&t, &s);
      if (later) hn_chain_post_and_narrow(w, w->sums, p, n, s.m, t.n);
    }
  for (int64_t r = w->g0; r < w->g1 && e->n_post && !later; r++)
    hn_chain_post(e, hn_chain_y_at(a, y0 + (r - w->g0) * c->out[1] * pitch), pitch, 0, c->cout, w->n, r, 0,
                  c->out[1]);
}

static void group_pairs(work *w, int64_t from, int64_t hi) {
  const hn_chain *c = w->a->chain;
  if (c->window)
    expand_window_pairs(w, from, hi);
  else if (c->expand && hi > from)
    bring_pairs(w, from, hi);
  for (int64_t p = w->p0; p < w->p1; p++) {
    if (c->expand && !c->window && hi > from)
      expand_pairs(w, p, from, hi);
    else if (!c->expand)
      pair_rows(w, p, from, hi);
    depthwise_pairs(w, p);
  }
  project_pairs(w);
}

/* What the products of a panel pull into L2, since weights come from afar in every run: the next panel's
 * expanding weights, then projecting ones that the block is about to meet, which are pieces of the block's
 * rows and a panel of columns. */
typedef struct ahead {
  int64_t ranges; /* of the panel; the first may be the next panel's weights */
  bool expand;    /* it is */
  int64_t piece;  /* first piece of projecting weights */
} ahead;

/* Weights that stay in L2 from group to group come from afar in the first one. */
static ahead ahead_of(const work *w, int64_t panel) {
  const hn_chain *c = w->a->chain;
  ahead f = {0};
  if (!w->first || HN_FAULT("chain_weights_not_pulled")) return f;
  const int64_t b = w->b1 - w->b0, all = c->project && !c->p_parts ? hn_div_up(c->cout, w->a->strip->nr) : 0;
  f.expand = panel + 1 < w->p1;
  f.piece = all * (panel - w->b0) / b;
  f.ranges = f.expand + all * (panel - w->b0 + 1) / b - f.piece;
  return f;
}

static void pull(const work *w, const ahead *f, int64_t panel, int64_t range, hn_strip *s) {
  const hn_chain *c = w->a->chain;
  s->prefetch = s->prefetch_end = NULL;
  if (range >= f->ranges) return;
  if (f->expand && range == 0) {
    const int64_t k = hn_chain_e_values(c);
    s->prefetch = (const float *)w->a->w_expand + (panel + 1) * c->width * k;
    s->prefetch_end = s->prefetch + hn_fill_up(hn_chain_live(c, panel + 1, panel + 2), w->a->strip->vw) * k;
    return;
  }
  const int64_t k0 = w->b0 * c->width, k = hn_chain_live(c, w->b0, w->b1);
  const int64_t n = (f->piece + range - f->expand) * w->a->strip->nr;
  const int64_t width = (int64_t)hn_gemm_panel_width(w->a->gemm, (size_t)c->cout, (size_t)n);
  s->prefetch = (const float *)w->a->w_project + n * c->hidden + k0 * width;
  s->prefetch_end = s->prefetch + k * width;
}

/* Hidden rows [h0, h1) of a panel into the ring: all at once where the input's lines follow each other, else
 * line by line. Every range of weights has its share of the pixels; those that find none are left to the
 * processor. */
static void expand_lines(const work *w, int64_t panel, int64_t h0, int64_t h1, hn_strip *s) {
  const hn_chain *c = w->a->chain;
  const hn_strip_ops *o = w->a->strip;
  const bool dense = c->x.row == c->in[1] * c->x.pixel;
  const int64_t lines = dense ? h1 - h0 : 1, pixels = lines * c->in[1], tiles = hn_div_up(pixels, o->mr);
  if (pixels <= 0) return;
  const ahead f = ahead_of(w, panel);
  const int64_t calls = hn_max(hn_min(dense ? f.ranges : hn_div_up(f.ranges, h1 - h0), tiles), 1);
  s->c = hn_chain_ring_row(w, panel, 0);
  for (int64_t h = h0, range = 0; h < h1; h += lines) {
    const float *from = hn_chain_x_at(w->a, hn_view_at(&c->x, w->n, 0, h, 0));
    for (int64_t i = 0, m0 = 0; i < calls; i++, range++) {
      const int64_t m1 = tiles * (i + 1) / calls * pixels / tiles;
      pull(w, &f, panel, range, s);
      s->a = from + m0 * s->lda;
      s->at = w->at + (h - h0) * c->in[1] + m0;
      s->m = (size_t)(m1 - m0);
      o->run(s);
      m0 = m1;
    }
  }
}

/* The same of a window: a line at a time. */
static void expand_window(const work *w, int64_t panel, int64_t h, hn_strip *s) {
  const hn_chain *c = w->a->chain;
  bring_window(w, h);
  s->a = w->rows;
  s->c = hn_chain_ring_row(w, panel, h) + c->pad[1] * c->width;
  s->m = (size_t)c->in[1];
  w->a->strip->run(s);
}

static void expand_rows(const work *w, int64_t panel, int64_t h0, int64_t h1) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_expand;
  int64_t n0 = panel * c->width, k = hn_chain_e_values(c);
  hn_strip s = {.lda = c->window ? c->e_stride[1] * c->cin : c->x.pixel,
                .b = (const float *)a->w_expand + n0 * k,
                .ldc = c->width,
                .k = (size_t)k,
                .segment = (size_t)(c->window ? c->e_kernel[1] * c->cin : k),
                .n = (uint32_t)hn_chain_live(c, panel, panel + 1)};
  s.skip = c->window ? c->e_row - (ptrdiff_t)s.segment : 0;
  set_epilogue(&s, e);
  if (e->bias) s.bias = e->bias + n0;
  if (!c->window) expand_lines(w, panel, h0, h1, &s);
  for (int64_t h = h0; h < h1; h++) {
    if (c->window) expand_window(w, panel, h, &s);
    if (e->n_post)
      hn_chain_post(e, hn_chain_ring_row(w, panel, h) + c->pad[1] * c->width, c->width, n0, s.n, 0, 0, 0,
                    c->in[1]);
  }
}

/* The group's rows of a panel through the depthwise kernel. */
static void depthwise_rows(const work *w, int64_t panel) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_depthwise;
  const float *rows[HN_CHAIN_ROWS];
  int64_t c0 = panel * c->width;
  hn_depthwise_row r = {.x = rows,
                        .x_pixel = c->ring_row ? c->width : c->x.pixel,
                        .width = c->ring_row ? c->ring_row / c->width : c->in[1],
                        .w_tap = c->w_tap,
                        .taps = (uint32_t)c->kernel[1],
                        .stride = c->stride[1],
                        .dilation = c->dilation[1],
                        .pad = c->ring_row ? 0 : c->pad[1],
                        .y_pixel = c->middle_pitch ? c->middle_pitch : c->y.pixel,
                        .n = c->out[1],
                        .channels = (size_t)hn_chain_live(c, panel, panel + 1),
                        .flags = e->flags,
                        .lo = e->lo,
                        .hi = e->hi,
                        .slope = e->slope,
                        .bias = e->bias ? e->bias + c0 : NULL,
                        .r_pixel = e->residual_view.pixel};
  const bool by_row = c->p_parts == 3;
  for (int64_t y = w->g0; y < w->g1; y++) {
    /* Kernel rows [v0, v1) lie inside the image. */
    int64_t top = y * c->stride[0] - c->pad[0], v0 = 0, v1 = c->kernel[0];
    while (v0 < v1 && top + v0 * c->dilation[0] < 0) v0++;
    while (v1 > v0 && top + (v1 - 1) * c->dilation[0] >= c->in[0]) v1--;
    r.rows = (uint32_t)(v1 - v0);
    for (int64_t v = v0; v < v1; v++) {
      int64_t h = top + v * c->dilation[0];
      if (HN_FAULT("chain_ring_row") && h > 0) h--;
      rows[v - v0] = c->ring_row ? hn_chain_ring_row(w, panel, h)
                                 : hn_chain_x_at(a, hn_view_at(&c->x, w->n, 0, h, 0) + c0);
    }
    r.w = a->w_depthwise + v0 * c->kernel[1] * c->w_tap + c0;
    r.y = c->narrow_out ? w->middle : hn_chain_y_at(a, hn_view_at(&c->y, w->n, 0, y, 0) + c0);
    if (c->project)
      r.y = w->middle + (by_row ? 0 : (y - w->g0) * c->out[1] * c->middle_pitch) +
            (c->p_parts ? 0 : panel - w->b0) * c->width;
    if (e->residual) r.residual = e->residual + hn_view_at(&e->residual_view, w->n, 0, y, 0) + c0;
    a->depthwise->row(&r);
    if (by_row) hn_chain_bring_middle(w, panel, y, y + 1);
    if (e->n_post && !c->project)
      hn_chain_post(e, r.y, r.y_pixel, c0, (int64_t)r.channels, w->n, y, 0, c->out[1]);
    for (int64_t x = 0; x < c->out[1] && c->narrow_out && !c->project; x++)
      a->narrow(hn_chain_y_at(a, hn_view_at(&c->y, w->n, 0, y, x) + c0), r.y + x * r.y_pixel, r.channels);
  }
}

/* The block's depthwise result times its rows of the project weights, into the output or the partial sum. */
static void project_block(const work *w) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  int64_t pixels = (w->g1 - w->g0) * c->out[1];
  bool whole = c->splits == 1, last = whole && w->b1 == w->p1;
  int64_t pitch = whole ? c->y.pixel : c->cout;
  float *y = whole ? hn_chain_y_at(a, hn_view_at(&c->y, w->n, 0, w->g0, 0)) : hn_chain_partials_of(w);
  const float *residual = e->residual ? e->residual + hn_view_at(&e->residual_view, w->n, 0, w->g0, 0) : NULL;
  int64_t k0 = w->b0 * c->width, k = hn_chain_live(c, w->b0, w->b1);
  const bool first = w->b0 == w->p0;
  hn_strip s = {.a = w->middle,
                .lda = c->middle_pitch,
                .ldc = pitch,
                .m = (size_t)pixels,
                .k = (size_t)k,
                .segment = (size_t)k,
                .accumulate = !first && !HN_FAULT("chain_no_accumulate")};
  if (last) {
    set_epilogue(&s, e);
    s.ldr = e->residual_view.pixel;
  }
  s.flags &= ~(uint32_t)HN_EPI_BIAS;
  if (whole && first) s.flags |= e->flags & HN_EPI_BIAS;
  for (int64_t n = 0; n < c->cout; n += a->strip->nr) {
    const int64_t width = (int64_t)hn_gemm_panel_width(a->gemm, (size_t)c->cout, (size_t)n);
    s.n = (uint32_t)hn_min(c->cout - n, a->strip->nr);
    s.b = (const float *)a->w_project + n * c->hidden + k0 * width;
    s.bias = e->bias ? e->bias + n : NULL;
    s.c = y + n;
    if (last && residual) s.residual = residual + n;
    a->strip->run(&s);
  }
  if (last && e->n_post)
    for (int64_t r = w->g0; r < w->g1; r++)
      hn_chain_post(e, y + (r - w->g0) * c->out[1] * pitch, pitch, 0, c->cout, w->n, r, 0, c->out[1]);
}

static void group(work *w) {
  const hn_chain_args *a = w->a;
  const hn_chain *c = a->chain;
  int64_t lo, hi;
  hn_chain_rows_under(c, w->g0, w->g1, &lo, &hi);
  int64_t from = hn_max(lo, w->ready);
  if (c->paired) {
    group_pairs(w, from, hi);
    w->ready = hi;
    return;
  }
  if (hn_chain_has_places(c)) find_places(w, from, hi);
  if (c->e_parts && hi > from) {
    hn_chain_bring_rows(w, from, hi);
    a->bf16->begin((uint32_t)hn_chain_tile_rows(w, (hi - from) * c->in[1]));
  }
  for (w->b0 = w->p0; w->b0 < w->p1; w->b0 = w->b1) {
    w->b1 = hn_min(w->b0 + c->block, w->p1);
    for (int64_t p = w->b0; p < w->b1; p++) {
      if (c->e_parts)
        hn_chain_expand_parts(w, p, from, hi);
      else if (c->expand)
        expand_rows(w, p, from, hi);
      else if (c->narrow_in)
        widen_rows(w, p, from, hi);
      depthwise_rows(w, p);
      if (c->p_parts && c->p_parts < 3) hn_chain_bring_middle(w, p, w->g0, w->g1);
    }
    if (!c->project) continue;
    if (c->p_parts) {
      hn_chain_project_parts(w);
      continue;
    }
    if (a->e_depthwise->n_post)
      hn_chain_post(a->e_depthwise, w->middle, c->middle_pitch, w->b0 * c->width,
                    hn_chain_live(c, w->b0, w->b1), 0, 0, 0, (w->g1 - w->g0) * c->out[1]);
    project_block(w);
  }
  w->ready = hi;
}

/* Zeros where the ring's rows stand for padding; expand_rows leaves them alone. */
static void clear_padding(const work *w) {
  const hn_chain *c = w->a->chain;
  const int64_t left = c->pad[1] * c->width, right = left + c->in[1] * c->width, size = c->paired ? 2 : 4;
  for (int64_t i = 0; i < c->slots * c->ring_rows; i++) {
    char *row = (char *)w->ring + i * c->ring_row * size;
    memset(row, 0, (size_t)(left * size));
    if (right < c->ring_row) memset(row + right * size, 0, (size_t)((c->ring_row - right) * size));
  }
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hn_chain_args *a = arg;
  const hn_chain *c = a->chain;
  int64_t band = i % c->bands, rest = i / c->bands;
  work w = {.a = a, .split = rest % c->splits, .n = rest / c->splits};
  int64_t y0 = band * c->out[0] / c->bands, y1 = (band + 1) * c->out[0] / c->bands;
  if (HN_FAULT("chain_last_row") && band == c->bands - 1) y1--;
  w.p0 = w.split * c->panels / c->splits, w.p1 = (w.split + 1) * c->panels / c->splits;
  w.ring = a->scratch + (size_t)thread * hn_chain_scratch(c);
  w.rows = w.ring + hn_chain_ring_floats(c);
  w.at = (int32_t *)(void *)w.rows;
  w.sums = w.rows + hn_chain_row_floats(c);
  w.e_parts = (uint16_t *)(void *)(w.sums + hn_chain_sum_floats(c));
  w.p_parts = (uint16_t *)(void *)(w.sums + hn_chain_sum_floats(c) + hn_chain_e_floats(c));
  w.middle = w.sums + hn_chain_sum_floats(c) + hn_chain_e_floats(c) + hn_chain_p_floats(c);
  if (c->paired && c->window)
    for (int64_t k = 0; k < hn_chain_window_steps(c); k++)
      w.e_step[k] = (int32_t)(k / c->e_steps * c->e_row + k % c->e_steps * c->e_width);
  else
    for (int64_t k = 0; c->parts && k < hn_chain_steps_of(c->cin); k++)
      w.e_step[k] = (int32_t)(k * (c->direct ? HN_BF16_STEP : c->e_block));
  for (int64_t k = 0; c->parts && k < hn_chain_steps_of(c->hidden); k++)
    w.p_step[k] = (int32_t)(k * c->p_block);
  if (c->ring_row && !HN_FAULT("chain_padding")) clear_padding(&w);
  for (w.g0 = y0; w.g0 < y1; w.g0 = w.g1) {
    w.g1 = hn_min(w.g0 + c->group, y1);
    w.first = w.g0 == y0;
    group(&w);
  }
  if (c->parts) a->bf16->end();
}

/* ------------------------------------------------------------------ partial sums */

typedef struct sum {
  const hn_chain_args *a;
  int64_t parts; /* tasks of an image */
} sum;

/* Adds up the partial sums of some output rows: a depthwise convolution of one column whose kernel rows are
 * the partial sums and whose weights are ones. */
static void add_partials(void *arg, int64_t i, uint32_t thread) {
  (void)thread;
  const sum *s = arg;
  const hn_chain_args *a = s->a;
  const hn_chain *c = a->chain;
  const hn_epilogue *e = a->e_project;
  int64_t n = i / s->parts, part = i % s->parts, image = c->out[0] * c->out[1];
  const float *rows[HN_CHAIN_ROWS];
  hn_depthwise_row r = {.x = rows,
                        .x_pixel = c->cout,
                        .width = c->out[1],
                        .w = a->ones,
                        .w_tap = (c->cout + 15) / 16 * 16,
                        .rows = (uint32_t)c->splits,
                        .taps = 1,
                        .stride = 1,
                        .dilation = 1,
                        .y_pixel = c->y.pixel,
                        .n = c->out[1],
                        .channels = (size_t)c->cout,
                        .flags = e->flags,
                        .lo = e->lo,
                        .hi = e->hi,
                        .slope = e->slope,
                        .bias = e->bias,
                        .r_pixel = e->residual_view.pixel};
  for (int64_t y = part * c->out[0] / s->parts; y < (part + 1) * c->out[0] / s->parts; y++) {
    for (int64_t k = 0; k < c->splits; k++)
      rows[k] = a->partials + ((k * c->batch + n) * image + y * c->out[1]) * c->cout;
    if (HN_FAULT("chain_lost_partial")) rows[c->splits - 1] = rows[0];
    r.y = hn_chain_y_at(a, hn_view_at(&c->y, n, 0, y, 0));
    r.residual = e->residual ? e->residual + hn_view_at(&e->residual_view, n, 0, y, 0) : NULL;
    a->depthwise->row(&r);
    if (e->n_post) hn_chain_post(e, r.y, r.y_pixel, 0, c->cout, n, y, 0, c->out[1]);
  }
}

void hn_chain_exec(const hn_chain_args *a, uint32_t threads, hn_parallel_fn parallel, void *pool) {
  const hn_chain *c = a->chain;
  if (c->batch <= 0 || c->out[0] <= 0 || c->out[1] <= 0 || c->panels == 0) return;
  parallel(pool, c->batch * c->bands * c->splits, task, (void *)(uintptr_t)a);
  if (c->splits == 1) return;
  sum s = {a, hn_max(1, hn_min(threads, c->out[0]))};
  parallel(pool, c->batch * s.parts, add_partials, &s);
}
