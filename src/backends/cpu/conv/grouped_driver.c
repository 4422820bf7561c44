#include "backends/cpu/conv/grouped_driver.h"

#include <string.h>

#include "backends/cpu/movement/windows.h"
#include "base/fault.h"
#include "base/integers.h"

enum { SLAB = HN_GROUPED_SLAB, NARROWEST = 8 };

void hn_grouped_plan(hn_grouped *g, uint32_t threads, size_t l1) {
  const int64_t reach = (g->of.kernel[1] - 1) * g->of.dilation[1];
  g->slabs = hn_div_up(g->of.groups * g->of.cout, SLAB);
  g->ring = (g->of.kernel[0] - 1) * g->of.dilation[0] + 1;
  /* The rows that are laid out fill L1. */
  const int64_t fit = (int64_t)(l1 / 4) / (g->of.kernel[0] * g->of.cin * SLAB);
  int64_t tile = (fit - reach - 1) / g->of.stride[1] + 1;
  if (tile < NARROWEST) tile = NARROWEST;
  if (tile > g->of.out[1]) tile = g->of.out[1];
  g->tiles = tile > 0 ? hn_div_up(g->of.out[1], tile) : 0;
  g->tile = g->tiles ? hn_fill_up(hn_div_up(g->of.out[1], g->tiles), NARROWEST) : 0;
  if (g->tile > g->of.out[1]) g->tile = g->of.out[1];
  g->tiles = g->tile ? hn_div_up(g->of.out[1], g->tile) : 0;
  g->columns = g->tile ? (g->tile - 1) * g->of.stride[1] + reach + 1 : 0;
  g->row = g->columns * SLAB;
  /* Blocks of rows lay out anew what they share: only where there are too few slabs. */
  const int64_t want = threads > 1 ? 2 * (int64_t)threads : 1, have = g->of.batch * g->slabs;
  g->row_blocks = have > 0 ? hn_div_up(want, have) : 1;
  if (g->row_blocks > g->of.out[0]) g->row_blocks = g->of.out[0];
  if (g->row_blocks < 1) g->row_blocks = 1;
}

size_t hn_grouped_packed_size(const hn_grouped *g) {
  return (size_t)(g->slabs * g->of.kernel[0] * g->of.cin * g->of.kernel[1] * SLAB);
}

void hn_grouped_pack(const hn_grouped *g, const float *w, float *dst) {
  const int64_t rows = g->of.kernel[0], taps = g->of.kernel[1], channels = g->of.groups * g->of.cout;
  for (int64_t s = 0; s < g->slabs; s++)
    for (int64_t v = 0; v < rows; v++)
      for (int64_t i = 0; i < g->of.cin; i++)
        for (int64_t u = 0; u < taps; u++)
          for (int64_t l = 0; l < SLAB; l++) {
            const int64_t c = s * SLAB + l;
            *dst++ = c < channels ? w[((c * g->of.cin + i) * rows + v) * taps + u] : 0;
          }
}

/* A thread's scratch: rows, then the windows of a slab. */
static size_t rows_bytes(const hn_grouped *g) {
  return hn_round_up((size_t)(g->ring * g->of.cin * g->row) * sizeof(float), 64);
}

size_t hn_grouped_scratch(const hn_grouped *g) {
  return hn_round_up(rows_bytes(g) + (size_t)(g->of.cin * SLAB) * sizeof(hn_pick_window), 64);
}

/* A slab of one image, columns x0 to x0 + n - 1 of the output. */
typedef struct part {
  const hn_grouped_args *a;
  int64_t image, c0, channels; /* the slab's output channels */
  int64_t x0, n;
  float *rows;                   /* [ring][cin][columns][SLAB] */
  int64_t held[HN_GROUPED_RING]; /* which input row each place of the ring has, or -1 */
  hn_pick_window *window;
  hn_pick pick[HN_GROUPED_ROWS]; /* of input channel i of the groups */
  uint32_t first[HN_GROUPED_ROWS * (SLAB + 1)];
} part;

static void find_windows(part *p) {
  const hn_grouped *g = p->a->g;
  hn_pick_window *w = p->window;
  int32_t from[SLAB];
  for (int64_t i = 0; i < g->of.cin; i++) {
    uint32_t *first = p->first + i * (SLAB + 1);
    for (int64_t l = 0; l < p->channels; l++) from[l] = (int32_t)((p->c0 + l) / g->of.cout * g->of.cin + i);
    p->pick[i] = (hn_pick){(size_t)p->channels, first, w};
    w += hn_windows_find(from, (size_t)p->channels, (size_t)(g->of.groups * g->of.cin), p->a->pick->vw, first,
                         w);
  }
}

static void zero_pixels(float *to, int64_t n) { memset(to, 0, (size_t)(n * SLAB) * sizeof *to); }

/* Input row `at` as the tile reads it, zeros around it included. */
static void lay_out(part *p, int64_t at) {
  const hn_grouped *g = p->a->g;
  const int64_t from = p->x0 * g->of.stride[1] - g->of.pad[1], until = from + g->columns;
  int64_t begin = from < 0 ? 0 : from, end = until > g->of.in[1] ? g->of.in[1] : until;
  if (begin > end) begin = end = from;
  const float *x = p->a->x + p->image * g->of.in_batch + at * g->of.in_row + begin * g->of.in_pixel;
  float *to = p->rows + at % g->ring * g->of.cin * g->row;
  for (int64_t i = 0; i < g->of.cin; i++, to += g->row) {
    zero_pixels(to, begin - from);
    p->a->pick->pixels(&p->pick[i], (uint32_t *)(void *)(to + (begin - from) * SLAB), SLAB,
                       (const uint32_t *)(const void *)x, (ptrdiff_t)g->of.in_pixel, (size_t)(end - begin));
    zero_pixels(to + (end - from) * SLAB, until - end);
  }
  p->held[at % g->ring] = at;
}

