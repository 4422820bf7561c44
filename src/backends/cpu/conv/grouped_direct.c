#include "backends/cpu/conv/grouped_direct.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

enum { WIDE = 14 }; /* pixels that kernels compute side by side */

void hn_grouped_direct_plan(hn_grouped_direct *d, uint32_t lanes, uint32_t threads, size_t l1, size_t l2) {
  const int64_t reach = (d->of.kernel[1] - 1) * d->of.dilation[1];
  d->lanes = lanes;
  d->side = 1;
  while (d->side < HN_GROUPED_SIDES && 2 * d->side * d->of.cout <= d->lanes &&
         2 * d->side * d->of.cin <= d->lanes)
    d->side *= 2;
  d->slabs = d->side > 1 ? hn_div_up(d->of.groups, d->side) : d->of.groups * hn_div_up(d->of.cout, d->lanes);
  d->ring = (d->of.kernel[0] - 1) * d->of.dilation[0] + 1;
  d->planes = hn_div_up(d->of.cin * d->side, d->lanes);
  /* The rows that are laid out fill a third of L1; the rest is for weights and output. */
  const int64_t fit = (int64_t)(l1 / 3 / sizeof(float)) / (d->ring * d->planes * d->lanes);
  int64_t tile = (fit - reach - 1) / d->of.stride[1] + 1;
  if (tile < WIDE) tile = WIDE;
  if (tile > d->of.out[1]) tile = d->of.out[1];
  d->tiles = tile > 0 ? hn_div_up(d->of.out[1], tile) : 0;
  d->tile = d->tiles ? hn_div_up(d->of.out[1], d->tiles) : 0;
  d->columns = d->tile ? (d->tile - 1) * d->of.stride[1] + reach + 1 : 0;
  d->plane = d->columns * d->lanes;
  d->row = d->planes * d->plane;
  /* As many slabs as keep their rows and weights in a quarter of L2. */
  const int64_t each =
      (d->ring * d->row + d->of.kernel[0] * d->of.kernel[1] * d->of.cin * d->lanes) * (int64_t)sizeof(float);
  d->block = each > 0 ? (int64_t)(l2 / 4) / each : 1;
  if (d->block < 1) d->block = 1;
  if (d->block > d->slabs) d->block = d->slabs;
  /* Blocks of rows lay out anew what they share: only where there are too few blocks of slabs. */
  const int64_t want = threads > 1 ? 2 * (int64_t)threads : 1;
  while (d->block > 4 && d->of.batch * hn_div_up(d->slabs, d->block) < want)
    d->block = hn_div_up(d->block, 2);
  const int64_t have = d->block ? d->of.batch * hn_div_up(d->slabs, d->block) : 0;
  d->row_blocks = have > 0 ? hn_div_up(want, have) : 1;
  if (d->row_blocks > d->of.out[0]) d->row_blocks = d->of.out[0];
  if (d->row_blocks < 1) d->row_blocks = 1;
}

size_t hn_grouped_direct_packed_size(const hn_grouped_direct *d) {
  return (size_t)(d->slabs * d->of.kernel[0] * d->of.kernel[1] * d->of.cin * d->lanes);
}

/* What a slab computes. */
typedef struct slab {
  int64_t group, groups; /* the first of them, and how many there are */
  int64_t first, count;  /* output channels of each */
} slab;

static slab slab_of(const hn_grouped_direct *d, int64_t s) {
  if (d->side > 1) {
    const int64_t left = d->of.groups - s * d->side;
    return (slab){s * d->side, left < d->side ? left : d->side, 0, d->of.cout};
  }
  const int64_t parts = hn_div_up(d->of.cout, d->lanes), first = s % parts * d->lanes,
                left = d->of.cout - first;
  return (slab){s / parts, 1, first, left < d->lanes ? left : d->lanes};
}

void hn_grouped_direct_pack(const hn_grouped_direct *d, const float *w, float *dst) {
  const int64_t taps = d->of.kernel[0] * d->of.kernel[1], step = d->of.cin * taps;
  memset(dst, 0, hn_grouped_direct_packed_size(d) * sizeof *dst);
  for (int64_t s = 0; s < d->slabs; s++, dst += taps * d->of.cin * d->lanes) {
    const slab of = slab_of(d, s);
    for (int64_t g = 0; g < of.groups; g++)
      for (int64_t o = 0; o < of.count; o++) {
        const float *from = w + ((of.group + g) * d->of.cout + of.first + o) * step;
        float *to = dst + o * d->side + g;
        for (int64_t i = 0; i < d->of.cin; i++)
          for (int64_t t = 0; t < taps; t++) to[(t * d->of.cin + i) * d->lanes] = *from++;
      }
  }
}

