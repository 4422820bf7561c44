#include "backends/cpu/product/bf16_driver.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

typedef struct position {
  int64_t n, z, y, x;
} position;

static position locate(const hn_bf16_conv *c, int64_t p) {
  position r;
  if (p < c->q[2])
    return (position){.x = p}; /* matrices: divisions take longer than the rest of a block's call */
  r.x = p % c->q[2], p /= c->q[2];
  r.y = p % c->q[1], p /= c->q[1];
  r.z = p % c->q[0], r.n = p / c->q[0];
  return r;
}

/* ---------------------------------------------------------------- the input's way into the buffer */

/* Element i of the input, or of another tensor of either type. */
static const void *element(const void *p, int64_t i, int64_t narrow) {
  return (const char *)p + i * (narrow ? 2 : 4);
}

/* One plane: its remainders of the stride, and its place in the buffer. */
typedef struct plane {
  int64_t z, y, x;
  uint16_t *to;
} plane;

static void zeros(const hn_bf16_conv *c, uint16_t *to, int64_t count) {
  if (count <= 0) return;
  if (c->fold) {
    memset(to, 0, (size_t)(count * c->size) * 2);
    for (int64_t p = 1; p < c->parts; p++) memset(to + p * c->lo, 0, (size_t)(count * c->size) * 2);
    return;
  }
  for (int64_t b = 0; b < c->c_steps; b++) memset(to + b * c->step_values, 0, (size_t)(count * c->size) * 2);
}

/* Indices [x0, x1) of a line whose pixels begin at `line`. */
static void bring_pixels(const hn_bf16_conv *c, const hn_bf16_ops *o, const void *line, const plane *p,
                         int64_t x0, int64_t x1, uint16_t *to) {
  const int64_t s = c->stride[2], shift = c->pad[2] - p->x;
  int64_t first = shift > 0 ? hn_div_up(shift, s) : 0,
          last = c->in[2] + shift > 0 ? (c->in[2] + shift + s - 1) / s : 0;
  if (HN_FAULT("bf16_left_padding")) first = 0;
  first = hn_min(hn_max(first, x0), x1), last = hn_max(hn_min(last, x1), first);
  zeros(c, to, first - x0);
  const void *x = element(line, (first * s - shift) * c->in_pitch, c->narrow_in);
  if (last > first && c->narrow_in)
    o->copy_to_steps(x, s * c->in_pitch, (size_t)(last - first), (size_t)c->cin, to + (first - x0) * c->size,
                     c->step_values);
  else if (last > first)
    o->rows_to_steps(x, s * c->in_pitch, (size_t)(last - first), (size_t)c->cin, to + (first - x0) * c->size,
                     c->step_values, (uint32_t)c->parts);
  zeros(c, to + (last - x0) * c->size, x1 - last);
}

/* The same for a folded line: a position is stride pixels, and a pixel may start in the middle of one. */
static void bring_folded(const hn_bf16_conv *c, const hn_bf16_ops *o, const void *line, int64_t x0,
                         int64_t x1, uint16_t *to) {
  const int64_t v0 = x0 * c->size, v1 = x1 * c->size; /* in values from the line's begin */
  int64_t first = hn_min(hn_max(c->pad[2] * c->cin, v0), v1),
          last = hn_min((c->pad[2] + c->in[2]) * c->cin, v1);
  last = hn_max(first, last);
  for (int64_t p = 0; p < c->parts; p++) {
    memset(to + p * c->lo, 0, (size_t)(first - v0) * 2);
    memset(to + p * c->lo + (last - v0), 0, (size_t)(v1 - last) * 2);
  }
  const void *x = element(line, first - c->pad[2] * c->cin, c->narrow_in);
  if (c->narrow_in)
    memcpy(to + (first - v0), x, (size_t)(last - first) * sizeof *to);
  else
    o->split(x, (size_t)(last - first), to + (first - v0), c->lo, (uint32_t)c->parts);
}

