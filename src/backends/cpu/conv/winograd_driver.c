#include "backends/cpu/conv/winograd_driver.h"

#include "base/integers.h"
#include "base/stream.h"
#include "base/wide.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/fault.h"

/* Rows of G, a row a piece.  Stride 1, row of point x: [1 x x^2] / product of its distances to the other
 * points; b = sqrt(2). */
#define SQRT2 1.4142135623730950488
static const double g2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                    g4[6][3] = {{1, 0, 0},
                                {-2 / 3.0, -SQRT2 / 3, -1 / 3.0},
                                {-2 / 3.0, SQRT2 / 3, -1 / 3.0},
                                {1 / 6.0, SQRT2 / 6, 1 / 3.0},
                                {1 / 6.0, -SQRT2 / 6, 1 / 3.0},
                                {0, 0, 1}},
                    g2s2[5][3] = {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}},
                    g3s2[7][3] = {{1, 0, 0},      {0, 1, 0}, {0.5, 0, 0.5}, {0, 1, 0},
                                  {0.5, 0, -0.5}, {0, 0, 1}, {0, 1, 0}};

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

static const hn_winograd_form *form_of(const hn_winograd *p) { return &known(p->m, p->stride)->form; }

/* Matrices of M; of V and of the weights. */
static int64_t frequencies(const hn_winograd *p) { return form_of(p)->points * form_of(p)->points; }
static int64_t pieces(const hn_winograd *p) { return form_of(p)->pieces * form_of(p)->pieces; }

/* A frequency: its pieces are `rows` rows of `columns` in the grid of all. In V and in packed weights, where
 * they lie by frequencies, there are n of them, and those `before`. */
typedef struct frequency {
  int64_t row, column, rows, columns;
  int64_t n, before;
} frequency;

static frequency frequency_of(const hn_winograd_form *f, int64_t index) {
  const int32_t *const i = f->first + index / f->points, *const j = f->first + index % f->points;
  const int64_t rows = i[1] - i[0], columns = j[1] - j[0];
  return (frequency){i[0], j[0], rows, columns, rows * columns, i[0] * f->pieces + rows * j[0]};
}

/* Of the product's kernel: rows and columns of its tile, bytes of its operands. */
static int64_t tile_rows(const hn_winograd *p, const hn_gemm_ops *o) {
  return p->bf16_rows ? p->bf16_rows : o->mr;
}
static int64_t tile_columns(const hn_winograd *p, const hn_gemm_ops *o) {
  return p->bf16_rows ? HN_BF16_PANEL : o->nr;
}
static int64_t operand_bytes(const hn_winograd *p) { return p->bf16_rows ? 2 : 4; }

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
#define PRODUCT_CYCLES 30.0 /* to begin a panel of one frequency */
#define CALL_CYCLES 12.0    /* to begin a row tile of it */
#define LEAST_ROWS 2.0      /* a row tile with fewer rows takes as long */
#define L2_SHARE 0.61       /* of L2 that stays where it was put */
#define SPILL_CYCLES 0.07   /* a byte of V and M that does not fit into L2 */
#define AGAIN_CYCLES 0.0122 /* a byte of V, each time that it comes from L2 */
#define TOUCH_CYCLES 0.135  /* a byte of input or output */
#define REMOTE_CYCLES 0.3   /* a byte of input that another core has written: where panels are divided, too */
#define RUN_CYCLES 11.6     /* an output pixel, each time that a piece of its channels is written */