size_t hn_grouped_direct_scratch(const hn_grouped_direct *d) {
  return hn_round_up((size_t)(d->block * d->ring * d->row) * sizeof(float), 64);
}

/* A block of slabs of one image, columns x0 to x0 + n - 1 of the output. */
typedef struct part {
  const hn_grouped_direct_args *a;
  int64_t image, s0, s1, x0, n;
  float *rows;                  /* [ring][slabs][planes][columns][lanes] */
  int64_t held[HN_DIRECT_RING]; /* which input row each place of the ring has, or -1 */
  int32_t lay[HN_GROUPED_LANES], order[HN_GROUPED_LANES];
} part;

/* Which lane holds what, of a pixel that is laid out and of a vector of sums. */
static void find_order(part *p) {
  const hn_grouped_direct *d = p->a->d;
  for (int32_t l = 0; l < HN_GROUPED_LANES; l++) p->lay[l] = p->order[l] = l;
  for (int64_t g = 0; g < d->side && d->side > 1; g++) {
    for (int64_t i = 0; i < d->of.cin; i++) p->lay[i * d->side + g] = (int32_t)(g * d->of.cin + i);
    for (int64_t o = 0; o < d->of.cout; o++) p->order[g * d->of.cout + o] = (int32_t)(o * d->side + g);
  }
}

static float *row_at(const part *p, int64_t at, int64_t s) {
  const hn_grouped_direct *d = p->a->d;
  return p->rows + (at % d->ring * d->block + s - p->s0) * d->row;
}

/* Input row `at` as the tile reads it, zeros around it included. */
static void lay_out(part *p, int64_t at) {
  const hn_grouped_direct *d = p->a->d;
  const int64_t from = p->x0 * d->of.stride[1] - d->of.pad[1], until = from + d->columns;
  int64_t begin = from < 0 ? 0 : from, end = until > d->of.in[1] ? d->of.in[1] : until;
  if (begin > end) begin = end = from;
  const int64_t before = (begin - from) * d->lanes, inside = (end - begin) * d->lanes;
  const float *row = p->a->x + p->image * d->of.in_batch + at * d->of.in_row + begin * d->of.in_pixel;
  for (int64_t s = p->s0; s < p->s1; s++) {
    const slab of = slab_of(d, s);
    const float *x = row + of.group * d->of.cin;
    float *to = row_at(p, at, s);
    for (int64_t left = of.groups * d->of.cin; left > 0; left -= d->lanes, x += d->lanes, to += d->plane) {
      memset(to, 0, (size_t)before * sizeof *to);
      p->a->ops->spread(to + before, x, d->of.in_pixel, (size_t)(left < d->lanes ? left : d->lanes),
                        d->side > 1 ? p->lay : NULL, (size_t)(end - begin));
      memset(to + before + inside, 0, (size_t)(d->plane - before - inside) * sizeof *to);
    }
  }
  p->held[at % d->ring] = at;
}

/* Row y of the slabs' output. */
static void output_row(part *p, hn_grouped_row *r, int64_t y) {
  const hn_grouped_direct *d = p->a->d;
  const hn_epilogue *e = p->a->epilogue;
  const float *rows[HN_DIRECT_ROWS];
  const int64_t top = y * d->of.stride[0] - d->of.pad[0], step = d->of.kernel[1] * d->of.cin * d->lanes;
  int64_t v0 = 0, v1 = d->of.kernel[0];
  while (v0 < v1 && top + v0 * d->of.dilation[0] < 0) v0++;
  while (v1 > v0 && top + (v1 - 1) * d->of.dilation[0] >= d->of.in[0]) v1--;
  for (int64_t v = v0; v < v1; v++) {
    const int64_t at = top + v * d->of.dilation[0];
    if (p->held[at % d->ring] != at && !HN_FAULT("direct_stale_row")) lay_out(p, at);
  }
  r->x = rows;
  r->rows = (uint32_t)(v1 - v0);
  for (int64_t s = p->s0; s < p->s1; s++) {
    const slab of = slab_of(d, s);
    const int64_t c0 = of.group * d->of.cout + of.first;
    for (int64_t v = v0; v < v1; v++) rows[v - v0] = row_at(p, top + v * d->of.dilation[0], s);
    r->w = p->a->w + (s * d->of.kernel[0] + v0) * step;
    r->channels = (size_t)(of.groups * of.count);
    r->bias = e->bias ? e->bias + c0 : NULL;
    r->y = p->a->y + hn_view_at(&d->of.y, p->image, 0, y, p->x0) + c0;
    r->residual =
        e->residual ? e->residual + hn_view_at(&e->residual_view, p->image, 0, y, p->x0) + c0 : NULL;
    p->a->ops->row(r);
    if (e->n_post)
      hn_epilogue_post_pixels(e, r->y, r->y_pixel, r->n, (size_t)c0, r->channels, p->image, 0, y, p->x0);
  }
}