/* Positions [p0, p1) of one plane; plane->to is where position p0 goes. */
static void bring_plane(const hn_bf16_conv *c, const hn_bf16_ops *o, const void *x, const plane *p,
                        int64_t p0, int64_t p1) {
  position at = locate(c, p0);
  uint16_t *to = p->to;
  while (p0 < p1) {
    int64_t count = hn_min(c->q[2] - at.x, p1 - p0);
    int64_t z = at.z * c->stride[0] + p->z - c->pad[0], y = at.y * c->stride[1] + p->y - c->pad[1];
    if (at.n >= c->batch || z < 0 || z >= c->in[0] || y < 0 || y >= c->in[1]) {
      zeros(c, to, count);
    } else {
      const void *line =
          element(x, at.n * c->in_batch + (z * c->in[1] + y) * c->in[2] * c->in_pitch, c->narrow_in);
      if (c->fold)
        bring_folded(c, o, line, at.x, at.x + count, to);
      else
        bring_pixels(c, o, line, p, at.x, at.x + count, to);
    }
    p0 += count, to += count * c->size;
    at.x = 0;
    if (++at.y == c->q[1]) {
      at.y = 0;
      if (++at.z == c->q[0]) at.z = 0, at.n++;
    }
  }
}

/* Positions [p0, p1) of all planes of a group, into a buffer that begins with position `begin`.  About a line
 * at a time, so that the planes that share its pixels find them in cache. */
static void bring(const hn_bf16_args *a, int64_t group, int64_t begin, int64_t p0, int64_t p1,
                  uint16_t *buffer) {
  const hn_bf16_conv *c = a->conv;
  const int64_t plane_values = c->step_values * (c->fold ? 1 : c->c_steps);
  const int64_t part = c->n_planes > 1 ? hn_max(c->q[2], 16) : p1 - p0;
  const void *x = element(a->x, group * c->cin, c->narrow_in);
  for (; p0 < p1; p0 += part) {
    uint16_t *to = buffer + (p0 - begin) * c->size;
    for (int64_t z = 0; z < c->stride[0]; z++)
      for (int64_t y = 0; y < c->stride[1]; y++)
        for (int64_t v = 0; v < c->stride[2]; v++) {
          if (!(c->phases[0] >> z & c->phases[1] >> y & c->phases[2] >> v & 1)) continue;
          plane p = {z, y, v, to};
          bring_plane(c, a->ops, x, &p, p0, hn_min(p0 + part, p1));
          to += plane_values;
        }
  }
}

/* ---------------------------------------------------------------- blocks of results */

/* Rows [row, row + count) of a block are pixels of one output line. */
typedef struct segment {
  uint32_t row, count;
  int64_t y, residual; /* where they begin in the result, and in what is added to it */
  position at;         /* kept where more operations follow */
} segment;

typedef struct block {
  int64_t first; /* position */
  bool beyond;   /* whole tiles of its rows reach beyond an input that is read where it lies */
  uint32_t m, n_segments;
  segment segment[HN_BF16_ROWS];
} block;

/* Pixels follow each other at one distance through the whole tensor. */
static bool is_dense(const hn_bf16_conv *c, const hn_view *v) {
  return (c->out[1] == 1 || v->row == c->out[2] * v->pixel) &&
         (c->out[0] == 1 || v->slice == c->out[1] * c->out[2] * v->pixel) &&
         (c->batch == 1 || v->batch == c->out[0] * c->out[1] * c->out[2] * v->pixel);
}

/* So do those of the result and of what is added to it, and no position lies between. */
static bool all_dense(const hn_bf16_args *a) {
  const hn_bf16_conv *c = a->conv;
  return !memcmp(c->q, c->out, sizeof c->q) && is_dense(c, &c->view) &&
         (!(a->epilogue->flags & HN_EPI_RESIDUAL) || is_dense(c, &a->epilogue->residual_view));
}