static double cycles_of(const hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine,
                        const choice *c) {
  const known_form *form = known(p->m, p->stride);
  const double f = (double)frequencies(p), all = (double)pieces(p);
  int64_t tiles = hn_div_up(p->tiles, c->m_tasks), panels = hn_div_up(p->n_panels, c->n_tasks);
  double rounds = (double)hn_div_up(c->m_tasks * c->n_tasks, machine->threads ? machine->threads : 1);
  int64_t blocks = hn_div_up(tiles, c->block_tiles), block = hn_div_up(tiles, blocks),
          row_tiles = hn_div_up(block, tile_rows(p, o)), turns = hn_div_up(panels, c->block_panels);
  const int64_t nr = tile_columns(p, o);
  int64_t columns = hn_min(panels * nr, p->cout), n_vectors = hn_div_up(columns, o->vw);
  const double rate = p->bf16_rows ? p->bf16_rate : 1, operand = (double)operand_bytes(p);
  double rows = fmax((double)block, LEAST_ROWS * (double)row_tiles), cin = (double)p->cin;
  double products =
      (double)blocks * (all * cin * rows * (double)n_vectors / 2 / rate +
                        f * (CALL_CYCLES * (double)(panels * row_tiles) + PRODUCT_CYCLES * (double)panels));
  double transforms = (double)tiles * (form->input_cycles * (double)hn_div_up(p->cin, o->vw) +
                                       form->output_cycles * (double)n_vectors);
  /* Bytes: V and M of a block, all weights of the task, the two panels in flight. */
  double l2 = (double)machine->l2 * L2_SHARE, v = all * (double)(block * p->v_pitch) * operand,
         m = f * (double)(block * hn_min(c->block_panels, panels) * nr) * 4,
         u = all * cin * (double)(n_vectors * o->vw) * operand, flight = cin * (double)nr * 2 * operand,
         spilled = 0;
  double stream = hn_weights_cycles(u, (double)hn_winograd_packed_size(p, o) * operand, o, machine);
  if (u + v + m > l2) stream += u * (double)(blocks - 1) / HN_STREAM_BYTES_PER_CYCLE;
  if (v + m + flight > l2) spilled += v * (double)((1 + turns) * blocks);
  if (m + flight > l2) spilled += 2 * m * (double)(blocks * turns);
  double pixels = (double)(tiles * p->m * p->m);
  const double in = cin * (double)(p->stride * p->stride) * (p->narrow_in ? 2 : 4),
               out = (double)columns * (p->narrow_out ? 2 : 4);
  double remote = REMOTE_CYCLES * pixels * in * (double)(c->n_tasks - 1) / (double)c->n_tasks;
  return rounds * (hn_overlapped_cycles(products, stream) + transforms + SPILL_CYCLES * spilled +
                   AGAIN_CYCLES * v * (double)(panels * blocks) + TOUCH_CYCLES * pixels * (in + out) +
                   RUN_CYCLES * pixels * (double)turns + remote);
}

static void consider(const hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine, choice c,
                     choice *best) {
  int64_t tiles = hn_div_up(p->tiles, c.m_tasks), panels = hn_div_up(p->n_panels, c.n_tasks);
  for (int64_t row_tiles = 1; row_tiles <= 32; row_tiles++) {
    int64_t blocks = hn_div_up(tiles, row_tiles * tile_rows(p, o));
    c.block_tiles = hn_div_up(tiles, blocks);
    for (c.block_panels = 1; c.block_panels <= panels; c.block_panels *= 2) {
      c.cycles = cycles_of(p, o, machine, &c);
      if (best->cycles == 0 || c.cycles < best->cycles) *best = c;
    }
    if (blocks == 1) break;
  }
}

void hn_winograd_plan(hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine) {
  p->tiles_y = hn_div_up(p->out[0], p->m), p->tiles_x = hn_div_up(p->out[1], p->m);
  p->tiles = p->batch * p->tiles_y * p->tiles_x;
  p->n_panels = hn_div_up(p->cout, tile_columns(p, o));
  /* Rows an odd number of cache lines apart spread over the L1 sets. */
  const int64_t cache_line = 64 / operand_bytes(p);
  p->v_pitch = hn_fill_up(p->cin, cache_line);
  if (p->v_pitch / cache_line % 2 == 0) p->v_pitch += cache_line;
  int64_t threads = machine->threads ? machine->threads : 1;
  choice best = {1, 1, p->tiles > 0 ? hn_min(p->tiles, tile_rows(p, o)) : 1, 1, 0};
  for (int64_t n = 1; n <= p->n_panels && n <= threads; n++) {
    int64_t m = hn_div_up(threads, n);
    if (m > p->tiles) m = p->tiles ? p->tiles : 1;
    choice c = {.m_tasks = m, .n_tasks = n};
    if (p->tiles) consider(p, o, machine, c, &best);
  }
  p->m_tasks = best.m_tasks, p->n_tasks = best.n_tasks;
  p->block_tiles = best.block_tiles, p->block_panels = best.block_panels;
  p->seconds = best.cycles / hn_core_hertz(o, machine) + 3e-6;
}