static void output_row(part *p, hn_depthwise_row *r, const float **rows, int64_t y) {
  const hn_grouped *g = p->a->g;
  const hn_epilogue *e = p->a->epilogue;
  const int64_t top = y * g->of.stride[0] - g->of.pad[0], step = g->of.kernel[1] * SLAB;
  int64_t v0 = 0, v1 = g->of.kernel[0];
  while (v0 < v1 && top + v0 * g->of.dilation[0] < 0) v0++;
  while (v1 > v0 && top + (v1 - 1) * g->of.dilation[0] >= g->of.in[0]) v1--;
  r->rows = 0;
  for (int64_t v = v0; v < v1; v++) {
    const int64_t at = top + v * g->of.dilation[0];
    if (p->held[at % g->ring] != at && !HN_FAULT("grouped_stale_row")) lay_out(p, at);
    for (int64_t i = 0; i < g->of.cin; i++)
      rows[r->rows++] = p->rows + (at % g->ring * g->of.cin + i) * g->row;
  }
  r->w = p->a->w + (p->c0 / SLAB * g->of.kernel[0] + v0) * g->of.cin * step;
  r->y = p->a->y + hn_view_at(&g->of.y, p->image, 0, y, p->x0) + p->c0;
  r->residual =
      e->residual ? e->residual + hn_view_at(&e->residual_view, p->image, 0, y, p->x0) + p->c0 : NULL;
  p->a->ops->row(r);
  if (e->n_post)
    hn_epilogue_post_pixels(e, r->y, r->y_pixel, r->n, (size_t)p->c0, r->channels, p->image, 0, y, p->x0);
}

static void tile_rows(part *p, int64_t y0, int64_t y1) {
  const hn_grouped *g = p->a->g;
  const hn_epilogue *e = p->a->epilogue;
  const float *rows[HN_GROUPED_ROWS];
  hn_depthwise_row r = {.x = rows,
                        .x_pixel = SLAB,
                        .width = g->columns,
                        .w_tap = SLAB,
                        .taps = (uint32_t)g->of.kernel[1],
                        .stride = g->of.stride[1],
                        .dilation = g->of.dilation[1],
                        .y_pixel = g->of.y.pixel,
                        .n = p->n,
                        .channels = (size_t)p->channels,
                        .flags = e->flags,
                        .lo = e->lo,
                        .hi = e->hi,
                        .slope = e->slope,
                        .bias = e->bias ? e->bias + p->c0 : NULL,
                        .r_pixel = e->residual_view.pixel};
  for (int64_t i = 0; i < g->ring; i++) p->held[i] = -1;
  for (int64_t y = y0; y < y1; y++) output_row(p, &r, rows, y);
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const hn_grouped_args *a = arg;
  const hn_grouped *g = a->g;
  const int64_t s = t % g->slabs, rest = t / g->slabs, b = rest % g->row_blocks;
  char *scratch = (char *)a->scratch + thread * hn_grouped_scratch(g);
  part p = {.a = a, .image = rest / g->row_blocks, .c0 = s * SLAB};
  p.rows = (float *)(void *)scratch;
  p.window = (hn_pick_window *)(void *)(scratch + rows_bytes(g));
  p.channels = g->of.groups * g->of.cout - p.c0 < SLAB ? g->of.groups * g->of.cout - p.c0 : SLAB;
  find_windows(&p);
  for (p.x0 = 0; p.x0 < g->of.out[1]; p.x0 += g->tile) {
    p.n = g->of.out[1] - p.x0 < g->tile ? g->of.out[1] - p.x0 : g->tile;
    tile_rows(&p, b * g->of.out[0] / g->row_blocks, (b + 1) * g->of.out[0] / g->row_blocks);
  }
}

void hn_grouped_exec(const hn_grouped_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_grouped *g = a->g;
  if (g->slabs == 0 || g->of.out[0] <= 0 || g->of.out[1] <= 0) return;
  parallel(pool, g->of.batch * g->row_blocks * g->slabs, task, (void *)(uintptr_t)a);
}

/* Cycles of one vector, as the models of the other tactics count them. */
#define PRODUCT 0.66 /* a multiply-add */
#define LAY_OUT 4.3  /* a vector of the rows that are laid out: L1 has to take its line in */

double hn_grouped_seconds(const hn_grouped *g, const hn_depthwise_ops *ops, const hone_machine *machine,
                          hn_isa isa) {
  const double vectors = (double)SLAB / ops->vw, out_rows = (double)hn_div_up(g->of.out[0], g->row_blocks);
  const double wanted = (out_rows - 1) * (double)g->of.stride[0] + (double)g->ring,
               in_rows = wanted < (double)g->of.in[0] ? wanted : (double)g->of.in[0];
  const double products =
      (double)(g->of.out[1] * g->of.kernel[0] * g->of.cin * g->of.kernel[1]) * out_rows * vectors * PRODUCT;
  const double rows = (double)(g->tiles * g->columns * g->of.cin) * in_rows * vectors * LAY_OUT;
  const int64_t threads = machine->threads ? machine->threads : 1,
                rounds = hn_div_up(g->of.batch * g->row_blocks * g->slabs, threads);
  return (double)rounds * (products + rows) / hn_core_hertz(hn_gemm_find(isa), machine) + 1e-6;
}