typedef struct task_at {
  const hn_bf16_args *a;
  int64_t group;
  const uint16_t *buffer; /* holds positions from `begin` on */
  int64_t begin;
  uint16_t *last; /* direct: room for a copy of the last block's rows */
  bool copied;
  int64_t n0, n1;   /* the task's columns */
  bool dense;       /* all_dense */
  uint16_t *parted; /* room for weights in three parts */
  float *wide;      /* ...and for what becomes them, of weights that are codes */
  float *waiting;   /* blocks of sums between chunks of K */
  /* Results of the last block that the next one's call takes to memory; their sums stay where they are while
   * that call fills the other half. */
  hn_bf16_store before[HN_BF16_ROWS];
  uint32_t n_before, half;
  _Alignas(64) float sums[2][HN_BF16_ROWS * HN_BF16_PANEL];
} task_at;

static void describe_block(const task_at *t, int64_t index, block *b) {
  const hn_bf16_conv *c = t->a->conv;
  const hn_epilogue *e = t->a->epilogue;
  const bool residual = e->flags & HN_EPI_RESIDUAL;
  b->first = index * c->block;
  b->m = (uint32_t)hn_min(c->block, c->positions - b->first);
  b->beyond = c->direct && b->m < c->block && b->m % c->rows;
  if (t->dense && !e->n_post) {
    b->n_segments = 1;
    b->segment[0].row = 0, b->segment[0].count = b->m;
    b->segment[0].y = b->first * c->view.pixel;
    b->segment[0].residual = residual ? b->first * e->residual_view.pixel : 0;
    return;
  }
  b->n_segments = 0;
  for (uint32_t i = 0; i < b->m;) {
    position p = locate(c, b->first + i);
    uint32_t count = t->dense ? b->m : (uint32_t)hn_min(c->q[2] - p.x, b->m - i);
    int64_t live = t->dense ? count : hn_min(c->out[2] - p.x, count);
    if (live > 0 && p.y < c->out[1] && p.z < c->out[0])
      b->segment[b->n_segments++] =
          (segment){.row = i,
                    .count = (uint32_t)live,
                    .y = hn_view_at(&c->view, p.n, p.z, p.y, p.x),
                    .residual = residual ? hn_view_at(&e->residual_view, p.n, p.z, p.y, p.x) : 0,
                    .at = p};
    i += count;
  }
}

/* One block over one panel: steps [from, to) of K. What the kernel gets is written once a panel, where it
 * reads it: to copy what has just been written waits for all results of the block before, still on their way
 * to the cache. */
typedef struct piece {
  int64_t n, from, to;
  hn_bf16_tile tile;
} piece;

/* Pixels of a line that are dense over the lines follow by count alone. */
static position step_on(const hn_bf16_conv *c, position p) {
  if (++p.x < c->out[2]) return p;
  p.x = 0;
  if (++p.y < c->out[1]) return p;
  p.y = 0;
  if (++p.z < c->out[0]) return p;
  p.z = 0, p.n++;
  return p;
}

static size_t width_at(const task_at *t, int64_t n) {
  return (size_t)hn_min(t->a->conv->cout - n, HN_BF16_PANEL);
}

/* Values of a step of the panel at column n. */
static size_t step_size(const task_at *t, int64_t n) {
  return hn_bf16_packed(width_at(t, n), 1, (uint32_t)t->a->conv->parts);
}

static const uint16_t *panel_at(const task_at *t, int64_t n, int64_t step) {
  const hn_bf16_conv *c = t->a->conv;
  return t->a->w + (size_t)t->group * hn_bf16_weights(c) +
         hn_bf16_packed((size_t)n, (size_t)c->steps, (uint32_t)c->parts) + (size_t)step * step_size(t, n);
}

/* Steps [from, to) of the panel at n in f32: as they are kept, or widened. */
static const uint16_t *kept(const task_at *t, int64_t n, int64_t from, int64_t to) {
  if (!t->a->conv->coded) return panel_at(t, n, from);
  t->a->widen(t->a->codes, n, from, to, t->wide);
  return (const uint16_t *)(const void *)t->wide;
}

/* Where a task that holds all of its columns in three parts has those of the panel at n. */
static uint16_t *parted_at(const task_at *t, int64_t n) {
  return t->parted + hn_bf16_parted((size_t)(n - t->n0), (size_t)t->a->conv->steps, 3);
}

