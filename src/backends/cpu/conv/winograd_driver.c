#include "backends/cpu/conv/winograd_driver.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/fault.h"

/* A form, and the cycles that its transforms take for a tile's vector of channels (of stride 2: as fits 36
 * shapes on Zen 5). */
typedef struct known_form {
  hn_winograd_form form;
  double input_cycles, output_cycles;
} known_form;

/* Norms: (3 * 1.5 * 2)^2, (7.3640 * 1.4715 * 5.1214)^2 rounded up; (2 * 3)^2 and (3 * 4)^2. */
static const known_form forms[] = {{{2, 1, 4, 4, {0, 1, 2, 3, 4}, 81, 4.0 * 8, 4.0 * 6}, 46, 89},
                                   {{4, 1, 6, 6, {0, 1, 2, 3, 4, 5, 6}, 3080, 22.0 * 12, 16.0 * 10}, 96, 120},
                                   {{2, 2, 3, 5, {0, 2, 3, 5}, 36, 2.0 * 10, 2.0 * 5}, 45, 45},
                                   {{3, 2, 4, 7, {0, 2, 4, 5, 7}, 144, 6.0 * 14, 4.0 * 7}, 85, 65}};

static const known_form *known(int64_t m, int64_t stride) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].form.m == m && forms[i].form.stride == stride) return &forms[i];
  return NULL;
}

const hn_winograd_form *hn_winograd_form_of(int64_t m, int64_t stride) {
  const known_form *k = known(m, stride);
  return k ? &k->form : NULL;
}

/* Matrices of M. */
static int64_t frequencies(const hn_winograd *p) {
  return hn_winograd_plan_form(p)->points * hn_winograd_plan_form(p)->points;
}

/* Of the product's kernel: rows of its tile, bytes of its operands. */
static int64_t tile_rows(const hn_winograd *p, const hn_gemm_ops *o) {
  return p->bf16_rows ? p->bf16_rows : o->mr;
}
static int64_t operand_bytes(const hn_winograd *p) { return p->bf16_rows ? 2 : 4; }

/* Groups of the panels [p0, p1), and of as many panels wherever they begin. */
static int64_t groups_of(const hn_winograd *p, const hn_gemm_ops *o, int64_t p0, int64_t p1) {
  const int64_t n = hn_winograd_group_panels(p, o);
  return p1 > p0 ? (p1 - 1) / n - p0 / n + 1 : 0;
}
static int64_t most_groups(const hn_winograd *p, const hn_gemm_ops *o, int64_t panels) {
  return panels ? hn_min((panels - 1) / hn_winograd_group_panels(p, o) +
                             (hn_winograd_group_panels(p, o) > 1) + 1,
                         p->groups)
                : 0;
}

/* Elements from tile to tile in V of a task of so many panels: an odd number of cache lines, so that rows
 * spread over the L1 sets. */
static int64_t v_pitch_of(const hn_winograd *p, const hn_gemm_ops *o, int64_t panels) {
  const int64_t line = 64 / operand_bytes(p), pitch = hn_fill_up(most_groups(p, o, panels) * p->cin, line);
  return pitch / line % 2 == 0 ? pitch + line : pitch;
}

/* ------------------------------------------------------------------ depth */

/* The taps of depth, [from, to), for which output slice z finds a slice of the input. */
typedef struct taps {
  int64_t from, to;
} taps;

static taps taps_of(const hn_winograd *p, int64_t z) {
  const hn_winograd_depth *d = &p->depth;
  const int64_t at = z * d->stride - d->pad, left = d->in - at;
  taps t = {at < 0 ? hn_div_up(-at, d->dilation) : 0, left > 0 ? hn_div_up(left, d->dilation) : 0};
  t.to = hn_min(t.to, d->kernel);
  if (t.to < t.from) t.to = t.from;
  return t;
}

/* Output slices of the column that begins with slice z. */
static int64_t column_height(const hn_winograd *p, int64_t z) { return hn_min(p->slices, p->depth.out - z); }

/* Output slices of a column, [from, to) of it, whose products are one matrix: they read the same taps, and
 * slices at one distance. */
typedef struct layer {
  int64_t from, to;
  taps taps;
} layer;

static layer layer_at(const hn_winograd *p, int64_t z, int64_t height, int64_t from) {
  if (p->depth.kernel == 1) return (layer){0, 1, {0, 1}};
  layer l = {from, from + 1, taps_of(p, z + from)};
  for (; p->depth.stride == 1 && l.to < height; l.to++) {
    const taps t = taps_of(p, z + l.to);
    if (t.from != l.taps.from || t.to != l.taps.to) break;
  }
  return l;
}

static bool slice_is_inside(const hn_winograd *p, int64_t z) { return z >= 0 && z < p->depth.in; }

/* The slices that a column reads from its first on; the first may lie before the image. */
static int64_t slices_read(const hn_winograd *p, int64_t height) {
  return (height - 1) * p->depth.stride + (p->depth.kernel - 1) * p->depth.dilation + 1;
}