/* Kernels of bf16 products read and overwrite the rest of their last tile. */
static size_t v_floats(const hn_winograd *p) {
  const int64_t rows = pieces(p) * p->block_tiles + p->bf16_rows * hn_winograd_terms(form_of(p), 1);
  return hn_round_up((size_t)(rows * p->v_pitch * operand_bytes(p)) / 4, 16);
}
static int64_t m_pitch(const hn_winograd *p, const hn_gemm_ops *o) { return p->block_panels * o->nr; }
static size_t m_floats(const hn_winograd *p, const hn_gemm_ops *o) {
  if (p->bf16_rows)
    return (size_t)(frequencies(p) * p->block_tiles * p->block_panels + p->bf16_rows) * HN_BF16_PANEL;
  return (size_t)(frequencies(p) * p->block_tiles * m_pitch(p, o));
}

int64_t hn_winograd_steps(const hn_winograd *p) { return hn_div_up(p->cin, HN_BF16_STEP); }
int64_t hn_winograd_row_steps(const hn_winograd *p) {
  return hn_winograd_terms(form_of(p), hn_winograd_steps(p));
}

void hn_winograd_fill_steps(const hn_winograd *p, int32_t *step) {
  const int64_t steps = hn_winograd_steps(p);
  for (int64_t i = 0; i < hn_winograd_row_steps(p); i++)
    step[i] = (int32_t)(i / steps * p->v_pitch + i % steps * HN_BF16_STEP);
}

size_t hn_winograd_packed_size(const hn_winograd *p, const hn_gemm_ops *o) {
  const size_t n = (size_t)p->cout;
  return (size_t)pieces(p) * (p->bf16_rows ? hn_bf16_packed(n, (size_t)hn_winograd_steps(p), 1)
                                           : hn_gemm_packed_size(o, n, (size_t)p->cin));
}

size_t hn_winograd_scratch(const hn_winograd *p, const hn_gemm_ops *o) {
  return (v_floats(p) + m_floats(p, o) + 15) / 16 * 16;
}

/* ------------------------------------------------------------------ weights */

enum { WIDEST_PANEL = 64 };

enum { BLOCK = 8 }; /* columns of a vector */
typedef double vector __attribute__((vector_size(BLOCK * sizeof(double))));
typedef float halves __attribute__((vector_size(BLOCK * sizeof(float))));

/* Whether row i is the one before with the other sign of its middle: points x and -x. */
HN_WIDE_BODY bool is_mirrored(const double (*g)[3], int i) {
  return i && g[i][1] != 0 && g[i][0] == g[i - 1][0] && g[i][1] == -g[i - 1][1] && g[i][2] == g[i - 1][2];
}

/* The rows of g times (a, b, c).  What a row does not take is not multiplied by 0: it may be an Inf. */
HN_WIDE_BODY void spread(const double (*g)[3], int n, const vector *a, const vector *b, const vector *c,
                         vector *restrict out) {
  vector outer = *a, middle = *b;
#pragma GCC unroll 7
  for (int i = 0; i < n; i++) {
    if (is_mirrored(g, i)) {
      out[i] = outer - middle;
      continue;
    }
    outer = g[i][2] == 0 ? g[i][0] * *a : g[i][0] == 0 ? g[i][2] * *c : g[i][0] * *a + g[i][2] * *c;
    middle = g[i][1] * *b;
    out[i] = g[i][1] == 0 ? outer : g[i][0] == 0 && g[i][2] == 0 ? middle : outer + middle;
  }
}

enum {
  TOGETHER = 8, /* input channels at a time: so many rows of a piece are written together */
  PIECES = HN_WINOGRAD_MAX_PIECES * HN_WINOGRAD_MAX_PIECES
};