/* Where block b's rows of A begin, a copy where whole tiles would reach beyond them. */
static const uint16_t *rows_of(task_at *t, const block *b) {
  const hn_bf16_conv *c = t->a->conv;
  const uint16_t *a = t->buffer + (b->first - t->begin) * c->size;
  if (!b->beyond) return a;
  const int64_t all = t->copied ? 0 : hn_fill_up(b->m, c->rows); /* there is one such block */
  t->copied = true;
  for (int64_t i = 0; i < all; i++)
    if (i < b->m)
      memcpy(t->last + i * c->cin, a + i * c->size, (size_t)c->cin * sizeof *a);
    else
      memset(t->last + i * c->cin, 0, (size_t)c->cin * sizeof *a);
  return t->last;
}

/* Sums go from registers to their place: of all of K, rows beside each other. */
static bool at_once(const hn_bf16_args *a, const block *b, const piece *w) {
  const hn_bf16_conv *c = a->conv;
  return a->ops->fused && c->parts == 1 && w->from == 0 && w->to == c->steps && b->n_segments == 1 &&
         b->segment[0].count == b->m;
}

/* What follows the sums is Gelu alone, which the kernel does on the way to 16 bits. */
static bool gelu_on_the_way(const hn_bf16_args *a) {
  const hn_epilogue *e = a->epilogue;
  return a->ops->gelu && a->conv->narrow_out && !(e->flags & ~(uint32_t)HN_EPI_BIAS) && e->n_post == 1 &&
         e->post[0].kind == HN_POST_ACT && e->post[0].op == HONE_PW_GELU_ERF;
}

/* Steps [from, to) of the panel at column n. */
static piece piece_of(const task_at *t, int64_t n, int64_t from, int64_t to, const uint16_t *b) {
  const hn_bf16_conv *c = t->a->conv;
  return (piece){.n = n,
                 .from = from,
                 .to = to,
                 .tile = {.step = t->a->step + from,
                          .steps = (size_t)(to - from),
                          .short_from = (size_t)hn_max(c->short_from - from, 0),
                          .short_pairs = (uint32_t)c->short_pairs,
                          .lo = c->lo,
                          .b = b,
                          .rows = (uint32_t)c->rows,
                          .n = (uint32_t)hn_min(t->n1 - n, HN_BF16_PANEL),
                          .parts = (uint32_t)c->parts,
                          .accumulate = from > 0}};
}

static void run_tile(task_at *t, hn_bf16_tile *tile) {
  tile->before = t->before, tile->n_before = t->n_before;
  t->a->ops->tile(tile);
  t->n_before = 0, t->half ^= 1;
}

/* What no block comes behind. */
static void store_before(task_at *t) {
  for (uint32_t i = 0; i < t->n_before; i++) t->a->ops->store(&t->before[i]);
  t->n_before = 0;
}

/* A store whose results go through more operations: in f32, in their place or where the sums are. */
static void store_with_posts(task_at *t, const hn_bf16_tile *tile, const segment *s, hn_bf16_store *out,
                             int64_t column, bool whole) {
  const hn_bf16_args *a = t->a;
  const hn_bf16_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  float *sums = tile->c + s->row * HN_BF16_PANEL;
  void *y = out->c;
  const bool later = c->narrow_out && e->n_post;
  if (later) out->c = sums, out->ldc = HN_BF16_PANEL, out->flags &= ~(uint32_t)HN_BF16_NARROW_C;
  if (whole)
    a->ops->fused(tile, out);
  else
    a->ops->store(out);
  position p = s->at;
  for (int64_t j = 0, run; j < s->count && e->n_post; j += run, p = step_on(c, p)) {
    run = hn_min(s->count - j, c->out[2] - p.x);
    hn_epilogue_post_pixels(e, (float *)out->c + j * (int64_t)out->ldc, (int64_t)out->ldc, run,
                            (size_t)column, tile->n, p.n, p.z, p.y, p.x);
    p.x += run - 1;
  }
  if (!later) return;
  const hn_bf16_store narrowed = {
      .from = sums, .c = y, .ldc = c->view.pixel, .m = s->count, .n = tile->n, .flags = HN_BF16_NARROW_C};
  a->ops->store(&narrowed);
}