hn_winograd_reach hn_winograd_reach_of(const hn_winograd *p) {
  hn_winograd_reach r = {0, 0};
  for (int64_t z = 0; z < p->depth.out; z++) {
    const taps t = taps_of(p, z);
    r.taps += t.to - t.from;
  }
  for (int64_t z = 0; z < p->depth.out; z += p->slices) {
    const int64_t first = z * p->depth.stride - p->depth.pad, n = slices_read(p, column_height(p, z));
    const int64_t from = first < 0 ? 0 : first, to = hn_min(first + n, p->depth.in);
    if (to > from) r.slices += to - from;
  }
  return r;
}

/* ------------------------------------------------------------------ planning */

/* One division into tasks and blocking, and the cycles that its busiest thread takes. */
typedef struct choice {
  int64_t m_tasks, n_tasks, block_tiles, block_panels;
  double cycles;
} choice;

/* The cost model's rates, in cycles.  Fitted to 7,700 measurements with AVX-512: 44 shapes, both tile sizes,
 * one and two threads, all blockings, weights in L3 and in memory (docs/log/perf-log-cpu.md).  It predicts
 * them within 7 % (root mean square), its choices are 2 % slower than the best on average, and of direct,
 * F(2x2) and F(4x4) it names the fastest within 10 % in 170 of 171 cases. */
#define PRODUCT_CYCLES 30.0    /* to begin a panel of one frequency */
#define CALL_CYCLES 12.0       /* to begin a row tile of it */
#define GROUP_CALL_CYCLES 45.0 /* of a group: sums are short, and do not hide where they begin and end */
#define LEAST_ROWS 2.0         /* a row tile with fewer rows takes as long */
#define L2_SHARE 0.61          /* of L2 that stays where it was put */
#define SPILL_CYCLES 0.07      /* a byte of V and M that does not fit into L2 */
#define AGAIN_CYCLES 0.0122    /* a byte of V, each time that it comes from L2 */
#define TOUCH_CYCLES 0.135     /* a byte of input or output */
#define REMOTE_CYCLES 0.3 /* a byte of input that another core has written: where panels are divided, too */
#define RUN_CYCLES 11.6   /* an output pixel, each time that a piece of its channels is written */
/* Bytes a cycle of weights that are read again, for every block of tiles after the first. The last cache of a
 * few cores brings them several times as fast as that of a mesh (docs/log/perf-log-zen4.md). */
#define AGAIN_BYTES_PER_CYCLE(machine) ((machine)->mesh ? HN_STREAM_BYTES_PER_CYCLE : 40)

/* What a column's depth makes of a tile: on average, layers, slices that are read and written, and taps of a
 * slice that is written. */
typedef struct mean {
  double layers, read, written, taps;
} mean;

static mean mean_of(const hn_winograd *p) {
  const hn_winograd_reach r = hn_winograd_reach_of(p);
  const double columns = (double)p->tiles_z, out = (double)p->depth.out;
  int64_t layers = 0;
  for (int64_t z = 0; z < p->depth.out; z += p->slices)
    for (int64_t at = 0, h = column_height(p, z); at < h; layers++) at = layer_at(p, z, h, at).to;
  if (!p->tiles_z || out <= 0) return (mean){1, 1, 1, 1};
  return (mean){(double)layers / columns, (double)r.slices / columns, out / columns, (double)r.taps / out};
}