/* One input channel of a panel; `taps`: nine rows of its columns. */
HN_WIDE_BODY void pack_body(const double (*g)[3], int n, const float *taps, int64_t width,
                            float (*restrict out)[TOGETHER * WIDEST_PANEL]) {
  for (int64_t j = 0; j < width; j += BLOCK) {
    vector filter[9], rows[3][HN_WINOGRAD_MAX_PIECES], sum[HN_WINOGRAD_MAX_PIECES];
#pragma GCC unroll 9
    for (int t = 0; t < 9; t++) {
      halves x;
      memcpy(&x, taps + t * WIDEST_PANEL + j, sizeof x);
      filter[t] = __builtin_convertvector(x, vector);
    }
#pragma GCC unroll 3
    for (int t = 0; t < 3; t++) spread(g, n, &filter[t], &filter[3 + t], &filter[6 + t], rows[t]);
#pragma GCC unroll 7
    for (int i = 0; i < n; i++) {
      spread(g, n, &rows[0][i], &rows[1][i], &rows[2][i], sum);
#pragma GCC unroll 7
      for (int k = 0; k < n; k++) {
        const halves x = __builtin_convertvector(sum[k], halves);
        memcpy(out[i * n + k] + j, &x, sizeof x);
      }
    }
  }
}

HN_WIDE_BODY void pack_any(const hn_winograd_form *f, const float *taps, int64_t width,
                           float (*restrict out)[TOGETHER * WIDEST_PANEL]) {
  if (f->stride == 2 && f->m == 3)
    pack_body(g3s2, 7, taps, width, out);
  else if (f->stride == 2)
    pack_body(g2s2, 5, taps, width, out);
  else if (f->m == 4)
    pack_body(g4, 6, taps, width, out);
  else
    pack_body(g2, 4, taps, width, out);
}

HN_WIDE(void, pack_channel, pack_any,
        (const hn_winograd_form *f, const float *taps, int64_t width,
         float (*restrict out)[TOGETHER * WIDEST_PANEL]),
        (f, taps, width, out))

/* The piece that lies at a place of the packed weights, for all places. */
static void packed_order(const hn_winograd_form *f, int64_t order[PIECES]) {
  for (int64_t i = 0, n = 0; i < f->points * f->points; i++) {
    const frequency at = frequency_of(f, i);
    for (int64_t y = at.row; y < at.row + at.rows; y++)
      for (int64_t x = at.column; x < at.column + at.columns; x++) order[n++] = y * f->pieces + x;
  }
}

/* Pieces lie so far apart that their lines push each other out of the caches: they are gathered here,
 * and written in pieces; past the caches where nobody reads them soon. */
static void pack(const hn_winograd *p, const float *w, int64_t n0, int64_t live, int64_t width, bool stream,
                 float *dst) {
  _Alignas(64) float taps[TOGETHER * 9 * WIDEST_PANEL] = {0};
  _Alignas(64) float out[PIECES][TOGETHER * WIDEST_PANEL];
  int64_t order[PIECES];
  packed_order(form_of(p), order);
  for (int64_t c0 = 0; c0 < p->cin; c0 += TOGETHER) {
    const int64_t channels = hn_min(p->cin - c0, TOGETHER);
    const size_t bytes = (size_t)(channels * width) * sizeof *dst;
    hn_gemm_turn(w + (n0 * p->cin + c0) * 9, p->cin * 9, (size_t)channels * 9, (size_t)live, WIDEST_PANEL,
                 taps);
    for (int64_t c = 0; c < channels; c++)
      pack_channel(form_of(p), taps + c * 9 * WIDEST_PANEL, width,
                   (float(*)[TOGETHER * WIDEST_PANEL])(void *)(out[0] + c * width));
    for (int64_t i = 0; i < pieces(p); i++) {
      float *to = dst + (i * p->cin + c0) * width;
      if (stream)
        hn_stream_copy(to, out[order[i]], bytes);
      else
        memcpy(to, out[order[i]], bytes);
    }
  }
  if (stream) hn_stream_end();
}

void hn_winograd_pack_panel(const hn_winograd *p, const hn_gemm_ops *o, const float *w, int64_t panel,
                            float *dst) {
  const int64_t n0 = panel * o->nr;
  pack(p, w, n0, hn_min(p->cout - n0, o->nr), (int64_t)hn_gemm_panel_width(o, (size_t)p->cout, (size_t)n0),
       true, dst + pieces(p) * n0 * p->cin);
}