static void run_block(task_at *t, const block *b, piece *w) {
  const hn_bf16_args *a = t->a;
  const hn_bf16_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  hn_bf16_tile *tile = &w->tile;
  const int64_t n = w->n;
  const uint32_t width = tile->n;
  const int64_t column = t->group * c->cout + n;
  const bool whole = at_once(a, b, w);
  tile->a = whole ? t->buffer + (b->first - t->begin) * c->size : rows_of(t, b);
  tile->row = tile->a == t->last ? c->cin : c->size;
  tile->m = b->m;
  if (c->chunk == c->steps) tile->c = t->sums[t->half];
  if (!whole) run_tile(t, tile);
  if (w->to < c->steps) return;
  if (c->parts == 3)
    hn_bf16_again(a, tile, n, c->coded ? NULL : (const float *)(const void *)panel_at(t, n, 0), tile->c);
  const bool gelu = whole && gelu_on_the_way(a), wait = a->ops->meanwhile && !whole && !e->n_post;
  for (uint32_t i = 0; i < b->n_segments; i++) {
    const segment *s = &b->segment[i];
    hn_bf16_store *out = &t->before[t->n_before];
    out->ldc = c->view.pixel, out->ldr = e->residual_view.pixel;
    out->n = width, out->m = s->count;
    out->flags = e->flags | (e->narrow_residual ? HN_BF16_NARROW_RESIDUAL : 0) |
                 (c->narrow_out ? HN_BF16_NARROW_C : 0) | (gelu ? HN_BF16_GELU : 0);
    out->lo = e->lo, out->hi = e->hi, out->slope = e->slope;
    out->bias = e->bias ? e->bias + column : NULL;
    out->from = tile->c + s->row * HN_BF16_PANEL;
    out->c = (char *)a->y + (s->y + column) * (c->narrow_out ? 2 : 4);
    out->at = NULL;
    const int64_t residual = s->residual + column;
    if (e->residual) out->residual = e->residual + residual;
    if (e->narrow_residual) out->residual = e->narrow_residual + residual;
    if (wait)
      t->n_before++;
    else if (whole && (gelu || !e->n_post))
      a->ops->fused(tile, out);
    else
      store_with_posts(t, tile, s, out, column, whole);
  }
}

/* Columns and steps of K that all blocks go through before the next ones. */
typedef struct stretch {
  int64_t n, from, to; /* none: from == to */
} stretch;

static stretch stretch_at(const task_at *t, int64_t n, int64_t from) {
  const hn_bf16_conv *c = t->a->conv;
  return (stretch){n, from, hn_min(from + c->chunk, c->steps)};
}

static stretch next_stretch(const task_at *t, stretch s) {
  const hn_bf16_conv *c = t->a->conv;
  if (s.from == s.to) return s;
  if (s.n + HN_BF16_PANEL < t->n1) return stretch_at(t, s.n + HN_BF16_PANEL, s.from);
  return s.to < c->steps ? stretch_at(t, t->n0, s.to) : (stretch){s.n, s.to, s.to};
}

static size_t stretch_bytes(const task_at *t, stretch s) {
  return (size_t)(s.to - s.from) * step_size(t, s.n) * 2;
}

/* Blocks [b0, b1) are one call of `fused` for each panel, where nothing is left to do for a block: a call of
 * 13 rows spends 2 % of its time on the way there. */