static double cycles_of(const hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine,
                        const mean *d, const choice *c) {
  const known_form *form = known(p->m, p->stride);
  const double f = (double)frequencies(p), all = (double)hn_winograd_pieces(p);
  int64_t tiles = hn_div_up(p->tiles, c->m_tasks), panels = hn_div_up(p->n_panels, c->n_tasks);
  double rounds = (double)hn_div_up(c->m_tasks * c->n_tasks, machine->threads ? machine->threads : 1);
  int64_t blocks = hn_div_up(tiles, c->block_tiles), block = hn_div_up(tiles, blocks),
          turns = hn_div_up(panels, c->block_panels);
  const double written = (double)block * d->written, read = (double)block * d->read, /* tiles of M, of V */
      row_tiles = d->layers * ceil(written / d->layers / (double)tile_rows(p, o));
  const int64_t nr = hn_winograd_columns(p, o), groups = most_groups(p, o, panels);
  int64_t columns = hn_min(panels * nr, groups * p->cout);
  const double n_vectors = /* of products: of each group the last may not be full */
      p->groups > 1
          ? (double)panels / (double)hn_winograd_group_panels(p, o) * (double)hn_div_up(p->cout, o->vw)
          : (double)hn_div_up(columns, o->vw);
  const double rate = p->bf16_rows ? p->bf16_rate : 1, operand = (double)operand_bytes(p);
  double rows = fmax(written, LEAST_ROWS * row_tiles), cin = (double)p->cin,
         channels = cin * (double)groups; /* of the task */
  const double call = p->groups > 1 ? GROUP_CALL_CYCLES * (1 + all / f) / 2 : CALL_CYCLES;
  double products =
      (double)blocks * (all * cin * d->taps * rows * n_vectors / 2 / rate +
                        f * (call * (double)panels * row_tiles + PRODUCT_CYCLES * (double)panels));
  double transforms = (double)tiles * (d->read * form->input_cycles * ceil(channels / (double)o->vw) +
                                       d->written * form->output_cycles * (double)hn_div_up(columns, o->vw));
  /* Bytes: V and M of a block, all weights of the task, the two panels in flight. */
  double l2 = (double)machine->l2 * L2_SHARE, pitch = (double)v_pitch_of(p, o, panels) * operand,
         v = all * read * pitch,
         m = f * written * (double)hn_min(hn_min(c->block_panels, panels) * nr, hn_fill_up(columns, nr)) * 4,
         kernel = cin * (double)p->depth.kernel, u = all * kernel * n_vectors * (double)o->vw * operand,
         flight = kernel * (double)nr * 2 * operand, spilled = 0;
  double stream = hn_weights_cycles(u, (double)hn_winograd_packed_size(p, o) * operand, o, machine);
  if (u + v + m > l2) stream += u * (double)(blocks - 1) / AGAIN_BYTES_PER_CYCLE(machine);
  if (v + m + flight > l2) spilled += v * (double)((1 + turns) * blocks);
  if (m + flight > l2) spilled += 2 * m * (double)(blocks * turns);
  double area = (double)(tiles * p->m * p->m), in_pixels = area * d->read, pixels = area * d->written;
  const double in = channels * (double)(p->stride * p->stride) * (p->narrow_in ? 2 : 4),
               out = (double)columns * (p->narrow_out ? 2 : 4);
  const double parts = (double)hn_min(c->n_tasks, machine->threads ? machine->threads : 1);
  double remote = REMOTE_CYCLES * in_pixels * in * (parts - 1) / parts;
  return rounds *
         (hn_overlapped_cycles(products, stream) + transforms + SPILL_CYCLES * spilled +
          AGAIN_CYCLES * all * written * d->taps * pitch * (double)(panels * blocks) / (double)groups +
          TOUCH_CYCLES * (in_pixels * in + pixels * out) + RUN_CYCLES * pixels * (double)turns + remote);
}

static void consider(const hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine, const mean *d,
                     choice c, choice *best) {
  int64_t tiles = hn_div_up(p->tiles, c.m_tasks), panels = hn_div_up(p->n_panels, c.n_tasks);
  for (int64_t row_tiles = 1; row_tiles <= 32; row_tiles++) {
    const int64_t most = row_tiles * tile_rows(p, o) / p->slices,
                  blocks = most ? hn_div_up(tiles, most) : tiles;
    c.block_tiles = hn_div_up(tiles, blocks);
    for (c.block_panels = 1; c.block_panels <= panels; c.block_panels *= 2) {
      c.cycles = cycles_of(p, o, machine, d, &c);
      if (best->cycles == 0 || c.cycles < best->cycles) *best = c;
    }
    if (blocks == 1) break;
  }
}

/* Columns of so many output slices. */
static void plan_columns(hn_winograd *p, int64_t slices) {
  p->slices = slices, p->read = slices_read(p, slices);
  p->tiles_z = hn_div_up(p->depth.out, slices);
  p->tiles = p->batch * p->tiles_z * p->tiles_y * p->tiles_x;
}

static choice best_of(const hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine) {
  int64_t threads = machine->threads ? machine->threads : 1;
  choice best = {1, 1, p->tiles > 0 ? hn_min(p->tiles, tile_rows(p, o)) : 1, 1, 0};
  const mean d = mean_of(p);
  /* Groups need not be together: only those whose V and M stay in L2. */
  const int64_t most = p->groups > 1 ? p->n_panels : hn_min(threads, p->n_panels);
  for (int64_t n = 1; n <= most; n += n < threads ? 1 : n) {
    int64_t m = hn_div_up(threads, n);
    if (m > p->tiles) m = p->tiles ? p->tiles : 1;
    choice c = {.m_tasks = m, .n_tasks = n};
    if (p->tiles) consider(p, o, machine, &d, c, &best);
  }
  return best;
}

void hn_winograd_plan(hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine) {
  p->tiles_y = hn_div_up(p->out[0], p->m), p->tiles_x = hn_div_up(p->out[1], p->m);
  p->n_panels = p->groups * hn_winograd_group_panels(p, o);
  /* Columns through all of the depth, and ever shorter ones. */
  const int64_t deepest = p->depth.kernel > 1 && p->depth.out > 1 ? p->depth.out : 1;
  choice best = {0};
  int64_t slices = 1;
  for (int64_t s = deepest;; s = hn_div_up(s, 2)) {
    plan_columns(p, s);
    const choice c = best_of(p, o, machine);
    if (s == deepest || c.cycles < best.cycles) best = c, slices = s;
    if (s == 1) break;
  }
  plan_columns(p, slices);
  p->m_tasks = best.m_tasks, p->n_tasks = best.n_tasks;
  p->block_tiles = best.block_tiles, p->block_panels = best.block_panels;
  p->v_pitch = v_pitch_of(p, o, hn_div_up(p->n_panels, p->n_tasks));
  p->seconds = best.cycles / hn_core_hertz(o, machine) + 3e-6;
}