size_t hn_winograd_panel(const hn_winograd *p) { return (size_t)(pieces(p) * p->cin) * HN_BF16_PANEL; }

/* Values of bf16 before the panel, and of one of its pieces. */
static size_t bf16_before(const hn_winograd *p, int64_t panel) {
  return hn_bf16_packed((size_t)(panel * HN_BF16_PANEL), (size_t)(pieces(p) * hn_winograd_steps(p)), 1);
}
static size_t bf16_piece(const hn_winograd *p, int64_t panel) {
  const int64_t n = hn_min(p->cout - panel * HN_BF16_PANEL, HN_BF16_PANEL);
  return hn_bf16_packed((size_t)n, (size_t)hn_winograd_steps(p), 1);
}

void hn_winograd_pack_bf16(const hn_winograd *p, const hn_bf16_ops *o, const float *w, int64_t panel,
                           float *wide, int64_t *at, uint16_t *dst) {
  const int64_t n0 = panel * HN_BF16_PANEL, live = hn_min(p->cout - n0, HN_BF16_PANEL),
                steps = hn_winograd_steps(p);
  pack(p, w, n0, live, HN_BF16_PANEL, false, wide);
  for (int64_t k = 0; k < steps * HN_BF16_STEP; k++) at[k] = k < p->cin ? k * HN_BF16_PANEL : -1;
  dst += bf16_before(p, panel);
  for (int64_t i = 0; i < pieces(p); i++, dst += bf16_piece(p, panel))
    hn_bf16_pack(o, wide + i * p->cin * HN_BF16_PANEL, at, 1, (size_t)steps, (size_t)live, 0, (size_t)live, 1,
                 1, dst);
}

/* ------------------------------------------------------------------ running */

typedef struct place {
  int64_t n, y, x; /* image, first output row and column of the tile */
} place;

static place locate(const hn_winograd *p, int64_t tile) {
  place at;
  at.x = tile % p->tiles_x * p->m, tile /= p->tiles_x;
  at.y = tile % p->tiles_y * p->m, at.n = tile / p->tiles_y;
  return at;
}

/* The part of [at, at + n) that lies inside [0, size), relative to at. */
static void clip(int64_t at, int64_t n, int64_t size, int32_t *from, int32_t *to) {
  int64_t lo = at < 0 ? -at : 0, hi = size - at < n ? size - at : n;
  *from = (int32_t)lo, *to = (int32_t)(hi > lo ? hi : lo);
}

/* Element i of a tensor of f32 or of bf16. */
static const void *element(const void *p, int64_t i, int64_t narrow) {
  return (const char *)p + i * (narrow ? 2 : 4);
}

/* Tiles [t0, t1) into V: frequency by frequency a matrix of tiles x (pieces x channels). */
static void transform_input(const hn_winograd_args *a, int64_t t0, int64_t t1, float *v) {
  const hn_winograd *p = a->plan;
  const int64_t side = form_of(p)->pieces; /* as many pixels */
  hn_winograd_in t = {.row = p->in_row,
                      .pixel = p->in_pixel,
                      .channels = (size_t)p->cin,
                      .v = v,
                      .frequency = (t1 - t0) * p->v_pitch,
                      .pitch = p->v_pitch,
                      .narrow = p->narrow_in != 0};
  for (int64_t i = t0; i < t1; i++) {
    place at = locate(p, i);
    int64_t y = at.y * p->stride - p->pad[0], x = at.x * p->stride - p->pad[1];
    clip(y, side, p->in[0], &t.y0, &t.y1);
    clip(x, side, p->in[1], &t.x0, &t.x1);
    t.x = element(a->x, at.n * p->in_batch + y * p->in_row + x * p->in_pixel, p->narrow_in);
    t.tile = (i - t0) * p->v_pitch;
    a->ops->input(&t);
  }
}

static int64_t panel_width(const hn_winograd_args *a, int64_t panel) {
  return (int64_t)hn_gemm_panel_width(a->gemm, (size_t)a->plan->cout, (size_t)(panel * a->gemm->nr));
}