static bool run_together(task_at *t, int64_t b0, int64_t b1) {
  const hn_bf16_args *a = t->a;
  const hn_bf16_conv *c = a->conv;
  if (c->blocks_outside || c->chunk < c->steps || !t->dense || (a->epilogue->n_post && !gelu_on_the_way(a)))
    return false;
  const int64_t first = b0 * c->block;
  const int64_t m = hn_min(b1 * c->block, c->positions) - first - HN_FAULT("bf16_together_last_row");
  const position at = locate(c, first);
  const block b = {.first = first,
                   .m = (uint32_t)m,
                   .n_segments = 1,
                   .segment[0] = {.count = (uint32_t)m,
                                  .y = first * c->view.pixel,
                                  .residual = first * t->a->epilogue->residual_view.pixel,
                                  .at = at}};
  if (!at_once(a, &b, &(piece){.to = c->steps})) return false;
  for (int64_t n = t->n0; n < t->n1; n += HN_BF16_PANEL) {
    const int64_t next = n + HN_BF16_PANEL;
    piece w = piece_of(t, n, 0, c->steps, panel_at(t, n, 0));
    w.tile.prefetch = next < t->n1 ? (const char *)panel_at(t, next, 0) : NULL;
    w.tile.prefetch_bytes = next < t->n1 ? (size_t)c->steps * step_size(t, next) * 2 : 0;
    run_block(t, &b, &w);
  }
  return true;
}

/* Blocks [b0, b1) over the task's columns. */
static void run_each(task_at *t, int64_t b0, int64_t b1) {
  const hn_bf16_conv *c = t->a->conv;
  block b;
  if (c->blocks_outside) {
    const uint16_t *first = c->parted ? parted_at(t, t->n0) : panel_at(t, t->n0, 0);
    const size_t panel = c->parted ? hn_bf16_parted(HN_BF16_PANEL, (size_t)c->steps, 3)
                                   : hn_bf16_packed(HN_BF16_PANEL, (size_t)c->steps, (uint32_t)c->parts);
    piece w = piece_of(t, t->n0, 0, c->steps, first);
    for (int64_t i = b0; i < b1; i++) {
      const uint16_t *b_at = first;
      describe_block(t, i, &b);
      for (int64_t n = t->n0; n < t->n1; n += HN_BF16_PANEL, b_at += panel) {
        w.n = n, w.tile.b = b_at, w.tile.n = (uint32_t)hn_min(t->n1 - n, HN_BF16_PANEL);
        if (i == b0 && !c->parted && n + HN_BF16_PANEL < t->n1)
          w.tile.prefetch = (const char *)panel_at(t, n + HN_BF16_PANEL, 0),
          w.tile.prefetch_bytes = (size_t)c->steps * step_size(t, n + HN_BF16_PANEL) * 2;
        else
          w.tile.prefetch_bytes = 0;
        run_block(t, &b, &w);
      }
    }
    return;
  }
  const int64_t blocks = b1 - b0;
  stretch now = stretch_at(t, t->n0, 0);
  if (c->parted)
    hn_bf16_part(t->a->ops, kept(t, now.n, 0, now.to), width_at(t, now.n), (size_t)now.to, t->parted);
  for (int64_t turn = 0; now.from < now.to; turn++) {
    const stretch next = next_stretch(t, now), asked = c->parted ? next_stretch(t, next) : next;
    piece w = piece_of(t, now.n, now.from, now.to,
                       c->parted ? t->parted + turn % 2 * (c->parted / 2) : panel_at(t, now.n, now.from));
    hn_bf16_ahead *const ahead = &w.tile.ahead;
    *ahead = (hn_bf16_ahead){.values = (uint32_t)hn_bf16_parted(width_at(t, next.n), 1, 1)};
    const int64_t groups = c->parted ? (next.to - next.from) * ahead->values / 32 : 0;
    if (groups) ahead->from = (const float *)(const void *)kept(t, next.n, next.from, next.to);
    ahead->to = t->parted + (turn + 1) % 2 * (c->parted / 2);
    const char *asked_from =
        asked.from < asked.to && !c->coded ? (const char *)panel_at(t, asked.n, asked.from) : NULL;
    const size_t bytes = stretch_bytes(t, asked), share = (bytes / (size_t)blocks + 63) / 64 * 64;
    for (int64_t i = 0; i < blocks; i++) {
      const size_t at = (size_t)i * share;
      w.tile.prefetch = asked_from ? asked_from + at : NULL;
      w.tile.prefetch_bytes = at < bytes ? (bytes - at < share ? bytes - at : share) : 0;
      ahead->first = (uint32_t)(groups * i / blocks), ahead->last = (uint32_t)(groups * (i + 1) / blocks);
      if (c->chunk < c->steps)
        w.tile.c = t->waiting + ((w.n - t->n0) / HN_BF16_PANEL * blocks + i) * HN_BF16_ROWS * HN_BF16_PANEL;
      describe_block(t, b0 + i, &b);
      run_block(t, &b, &w);
    }
    now = next;
  }
}