/* Kernels of bf16 products read and overwrite the rest of their last tile. */
static size_t v_floats(const hn_winograd *p) {
  const int64_t rows = hn_winograd_pieces(p) * p->block_tiles * p->read +
                       p->bf16_rows * hn_winograd_terms(hn_winograd_plan_form(p), 1);
  return hn_round_up((size_t)(rows * p->v_pitch * operand_bytes(p)) / 4, 16);
}
/* Of groups, each panel's last vector may reach into the columns of the next one, which are written after it.
 */
static int64_t m_pitch(const hn_winograd *p, const hn_gemm_ops *o) {
  if (p->groups == 1 || hn_winograd_group_panels(p, o) > 1) return p->block_panels * o->nr;
  const int64_t line = 16, last = (int64_t)hn_gemm_panel_width(o, (size_t)p->cout, 0);
  return hn_fill_up((p->block_panels - 1) * p->cout + last, line);
}
static size_t m_floats(const hn_winograd *p, const hn_gemm_ops *o) {
  if (p->bf16_rows)
    return (size_t)(frequencies(p) * p->block_tiles * p->block_panels + p->bf16_rows) * HN_BF16_PANEL;
  return (size_t)(frequencies(p) * p->block_tiles * p->slices * m_pitch(p, o));
}

int64_t hn_winograd_steps(const hn_winograd *p) { return hn_div_up(p->cin, HN_BF16_STEP); }
int64_t hn_winograd_row_steps(const hn_winograd *p) {
  return hn_winograd_terms(hn_winograd_plan_form(p), hn_winograd_steps(p));
}

void hn_winograd_fill_steps(const hn_winograd *p, int32_t *step) {
  const int64_t steps = hn_winograd_steps(p);
  for (int64_t i = 0; i < hn_winograd_row_steps(p); i++)
    step[i] = (int32_t)(i / steps * p->v_pitch + i % steps * HN_BF16_STEP);
}

size_t hn_winograd_packed_size(const hn_winograd *p, const hn_gemm_ops *o) {
  const size_t n = (size_t)p->cout;
  const size_t piece = p->bf16_rows ? hn_bf16_packed(n, (size_t)hn_winograd_steps(p), 1)
                                    : hn_gemm_packed_size(o, n, (size_t)p->cin);
  return (size_t)(p->groups * hn_winograd_pieces(p) * p->depth.kernel) * piece;
}

size_t hn_winograd_scratch(const hn_winograd *p, const hn_gemm_ops *o) {
  return (v_floats(p) + m_floats(p, o) + 15) / 16 * 16;
}

/* ------------------------------------------------------------------ running */

typedef struct place {
  int64_t n, z, y, x; /* image, first output slice, row and column of the tile */
} place;

static place locate(const hn_winograd *p, int64_t tile) {
  place at;
  at.x = tile % p->tiles_x * p->m, tile /= p->tiles_x;
  at.y = tile % p->tiles_y * p->m, tile /= p->tiles_y;
  at.z = tile % p->tiles_z * p->slices, at.n = tile / p->tiles_z;
  return at;
}

/* Columns [t0, t1), which all begin with output slice z where there are several taps of depth, and have
 * `height` of them.  V and M have the tiles of all columns slice by slice. */
typedef struct block {
  int64_t t0, t1, z, height;
} block;

/* The part of [at, at + n) that lies inside [0, size), relative to at. */
static void clip(int64_t at, int64_t n, int64_t size, int32_t *from, int32_t *to) {
  int64_t lo = at < 0 ? -at : 0, hi = size - at < n ? size - at : n;
  *from = (int32_t)lo, *to = (int32_t)(hi > lo ? hi : lo);
}

/* Element i of a tensor of f32 or of bf16. */
static const void *element(const void *p, int64_t i, int64_t narrow) {
  return (const char *)p + i * (narrow ? 2 : 4);
}

/* The block's tiles into V, `channels` from c0 on: frequency by frequency a matrix of tiles x (pieces x
 * channels).
 */