/* The packed weights of a panel, from the frequency on that has so many pieces before it. */
static const float *weights_of(const hn_winograd_args *a, int64_t panel, int64_t before) {
  const hn_winograd *p = a->plan;
  return (const float *)a->w + (pieces(p) * panel * a->gemm->nr + before * panel_width(a, panel)) * p->cin;
}

/* Panels [p0, p1) of M for a block of `tiles`: each frequency's product.  Meanwhile the weights of the panel
 * after the running one are pulled into L2 (at the end those of panel p1, if that is before p_end). */
static void multiply(const hn_winograd_args *a, int64_t tiles, int64_t p0, int64_t p1, int64_t p_end,
                     const float *v, float *m) {
  const hn_winograd *p = a->plan;
  const hn_gemm_ops *o = a->gemm;
  const hn_winograd_form *form = form_of(p);
  int64_t f_count = frequencies(p), row_tiles = hn_div_up(tiles, o->mr), pitch = m_pitch(p, o);
  const int64_t matrix = tiles * p->v_pitch; /* floats of a piece */
  for (int64_t f = 0; f < f_count; f++) {
    const frequency here = frequency_of(form, f), after = frequency_of(form, f + 1 < f_count ? f + 1 : 0);
    const int64_t row = here.n * p->v_pitch;
    const float *const from = v + here.before * matrix;
    for (int64_t panel = p0; panel < p1; panel++) {
      const bool last_panel = panel + 1 == p1, last = last_panel && f + 1 == f_count;
      const frequency *const next_f = last_panel ? &after : &here;
      const int64_t next_panel = last ? p1 : last_panel ? p0 : panel + 1;
      bool ahead = next_panel < p_end;
      const float *next = ahead ? weights_of(a, next_panel, next_f->before) : NULL;
      int64_t next_floats = ahead ? next_f->n * p->cin * panel_width(a, next_panel) : 0,
              width = panel_width(a, panel);
      for (int64_t r = 0; r < row_tiles; r++) {
        int64_t m0 = r * tiles / row_tiles, m1 = (r + 1) * tiles / row_tiles;
        hn_gemm_tile t = {.a = from + m0 * row,
                          .lda = row,
                          .b = weights_of(a, panel, here.before),
                          .c = m + (f * tiles + m0) * pitch + (panel - p0) * o->nr,
                          .ldc = pitch,
                          .k = (size_t)(here.n * p->cin),
                          .segment = (size_t)p->cin,
                          .skip = p->v_pitch - p->cin,
                          .m = (uint32_t)(m1 - m0),
                          .n = (uint32_t)width};
        if (ahead) {
          t.prefetch = next + next_floats * r / row_tiles;
          t.prefetch_end = next + next_floats * (r + 1) / row_tiles;
        }
        o->tile(&t);
      }
    }
  }
}

static const uint16_t *bf16_weights_of(const hn_winograd *p, const uint16_t *w, int64_t panel,
                                       int64_t before) {
  return w + bf16_before(p, panel) + (size_t)before * bf16_piece(p, panel);
}