static void run_blocks(task_at *t, int64_t b0, int64_t b1) {
  if (b0 >= b1 || run_together(t, b0, b1)) return;
  run_each(t, b0, b1);
  store_before(t);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hn_bf16_args *a = arg;
  const hn_bf16_conv *c = a->conv;
  const int64_t m = i % c->m_tasks, rest = i / c->m_tasks, n = rest % c->n_tasks, group = rest / c->n_tasks;
  int64_t b0 = m * c->n_blocks / c->m_tasks, b1 = (m + 1) * c->n_blocks / c->m_tasks;
  const int64_t n0 = n * c->n_panels / c->n_tasks * HN_BF16_PANEL,
                n1 = hn_min((n + 1) * c->n_panels / c->n_tasks * HN_BF16_PANEL, c->cout);
  if (HN_FAULT("bf16_last_block") && m == c->m_tasks - 1) b1--;
  task_at t;
  t.a = a, t.group = group, t.n0 = n0, t.n1 = n1, t.begin = 0, t.dense = all_dense(a),
  t.n_before = t.half = 0;
  uint16_t *behind = a->workspace + c->buffer * (c->shared ? c->groups : a->threads);
  t.waiting = (float *)(void *)behind + thread * c->sums * HN_BF16_ROWS * HN_BF16_PANEL;
  behind += a->threads * c->sums * HN_BF16_ROWS * HN_BF16_PANEL * 2;
  t.parted = behind + thread * c->parted;
  t.wide = (float *)(void *)(behind + a->threads * c->parted) + thread * c->wide;
  for (int64_t p = n0; p < n1 && c->parted && c->blocks_outside; p += HN_BF16_PANEL)
    hn_bf16_part(a->ops, kept(&t, p, 0, c->steps), width_at(&t, p), (size_t)c->steps, parted_at(&t, p));
  a->ops->begin((uint32_t)c->rows);
  t.last = NULL, t.copied = false;
  if (c->direct) {
    t.buffer = (const uint16_t *)a->x + group * c->cin;
    t.last = a->workspace + thread * c->buffer;
    run_blocks(&t, b0, b1);
  } else if (c->shared) {
    t.buffer = a->workspace + group * c->buffer;
    run_blocks(&t, b0, b1);
  } else {
    uint16_t *buffer = a->workspace + thread * c->buffer;
    t.buffer = buffer;
    for (; b0 < b1; b0 += c->slab) {
      int64_t last = hn_min(b0 + c->slab, b1);
      t.begin = b0 * c->block;
      bring(a, group, t.begin, t.begin, hn_min(last * c->block, c->positions) + c->reach, buffer);
      run_blocks(&t, b0, last);
    }
  }
  a->ops->end();
}

/* A part of the shared buffer. */
typedef struct bringing {
  const hn_bf16_args *a;
  int64_t parts, count;
} bringing;

static void bring_part(void *arg, int64_t i, uint32_t thread) {
  (void)thread;
  const bringing *b = arg;
  int64_t group = i / b->parts, part = i % b->parts;
  bring(b->a, group, 0, part * b->count / b->parts, (part + 1) * b->count / b->parts,
        b->a->workspace + group * b->a->conv->buffer);
}

void hn_bf16_exec(const hn_bf16_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_bf16_conv *c = a->conv;
  if (c->shared) {
    bringing b = {a, 2 * a->threads, c->positions + c->reach};
    parallel(pool, c->groups * b.parts, bring_part, &b);
  }
  parallel(pool, c->groups * c->m_tasks * c->n_tasks, task, (void *)(uintptr_t)a);
}