static void transform_input(const hn_winograd_args *a, const block *b, int64_t c0, int64_t channels,
                            float *v) {
  const hn_winograd *p = a->plan;
  const int64_t side = hn_winograd_plan_form(p)->pieces; /* as many pixels */
  const int64_t tiles = b->t1 - b->t0, read = slices_read(p, b->height);
  hn_winograd_in t = {.row = p->in_row,
                      .pixel = p->in_pixel,
                      .channels = (size_t)channels,
                      .v = v,
                      .frequency = tiles * read * p->v_pitch,
                      .pitch = p->v_pitch,
                      .narrow = p->narrow_in != 0};
  for (int64_t i = b->t0; i < b->t1; i++) {
    place at = locate(p, i);
    int64_t y = at.y * p->stride - p->pad[0], x = at.x * p->stride - p->pad[1];
    clip(y, side, p->in[0], &t.y0, &t.y1);
    clip(x, side, p->in[1], &t.x0, &t.x1);
    for (int64_t s = 0; s < read; s++) {
      const int64_t z = at.z * p->depth.stride - p->depth.pad + s;
      if (!slice_is_inside(p, z)) continue; /* no product reads it */
      t.x = element(a->x, at.n * p->in_batch + z * p->in_slice + y * p->in_row + x * p->in_pixel + c0,
                    p->narrow_in);
      t.tile = (s * tiles + i - b->t0) * p->v_pitch;
      a->ops->input(&t);
    }
  }
}

/* What products ask for each panel, found without divisions where there is one group. */
typedef struct packed {
  const hn_winograd *p;
  const hn_gemm_ops *o;
  const float *w;
  int64_t panels;        /* of a group */
  int64_t group, column; /* floats of a group, and of a column, in all pieces and taps of depth */
} packed;

static packed packed_of(const hn_winograd_args *a) {
  const hn_winograd *p = a->plan;
  const int64_t n = hn_winograd_group_panels(p, a->gemm), each = hn_winograd_pieces(p) * p->depth.kernel;
  return (packed){p,
                  a->gemm,
                  a->w,
                  n,
                  each * (int64_t)hn_gemm_packed_size(a->gemm, (size_t)p->cout, (size_t)p->cin),
                  each * p->cin};
}

typedef struct panel {
  int64_t group, column, width; /* column: its first of all output channels */
  const float *w;
} panel;

static panel panel_at(const packed *k, int64_t index) {
  const int64_t group = k->p->groups == 1 ? 0 : index / k->panels, nr = k->o->nr,
                from = (index - group * k->panels) * nr;
  return (panel){group, group * k->p->cout + from,
                 (int64_t)hn_gemm_panel_width(k->o, (size_t)k->p->cout, (size_t)from),
                 k->w + group * k->group + from * k->column};
}

/* Tiles of the product of a block, each of no more than so many rows. */
static int64_t row_tiles_of(const hn_winograd *p, const block *b, int64_t most) {
  int64_t n = 0;
  for (int64_t at = 0; at < b->height;) {
    const layer l = layer_at(p, b->z, b->height, at);
    n += hn_div_up((l.to - l.from) * (b->t1 - b->t0), most);
    at = l.to;
  }
  return n;
}

/* Weights that are pulled into L2 by and by: each of `parts` takes its share. */
typedef struct ahead {
  const float *at; /* NULL: none */
  int64_t floats, part, parts;
} ahead;

static void take_share(ahead *f, hn_gemm_tile *t) {
  if (!f->at) return;
  t->prefetch = f->at + f->floats * f->part / f->parts;
  t->prefetch_end = f->at + f->floats * ++f->part / f->parts;
}

/* A product: one frequency of a panel, for all of a block. */
typedef struct product {
  const hn_winograd_frequency *f;
  int64_t panel;
} product;

/* The product of a layer of a block.  v: those of the frequency, w: its weights; c: of the layer's tiles in
 * M.
 */
static void multiply_layer(const hn_winograd_args *a, const block *at, const layer *l,
                           const hn_winograd_frequency *here, const float *v, const float *w, int64_t width,
                           int64_t pitch, ahead *f, float *c) {
  const hn_winograd *p = a->plan;
  const hn_winograd_depth *d = &p->depth;
  const int64_t tiles = at->t1 - at->t0, rows = (l->to - l->from) * tiles,
                row_tiles = hn_div_up(rows, a->gemm->mr), row = here->n * p->v_pitch,
                n = here->n * p->cin; /* products of a tap of depth */
  const int64_t taps = l->taps.to - l->taps.from, slice = d->dilation * tiles * row;
  const bool whole = here->n == 1; /* a piece is all of a tap */
  const float *from = v + (l->from * d->stride + l->taps.from * d->dilation) * tiles * row;
  hn_gemm_tile t = {.lda = row,
                    .b = w + (HN_FAULT("winograd_taps_of_depth") ? 0 : l->taps.from) * n * width,
                    .ldc = pitch,
                    .k = (size_t)(taps * n),
                    .segment = (size_t)(taps ? p->cin : 0),
                    .skip = whole ? slice - p->cin : p->v_pitch - p->cin,
                    .turns = whole ? 0 : (size_t)here->n,
                    .jump = slice - (here->n - 1) * p->v_pitch - p->cin,
                    .n = (uint32_t)width};
  for (int64_t r = 0; r < row_tiles; r++) {
    const int64_t m0 = r * rows / row_tiles, m1 = (r + 1) * rows / row_tiles;
    t.a = from + m0 * row, t.c = c + m0 * t.ldc, t.m = (uint32_t)(m1 - m0);
    take_share(f, &t);
    a->gemm->tile(&t);
  }
}