/* The same in products of bf16, a panel after the other in each frequency of M. */
static void multiply_bf16(const hn_winograd_args *a, int64_t tiles, int64_t p0, int64_t p1, int64_t p_end,
                          const uint16_t *v, float *m) {
  const hn_winograd *p = a->plan;
  const hn_winograd_form *form = form_of(p);
  const int64_t f_count = frequencies(p), row_tiles = hn_div_up(tiles, p->bf16_rows);
  for (int64_t f = 0; f < f_count; f++) {
    const frequency here = frequency_of(form, f), after = frequency_of(form, f + 1 < f_count ? f + 1 : 0);
    const int64_t row = here.n * p->v_pitch;
    const size_t steps = (size_t)(here.n * hn_winograd_steps(p));
    for (int64_t panel = p0; panel < p1; panel++) {
      const bool last_panel = panel + 1 == p1, last = last_panel && f + 1 == f_count;
      const frequency *const next_f = last_panel ? &after : &here;
      const int64_t next_panel = last ? p1 : last_panel ? p0 : panel + 1;
      const char *next = NULL;
      int64_t next_bytes = 0;
      if (next_panel < p_end)
        next = (const char *)bf16_weights_of(p, a->w, next_panel, next_f->before),
        next_bytes = next_f->n * (int64_t)bf16_piece(p, next_panel) * 2;
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
                            t->channels, at->n, 0, at->y + y, at->x);
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

/* Columns [c0, c1) of tiles [t0, t1). */
static void transform_output(const hn_winograd_args *a, int64_t t0, int64_t t1, int64_t c0, int64_t c1,
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
  for (int64_t i = t0; i < t1; i++) {
    place at = locate(p, i);
    t.rows = (int32_t)hn_min(p->out[0] - at.y, p->m), t.columns = (int32_t)hn_min(p->out[1] - at.x, p->m);
    t.m = m->m + (i - t0) * m->tile;
    void *to = (void *)(uintptr_t)element(a->y, hn_view_at(&p->y, at.n, 0, at.y, at.x) + c0, p->narrow_out);
    t.y = later ? wide : to;
    if (e->flags & HN_EPI_RESIDUAL)
      t.residual = element(residual, hn_view_at(&e->residual_view, at.n, 0, at.y, at.x) + c0,
                           e->narrow_residual != NULL);
    a->ops->output(&t);
    if (e->n_post) post_pixels(a, &t, &at, c0, later ? wide : NULL, to);
  }
}

/* Panels [q0, q1) of a block of tiles, of the task's panels up to p_end. */
static void panels(const hn_winograd_args *a, int64_t b0, int64_t b1, int64_t q0, int64_t q1, int64_t p_end,
                   const float *v, float *m) {
  const hn_winograd *p = a->plan;
  const int64_t tiles = b1 - b0, nr = tile_columns(p, a->gemm);
  if (!p->bf16_rows) {
    const int64_t pitch = m_pitch(p, a->gemm);
    const products at = {m, tiles * pitch, pitch, 0};
    multiply(a, tiles, q0, q1, p_end, v, m);
    transform_output(a, b0, b1, q0 * nr, hn_min(q1 * nr, p->cout), &at);
    return;
  }
  multiply_bf16(a, tiles, q0, q1, p_end, (const uint16_t *)(const void *)v, m);
  const int64_t most = p->narrow_out && a->epilogue->n_post ? WIDE_PIXEL / nr : q1 - q0;
  for (int64_t q = q0; q < q1; q += most) {
    const products at = {m + (q - q0) * tiles * nr, (q1 - q0) * tiles * nr, nr, tiles * nr};
    transform_output(a, b0, b1, q * nr, hn_min(hn_min(q + most, q1) * nr, p->cout), &at);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hn_winograd_args *a = arg;
  const hn_winograd *p = a->plan;
  int64_t i = index % p->m_tasks, j = index / p->m_tasks;
  int64_t t0 = i * p->tiles / p->m_tasks, t1 = (i + 1) * p->tiles / p->m_tasks;
  int64_t p0 = j * p->n_panels / p->n_tasks, p1 = (j + 1) * p->n_panels / p->n_tasks;
  float *v = a->scratch + thread * hn_winograd_scratch(p, a->gemm), *m = v + v_floats(p);
  if (HN_FAULT("winograd_last_tile") && i == p->m_tasks - 1) t1--;
  int64_t blocks = hn_div_up(t1 - t0, p->block_tiles);
  if (a->bf16) a->bf16->begin((uint32_t)p->bf16_rows);
  for (int64_t b = 0; b < blocks; b++) {
    int64_t b0 = t0 + b * (t1 - t0) / blocks, b1 = t0 + (b + 1) * (t1 - t0) / blocks;
    transform_input(a, b0, b1, v);
    for (int64_t q0 = p0; q0 < p1; q0 += p->block_panels) {
      int64_t q1 = hn_min(q0 + p->block_panels, p1);
      panels(a, b0, b1, q0, q1, p1, v, m);
    }
  }
  if (a->bf16) a->bf16->end();
}

void hn_winograd_exec(const hn_winograd_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_winograd *p = a->plan;
  if (p->tiles == 0 || p->cout == 0) return;
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