static void tile_rows(part *p, int64_t y0, int64_t y1) {
  const hn_grouped_direct *d = p->a->d;
  const hn_epilogue *e = p->a->epilogue;
  hn_grouped_row r = {.plane = d->plane,
                      .taps = (uint32_t)d->of.kernel[1],
                      .side = (uint32_t)d->side,
                      .cin = d->of.cin,
                      .stride = d->of.stride[1],
                      .dilation = d->of.dilation[1],
                      .y_pixel = d->of.y.pixel,
                      .n = p->n,
                      .order = p->order,
                      .flags = e->flags,
                      .lo = e->lo,
                      .hi = e->hi,
                      .slope = e->slope,
                      .r_pixel = e->residual_view.pixel};
  for (int64_t i = 0; i < d->ring; i++) p->held[i] = -1;
  for (int64_t y = y0; y < y1; y++) output_row(p, &r, y);
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const hn_grouped_direct_args *a = arg;
  const hn_grouped_direct *d = a->d;
  const int64_t blocks = hn_div_up(d->slabs, d->block), s = t % blocks, rest = t / blocks,
                b = rest % d->row_blocks;
  part p = {.a = a,
            .image = rest / d->row_blocks,
            .s0 = s * d->slabs / blocks,
            .s1 = (s + 1) * d->slabs / blocks,
            .rows = (float *)(void *)((char *)a->scratch + thread * hn_grouped_direct_scratch(d))};
  find_order(&p);
  for (p.x0 = 0; p.x0 < d->of.out[1]; p.x0 += d->tile) {
    p.n = d->of.out[1] - p.x0 < d->tile ? d->of.out[1] - p.x0 : d->tile;
    tile_rows(&p, b * d->of.out[0] / d->row_blocks, (b + 1) * d->of.out[0] / d->row_blocks);
  }
}

void hn_grouped_direct_exec(const hn_grouped_direct_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_grouped_direct *d = a->d;
  if (d->slabs == 0 || d->of.out[0] <= 0 || d->of.out[1] <= 0) return;
  parallel(pool, d->of.batch * d->row_blocks * hn_div_up(d->slabs, d->block), task, (void *)(uintptr_t)a);
}

/* Cycles, as the models of the other tactics count them. */
#define PRODUCT 0.58   /* of a multiply-add of one vector, */
#define CHAIN 5.0      /* or of one after the other, where fewer pixels are side by side */
#define CHAIN_OF_8 4.0 /* the same of kernels of 8 lanes */
#define PIXEL 8.0      /* of a vector that is laid out */
#define CALL 60.0      /* of a piece of a row: its sums begin, are finished and stored */

double hn_grouped_direct_seconds(const hn_grouped_direct *d, const hone_machine *machine, hn_isa isa) {
  const double out_rows = (double)hn_div_up(d->of.out[0], d->row_blocks);
  const double wanted = (out_rows - 1) * (double)d->of.stride[0] + (double)d->ring,
               in_rows = wanted < (double)d->of.in[0] ? wanted : (double)d->of.in[0];
  const int64_t pieces = d->tile ? hn_div_up(d->tile, WIDE) : 0;
  const double pixels = pieces ? (double)d->tile / (double)pieces : 1;
  /* Kernels of 16 lanes keep two sums of each of a few pixels where a row has three taps. */
  const bool two_sums = d->lanes == 16 && pixels < 8 && d->of.kernel[1] == 3 && d->of.dilation[1] == 1;
  const double chain = (d->lanes == 8 ? CHAIN_OF_8 : CHAIN) / (two_sums ? 2 * pixels : pixels);
  const double products = (double)(d->of.out[1] * d->of.kernel[0] * d->of.kernel[1] * d->of.cin) * out_rows *
                          (chain > PRODUCT ? chain : PRODUCT);
  const double rows = (double)(d->tiles * d->columns) * in_rows * (double)d->planes * PIXEL;
  const double calls = (double)(d->tiles * pieces) * out_rows * CALL;
  /* Tasks share the slabs evenly: a block may hold more than one gets. */
  const int64_t threads = machine->threads ? machine->threads : 1,
                blocks = d->block ? hn_div_up(d->slabs, d->block) : 0,
                rounds = hn_div_up(d->of.batch * d->row_blocks * blocks, threads);
  const double slabs = blocks ? (double)(rounds * hn_div_up(d->slabs, blocks)) : 0;
  return slabs * (products + rows + calls) / hn_core_hertz(hn_gemm_find(isa), machine) + 1e-6;
}