/* The product after one of panels [p0, p1): all panels of a frequency of one group, which read the same V;
 * all frequencies of a panel where there are groups, whose weights lie so. Behind the last: the first one of
 * p1. */
static product after(const hn_winograd *p, const product *at, const hn_winograd_frequency *f, int64_t p0,
                     int64_t p1) {
  product next = *at;
  const hn_winograd_frequency *const end = f + frequencies(p);
  if (p->groups > 1) {
    if (++next.f == end) next.f = f, next.panel++;
  } else if (++next.panel == p1) {
    if (++next.f == end)
      next.f = f;
    else
      next.panel = p0;
  }
  return next;
}

/* A task's panels, [first, end), and what is the same for all of its products. */
typedef struct job {
  const hn_winograd_args *a;
  int64_t first, end;
  packed weights;
  hn_winograd_frequency f[HN_WINOGRAD_MAX_POINTS * HN_WINOGRAD_MAX_POINTS];
} job;

/* Panels [p0, p1) of M for a block: each frequency's product.  Meanwhile the weights of the next product are
 * pulled into L2 (at the end those of panel p1, if the task has it).  V begins with the group of the task's
 * first panel. */
static void multiply(const job *j, const block *b, int64_t p0, int64_t p1, const float *v, float *m) {
  const hn_winograd_args *a = j->a;
  const hn_winograd *p = a->plan;
  const packed k = j->weights;
  const hn_winograd_frequency *const f = j->f;
  const int64_t pitch = m_pitch(p, a->gemm), tiles = b->t1 - b->t0, depth = p->depth.kernel * p->cin;
  const int64_t row_tiles = row_tiles_of(p, b, a->gemm->mr);
  const int64_t matrix = tiles * slices_read(p, b->height) * p->v_pitch; /* floats of a piece */
  const panel begin = panel_at(&k, p0), origin = panel_at(&k, j->first);
  for (product at = {f, p0}, next; at.panel < p1; at = next) {
    next = after(p, &at, f, p0, p1);
    const panel here = panel_at(&k, at.panel);
    ahead weights = {.parts = row_tiles};
    if (next.panel < j->end) {
      const panel then = panel_at(&k, next.panel);
      weights.at = then.w + next.f->before * then.width * depth;
      weights.floats = next.f->n * then.width * depth;
    }
    const int64_t group = HN_FAULT("winograd_first_group") ? 0 : here.group - origin.group;
    float *const to = m + (at.f - f) * b->height * tiles * pitch + here.column - begin.column;
    for (int64_t z = 0; z < b->height;) {
      const layer l = layer_at(p, b->z, b->height, z);
      multiply_layer(a, b, &l, at.f, v + at.f->before * matrix + group * p->cin,
                     here.w + at.f->before * here.width * depth, here.width, pitch, &weights,
                     to + l.from * tiles * pitch);
      z = l.to;
    }
  }
}

static const uint16_t *bf16_weights_of(const hn_winograd *p, const uint16_t *w, int64_t panel,
                                       int64_t before) {
  return w + hn_winograd_bf16_before(p, panel) + (size_t)before * hn_winograd_bf16_piece(p, panel);
}

/* The same in products of bf16, a panel after the other in each frequency of M. */
static void multiply_bf16(const hn_winograd_args *a, int64_t tiles, int64_t p0, int64_t p1, int64_t p_end,
                          const uint16_t *v, float *m) {
  const hn_winograd *p = a->plan;
  const hn_winograd_form *form = hn_winograd_plan_form(p);
  const int64_t f_count = frequencies(p), row_tiles = hn_div_up(tiles, p->bf16_rows);
  for (int64_t f = 0; f < f_count; f++) {
    const hn_winograd_frequency here = hn_winograd_frequency_of(form, f),
                                after = hn_winograd_frequency_of(form, f + 1 < f_count ? f + 1 : 0);
    const int64_t row = here.n * p->v_pitch;
    const size_t steps = (size_t)(here.n * hn_winograd_steps(p));
    for (int64_t panel = p0; panel < p1; panel++) {
      const bool last_panel = panel + 1 == p1, last = last_panel && f + 1 == f_count;
      const hn_winograd_frequency *const next_f = last_panel ? &after : &here;
      const int64_t next_panel = last ? p1 : last_panel ? p0 : panel + 1;
      const char *next = NULL;
      int64_t next_bytes = 0;
      if (next_panel < p_end)
        next = (const char *)bf16_weights_of(p, a->w, next_panel, next_f->before),
        next_bytes = next_f->n * (int64_t)hn_winograd_bf16_piece(p, next_panel) * 2;
      const int64_t share = hn_fill_up(hn_div_up(next_bytes, row_tiles), 64);
      for (int64_t r = 0; r < row_tiles; r++) {
        const int64_t m0 = r * tiles / row_tiles, m1 = (r + 1) * tiles / row_tiles;
        const int64_t ahead = hn_min(r * share, next_bytes);
        const hn_bf16_tile t = {.a = v + here.before * tiles * p->v_pitch + m0 * row,
                                .step = a->step,
                                .steps = steps,
                                .short_from = steps - 1,
                                .short_pairs = hn_bf16_short_pairs(p->cin),
                                .row = row,
                                .b = bf16_weights_of(p, a->w, panel, here.before),
                                .c = m + ((f * (p1 - p0) + panel - p0) * tiles + m0) * HN_BF16_PANEL,
                                .rows = (uint32_t)p->bf16_rows,
                                .m = (uint32_t)(m1 - m0),
                                .n = (uint32_t)hn_min(p->cout - panel * HN_BF16_PANEL, HN_BF16_PANEL),
                                .parts = 1,
                                .prefetch = next ? next + ahead : NULL,
                                .prefetch_bytes = (size_t)hn_min(share, next_bytes - ahead)};
        a->bf16->tile(&t);
      }
    }
  }
}

