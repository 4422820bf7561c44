/* Where tiles of output pixels lie, and a walk over them (conv_driver.c, conv_rows.c). */
#ifndef HN_CPU_PRODUCT_CONV_TILES_H
#define HN_CPU_PRODUCT_CONV_TILES_H

#include "backends/cpu/product/conv_plan.h"

typedef struct hn_conv_place {
  int64_t n, z, y, x;
} hn_conv_place;

static inline hn_conv_place hn_conv_locate(const hn_conv *c, int64_t line, int64_t offset) {
  hn_conv_place p;
  int64_t i = line * c->line + offset;
  p.x = i % c->grid[2], i /= c->grid[2];
  p.n = i / (c->grid[0] * c->grid[1]), i %= c->grid[0] * c->grid[1];
  p.y = c->down ? i / c->grid[0] : i % c->grid[1];
  p.z = c->down ? i % c->grid[0] : i / c->grid[1];
  return p;
}

/* A tile. Divisions take as long as a good part of a small tile's products: a walk over tiles needs none. */
typedef struct hn_conv_cursor {
  bool even; /* pixels have one distance in all that is read and written: they may be told by their number */
  int64_t tile, line, column, m,
      remainder;                /* m: its first pixel in the line, column * line / tiles_per_line */
  int64_t step, step_remainder; /* from one tile to the next */
  hn_conv_place start; /* of the line, which is no longer than one of the grid; not used where `even` */
} hn_conv_cursor;

/* Is a line of tiles longer than one of the grid? It runs through all of the output then. */
static inline bool hn_conv_runs_on(const hn_conv *c) { return c->line > c->grid[2]; }

static inline bool hn_conv_evenly(const hn_conv *c, const hn_view *v) {
  return (c->grid[1] == 1 || v->row == c->grid[2] * v->pixel) &&
         (c->grid[0] == 1 || v->slice == c->grid[1] * c->grid[2] * v->pixel) &&
         (c->batch == 1 || v->batch == c->grid[0] * c->grid[1] * c->grid[2] * v->pixel);
}

static inline hn_conv_cursor hn_conv_cursor_at(const hn_conv_args *a, int64_t tile) {
  const hn_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  hn_conv_cursor at = {.tile = tile, .line = tile / c->tiles_per_line, .column = tile % c->tiles_per_line};
  at.m = at.column * c->line / c->tiles_per_line;
  at.remainder = at.column * c->line % c->tiles_per_line;
  at.step = c->line / c->tiles_per_line;
  at.step_remainder = c->line % c->tiles_per_line;
  at.even = hn_conv_runs_on(c) && c->matrix && c->read != HN_CONV_COPIED && !e->n_post &&
            (!e->residual || hn_conv_evenly(c, &e->residual_view));
  if (!hn_conv_runs_on(c)) at.start = hn_conv_locate(c, at.line, 0);
  return at;
}

/* The first pixel after the tile. */
static inline int64_t hn_conv_cursor_end(const hn_conv *c, const hn_conv_cursor *at) {
  return at->m + at->step + (at->remainder + at->step_remainder >= c->tiles_per_line);
}

static inline void hn_conv_cursor_next(const hn_conv *c, hn_conv_cursor *at) {
  at->tile++;
  at->m += at->step;
  at->remainder += at->step_remainder;
  if (at->remainder >= c->tiles_per_line) at->remainder -= c->tiles_per_line, at->m++;
  if (++at->column < c->tiles_per_line) return;
  at->column = at->m = at->remainder = 0;
  at->line++;
  hn_conv_place *p = &at->start;
  const int inner = c->down ? 0 : 1;
  int64_t *const of[] = {&p->z, &p->y};
  if (++*of[inner] < c->grid[inner]) return;
  *of[inner] = 0;
  if (++*of[1 - inner] < c->grid[1 - inner]) return;
  *of[1 - inner] = 0;
  p->n++;
}

/* Pixel m of the tile's line. */
static inline hn_conv_place hn_conv_cursor_pixel(const hn_conv *c, const hn_conv_cursor *at, int64_t m) {
  if (hn_conv_runs_on(c) && !at->even) return hn_conv_locate(c, at->line, m);
  hn_conv_place p = at->start;
  p.x = m;
  return p;
}

static inline void hn_conv_advance(const hn_conv *c, hn_conv_place *p) {
  if (++p->x < c->grid[2]) return;
  p->x = 0;
  if (++p->y < c->grid[1]) return;
  p->y = 0;
  if (++p->z < c->grid[0]) return;
  p->z = 0;
  p->n++;
}

#endif