enum {
  WIDE_PIXEL = 8 * HN_BF16_PANEL, /* an output tile in f32: so many panels at a time */
  WIDE_TILE = 3 * 3 * WIDE_PIXEL  /* the largest that products of bf16 have */
};

/* A tile's pixels through the operations that no register does; for an output in bf16 they are in `wide`. */
static void post_pixels(const hn_winograd_args *a, const hn_winograd_out *t, const place *at, int64_t c0,
                        const float *wide, void *to) {
  const hn_winograd *p = a->plan;
  for (int32_t y = 0; y < t->rows; y++) {
    hn_epilogue_post_pixels(a->epilogue, (float *)t->y + y * t->row, t->pixel, t->columns, (size_t)c0,
                            t->channels, at->n, at->z, at->y + y, at->x);
    for (int32_t x = 0; wide && x < t->columns; x++)
      a->bf16->split(wide + y * t->row + x * t->pixel, t->channels,
                     (uint16_t *)to + y * p->y.row + x * p->y.pixel, 0, 1);
  }
}

/* How M lies: floats between frequencies, tiles, and panels of a product of bf16. */
typedef struct products {
  const float *m;
  int64_t frequency, tile, group;
} products;

/* Channels [c0, c1) of the block's tiles. */
static void transform_output(const hn_winograd_args *a, const block *b, int64_t c0, int64_t c1,
                             const products *m) {
  const hn_winograd *p = a->plan;
  const hn_epilogue *e = a->epilogue;
  const bool later = p->narrow_out && e->n_post;
  _Alignas(64) float wide[WIDE_TILE];
  hn_winograd_out t = {.frequency = m->frequency,
                       .group = m->group,
                       .row = later ? p->m * WIDE_PIXEL : p->y.row,
                       .pixel = later ? WIDE_PIXEL : p->y.pixel,
                       .channels = (size_t)(c1 - c0),
                       .flags = e->flags,
                       .lo = e->lo,
                       .hi = e->hi,
                       .slope = e->slope,
                       .bias = e->flags & HN_EPI_BIAS ? e->bias + c0 : NULL,
                       .residual_row = e->residual_view.row,
                       .residual_pixel = e->residual_view.pixel,
                       .narrow = p->narrow_out && !later,
                       .narrow_residual = e->narrow_residual != NULL};
  const void *residual = e->narrow_residual ? (const void *)e->narrow_residual : e->residual;
  const int64_t tiles = b->t1 - b->t0;
  for (int64_t i = 0, z = 0, column = 0; i < tiles * b->height; i++, column++) {
    if (column == tiles) column = 0, z++;
    place at = locate(p, b->t0 + column);
    at.z += z;
    t.rows = (int32_t)hn_min(p->out[0] - at.y, p->m), t.columns = (int32_t)hn_min(p->out[1] - at.x, p->m);
    t.m = m->m + i * m->tile;
    void *to =
        (void *)(uintptr_t)element(a->y, hn_view_at(&p->y, at.n, at.z, at.y, at.x) + c0, p->narrow_out);
    t.y = later ? wide : to;
    if (e->flags & HN_EPI_RESIDUAL)
      t.residual = element(residual, hn_view_at(&e->residual_view, at.n, at.z, at.y, at.x) + c0,
                           e->narrow_residual != NULL);
    a->ops->output(&t);
    if (e->n_post) post_pixels(a, &t, &at, c0, later ? wide : NULL, to);
  }
}

/* Panels [q0, q1) of a block of tiles. */
static void panels(const job *j, const block *b, int64_t q0, int64_t q1, const float *v, float *m) {
  const hn_winograd_args *a = j->a;
  const hn_winograd *p = a->plan;
  const int64_t tiles = (b->t1 - b->t0) * b->height, nr = hn_winograd_columns(p, a->gemm);
  if (!p->bf16_rows) {
    const int64_t pitch = m_pitch(p, a->gemm);
    const products at = {m, tiles * pitch, pitch, 0};
    multiply(j, b, q0, q1, v, m);
    transform_output(a, b, hn_winograd_column_of(p, a->gemm, q0), hn_winograd_column_of(p, a->gemm, q1), &at);
    return;
  }
  multiply_bf16(a, tiles, q0, q1, j->end, (const uint16_t *)(const void *)v, m);
  const int64_t most = p->narrow_out && a->epilogue->n_post ? WIDE_PIXEL / nr : q1 - q0;
  for (int64_t q = q0; q < q1; q += most) {
    const products at = {m + (q - q0) * tiles * nr, (q1 - q0) * tiles * nr, nr, tiles * nr};
    transform_output(a, b, q * nr, hn_min(hn_min(q + most, q1) * nr, p->cout), &at);
  }
}

/* Where the columns that lie beside column t end: a block's have the same taps. */
static int64_t level_end(const hn_winograd *p, int64_t t) {
  const int64_t plane = p->tiles_y * p->tiles_x;
  return p->depth.kernel > 1 && p->tiles_z > 1 ? (t / plane + 1) * plane : p->tiles;
}

static void do_block(const job *j, const block *b, float *v, float *m) {
  const hn_winograd *p = j->a->plan;
  const hn_gemm_ops *o = j->a->gemm;
  const int64_t group = j->first / hn_winograd_group_panels(p, o);
  transform_input(j->a, b, group * p->cin, groups_of(p, o, j->first, j->end) * p->cin, v);
  for (int64_t q0 = j->first; q0 < j->end; q0 += p->block_panels)
    panels(j, b, q0, hn_min(q0 + p->block_panels, j->end), v, m);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hn_winograd_args *a = arg;
  const hn_winograd *p = a->plan;
  const int64_t i = index % p->m_tasks, n = index / p->m_tasks;
  int64_t t0 = i * p->tiles / p->m_tasks, t1 = (i + 1) * p->tiles / p->m_tasks;
  job j = {.a = a,
           .first = n * p->n_panels / p->n_tasks,
           .end = (n + 1) * p->n_panels / p->n_tasks,
           .weights = packed_of(a)};
  for (int64_t f = 0; f < frequencies(p); f++) j.f[f] = hn_winograd_frequency_of(hn_winograd_plan_form(p), f);
  float *v = a->scratch + thread * hn_winograd_scratch(p, a->gemm), *m = v + v_floats(p);
  if (HN_FAULT("winograd_last_tile") && i == p->m_tasks - 1) t1--;
  if (a->bf16) a->bf16->begin((uint32_t)p->bf16_rows);
  for (int64_t from = t0, to; from < t1; from = to) {
    to = hn_min(level_end(p, from), t1);
    const int64_t blocks = hn_div_up(to - from, p->block_tiles), z = locate(p, from).z;
    for (int64_t k = 0; k < blocks; k++) {
      const block b = {from + k * (to - from) / blocks, from + (k + 1) * (to - from) / blocks, z,
                       column_height(p, z)};
      do_block(&j, &b, v, m);
    }
  }
  if (a->bf16) a->bf16->end();
}

void hn_winograd_exec(const hn_winograd_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_winograd *p = a->plan;
  if (p->tiles == 0 || p->n_panels == 0) return;
  parallel(pool, p->m_tasks * p->n_tasks, task, (void *)(uintptr_t)a);
}

static const hn_winograd_ops *find(hn_isa isa, const char *role, const hn_winograd_ops *_Atomic *found) {
  const hn_winograd_ops *o = atomic_load_explicit(found, memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("winograd", role, isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(found, o, memory_order_relaxed);
  return o;
}

typedef const hn_winograd_ops *_Atomic found_ops[HN_ISA_COUNT][sizeof forms / sizeof *forms];

/* role: of each of forms[], NULL where there is none. */
static const hn_winograd_ops *find_form(hn_isa isa, const hn_winograd_form *form, const char *const *role,
                                        found_ops *found) {
  if ((unsigned)isa >= HN_ISA_COUNT || !form) return NULL;
  const ptrdiff_t i = known(form->m, form->stride) - forms;
  return role[i] ? find(isa, role[i], &(*found)[isa][i]) : NULL;
}

const hn_winograd_ops *hn_winograd_find(hn_isa isa, const hn_winograd_form *form) {
  static const char *const role[] = {"f2", "f4", "f2s2", "f3s2"};
  static found_ops found;
  return find_form(isa, form, role, &found);
}

const hn_winograd_ops *hn_winograd_bf16_find(hn_isa isa, const hn_winograd_form *form) {
  static const char *const role[] = {"f2_bf16", NULL, "f2s2_bf16", "f3s2_bf16"};
  static found_ops found;
  return isa < HN_ISA_AVX512BF16 ? NULL : find_form(isa, form, role, &found);
}
