#include "backends/cpu/product/conv_driver.h"

#include <stdbool.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

/* Distance between the rows of the scratch tile: an odd number of cache lines, so that rows spread over the
 * L1 sets. */
static int64_t scratch_ld(const hn_conv *c) { return (c->kc + 15) / 16 * 16 + 16; }

/* The same of a block of rows that is copied. */
static int64_t copied_ld(const hn_conv *c) { return hn_fill_up(c->k, 16) + 16; }

size_t hn_conv_scratch(const hn_conv *c, const hn_gemm_ops *o) {
  const int64_t own = c->padded > c->copied ? c->padded : c->copied;
  return (size_t)(own ? hn_fill_up(own, 16) : scratch_ld(c) * o->mr) + 16;
}

/* Divides the work of one group into m_tasks x n_tasks.  Every m task reads all weights of its columns, every
 * n task all input rows of its tiles: among the divisions that keep the threads equally busy, take the one
 * that reads least. */
static void plan_tasks(hn_conv *c, int64_t tile_rows, uint32_t threads) {
  double flop = 2.0 * (double)(c->tiles * tile_rows) * (double)c->cout * (double)c->k;
  int64_t want = threads;
  if (c->groups >= 4 * (int64_t)threads || threads == 1) want = 1;
  /* Several tasks a thread even out disturbances, but read their operands more often: for large steps only.
   */
  else if (flop > 4e8 * threads)
    want = 2 * (int64_t)threads;
  /* Too little for two threads, in cycles: 64 FLOP in each, and some for every run of taps gathered. */
  double runs = c->direct ? 0 : 16.0 * (double)(c->tiles * tile_rows * c->n_runs);
  if ((flop / 64 + runs) * (double)c->groups < 6250) want = 1;
  /* In cycles of one thread: 32 multiply-adds a cycle, 12 bytes a cycle for weights (pulled in ahead), 4 for
   * the input: where a step is divided by columns, part of it was written by another core.  8 floats a cycle
   * for gathering rows. */
  double pixels = (double)(c->tiles * tile_rows), compute = pixels * (double)c->k * (double)c->cout / 32;
  double weights = (double)c->k * (double)c->cout * 4 / 12;
  double rows = (double)(c->batch * c->in[0] * c->in[1] * c->in[2] * c->cin) +
                (c->direct ? 0 : pixels * (double)c->k / 8);
  double best = 0;
  c->m_tasks = c->n_tasks = 1;
  for (int64_t n = 1; n <= c->n_panels && n <= 4 * want; n++) {
    int64_t m = c->tiles ? hn_min(hn_div_up(want, n), c->tiles) : 1, tasks = m * n;
    int64_t busiest = hn_div_up(tasks, threads) * hn_div_up(c->tiles, m) * hn_div_up(c->n_panels, n),
            all = c->tiles * c->n_panels;
    double share = all ? (double)busiest / (double)all : 1; /* of the work, done by the busiest thread */
    double cycles = compute * share +
                    (weights * (double)m + rows * (double)n) / (threads < tasks ? threads : (double)tasks);
    if (best == 0 || cycles < best * 0.999) best = cycles, c->m_tasks = m, c->n_tasks = n;
  }
}

void hn_conv_set_lines(hn_conv *c, const int64_t kernel[3], const int64_t dilation[3], bool single_taps) {
  const int64_t row = c->in[2] * c->in_pitch, slice = c->in[1] * row;
  const bool solid = kernel[0] > 1 && kernel[1] > 1;
  c->deep = kernel[0] > 1, c->single_taps = single_taps;
  c->tap_step = c->line_taps = c->run_step = 0;
  if (single_taps) c->tap_step = dilation[2] * c->in_pitch, c->line_taps = kernel[2];
  if (!solid) /* lines are rows, or slices, at one distance */
    c->run_step = kernel[1] > 1 ? dilation[1] * row : dilation[0] * slice;
  else if (!single_taps) /* rows of taps, and slices of them */
    c->tap_step = dilation[1] * row, c->line_taps = kernel[1], c->run_step = dilation[0] * slice;
}

/* Bringing a pixel's taps together: a vector a cycle, and some 20 cycles for each run of memory. */
static double row_cycles(const hn_conv *c) { return (double)c->k / 16 + 20.0 * (double)c->n_runs; }

/* The share of pixels some of whose taps lie outside the image. */
static double border_share(const hn_conv *c) {
  if (!c->shifted) return 0;
  double in = 1;
  for (int i = 1; i < 3; i++) in *= c->grid[i] > 2 ? 1 - 2.0 / (double)c->grid[i] : 0;
  return 1 - in;
}

static double padding_cycles(const hn_conv *c, double lines) {
  const double rows = lines * (double)c->stride[1] + (double)(c->window[0] - 1);
  const double pixel = c->in_pitch == c->cin ? 0 : 3; /* copied one by one */
  return rows * (20 + (double)c->padded_size[1] * (pixel + (double)c->cin / 8));
}

/* A small input, or one group's part of it, is copied once with zeros around it where that is less work than
 * to gather its pixels' taps: all of them, or those at the border. */
static void plan_padding(hn_conv *c, const hn_gemm_ops *o, size_t l1, size_t l2) {
  c->padded = 0;
  if (!c->shifted || !c->window[0] || c->pad[0] < 0 || c->pad[1] < 0 || c->in_k != 1 || !c->run_step ||
      (c->tap_step && (!c->single_taps || c->tap_step != c->in_pitch)) || c->grid[0] != 1 || c->in[0] != 1 ||
      c->k > (int64_t)(l1 / 2 / 4 / o->mr))
    return;
  const int64_t filled = hn_fill_up(c->grid[2], o->mr), pixels = c->grid[1] * c->grid[2];
  /* A third of every tile would be empty; half, where single taps are gathered. */
  if (c->single_taps ? filled > 2 * c->grid[2] : filled * 3 > c->grid[2] * 4) return;
  for (int i = 0; i < 2; i++) c->padded_size[i] = (c->grid[i + 1] - 1) * c->stride[i + 1] + c->window[i];
  const int64_t floats = c->batch * c->padded_size[0] * c->padded_size[1] * c->cin;
  if (floats * 4 > (int64_t)l2 / 2) return;
  const double gather = (double)pixels * row_cycles(c) * (c->strided ? border_share(c) : 1);
  if (padding_cycles(c, (double)c->grid[1]) < gather) c->padded = floats;
}

/* Are the rows of A read as they lie? */
static bool as_it_lies(const hn_conv *c) { return c->direct && !c->copy && !c->copied; }

/* Floats from row to row of A where it is read as it lies. */
static int64_t row_distance(const hn_conv *c) {
  if (c->copied) return 0;
  if (c->direct) return c->copy ? 0 : c->in_pitch;
  return c->strided && !c->padded ? c->stride[2] * c->in_pitch : 0;
}

/* Rows that lie a multiple of a way's bytes apart meet in the same sets of L1: a tile of more rows than there
 * are ways reads all of them from L2, for every value of k. (The index is below the page's bits: a way holds
 * 4 KB.) */
static int64_t most_rows(const hn_conv *c, const hn_gemm_ops *o, size_t l1) {
  enum { WAY = 4096 };
  const int64_t ways = (int64_t)(l1 / WAY);
  const int64_t distance = row_distance(c) * (int64_t)sizeof(float);
  const bool meet = distance && distance % WAY == 0;
  return meet && ways < o->mr && 4 * ways >= 3 * o->mr && !HN_FAULT("conv_rows_that_meet") ? ways : o->mr;
}

/* Would rows, each a pixel, meet in L1 as they lie? Where more of them than a set has ways do, they are
 * copied to a distance at which they do not. Strided tiles are of one line. */
static bool rows_meet(const hn_conv *c, const hn_gemm_ops *o, size_t l1) {
  enum { WAY = 4096, SMALL = 40 << 10 };
  if (l1 >= SMALL) return false;
  const int64_t distance = row_distance(c) * (int64_t)sizeof(float);
  if (c->direct) return distance % (WAY / 2) == 0;
  return distance && distance % WAY == 0 && hn_min(c->grid[2], o->mr) > (int64_t)(l1 / WAY);
}

/* Does what a tile reads of the input stay in L2 while the panels of weights pass? Pixels beside each other
 * share taps. */
static bool is_near(const hn_conv *c, const hn_gemm_ops *o, size_t l2) {
  const int64_t run = c->n_runs ? c->k / c->n_runs : 0, apart = c->stride[2] * c->in_pitch;
  return c->n_runs * ((o->mr - 1) * hn_min(apart, run) + run) <= (int64_t)(l2 / 4 / 4);
}

/* Blocks of K, of rows and of weights, and the division into tasks. */
static void plan_blocks(hn_conv *c, const hn_gemm_ops *o, int64_t tile_rows, uint32_t threads, size_t l1,
                        size_t l2) {
  /* A tile of A takes half of L1 where it is brought together there, and nearly all where it is read as it
   * lies: a line of weights is used once for each tile in any case, and each further block of K reads and
   * writes all of C. */
  const size_t room = as_it_lies(c) || c->copied ? l1 / 8 * 7 : l1 / 2;
  int64_t kc = (int64_t)(room / 4 / o->mr);
  if (kc < 64) kc = 64;
  int64_t blocks = c->strided ? 1 : hn_div_up(c->k, kc);
  c->kc = blocks ? hn_div_up(c->k, blocks) : 1;
  plan_tasks(c, tile_rows, threads);
  int64_t columns = hn_div_up(c->n_panels, c->n_tasks) * o->nr, tiles = hn_div_up(c->tiles, c->m_tasks);
  c->resident = c->k * columns * 4 <= (int64_t)l2 * 5 / 8;
  if (tiles * tile_rows > 1024 && c->resident) {
    /* Finish a tile at a time, so that C stays in L1. */
    c->block_tiles = 1;
    c->block_columns = c->first_columns = columns;
    return;
  }
  /* Blocks of rows, each met by blocks of weights that stay in L2 while the next one is pulled in. What a
   * block of K reads of A stays there, too: an eighth of L2, or 12 tiles where that is more, since weights
   * come from farther than A. Where A is gathered, blocks are wide from the first on, because every block
   * gathers again. */
  enum { ROW_TILES = 12, FIRST_COLUMNS = 32 };
  const bool gathered = !as_it_lies(c) && !c->copied;
  const int64_t most = hn_max((int64_t)(l2 / 8) / (c->kc * 4 * o->mr), ROW_TILES),
                parts = hn_div_up(tiles, most);
  c->block_tiles = parts ? hn_div_up(tiles, parts) : 1;
  c->block_columns = hn_max((int64_t)(l2 / (gathered ? 4 : 8)) / (c->kc * 4) / o->nr, 1) * o->nr;
  c->first_columns =
      gathered || tiles < 4 ? c->block_columns : hn_min(hn_fill_up(FIRST_COLUMNS, o->nr), c->block_columns);
}

void hn_conv_plan(hn_conv *c, const hn_gemm_ops *o, uint32_t threads, size_t l1, size_t l2) {
  const bool one_tap = c->k == c->cin && c->n_runs == 1;
  int64_t pixels = c->grid[0] * c->grid[1] * c->grid[2];
  bool same_grid = true;
  for (int i = 0; i < 3; i++) same_grid = same_grid && c->grid[i] == c->in[i] && c->stride[i] == 1;
  /* One line may run through the whole output when its pixels have one distance everywhere. */
  bool row = c->grid[1] == 1 || c->out.row == c->grid[2] * c->out.pixel;
  bool slice = c->grid[0] == 1 || c->out.slice == c->grid[1] * c->grid[2] * c->out.pixel;
  bool image = c->batch == 1 || c->out.batch == pixels * c->out.pixel;
  bool flat = row && slice && image;
  /* What is near is read in one go, run by run, without gathering: tiles must not leave their line for that.
   * Single taps cost most to gather: even tiles that a line does not fill are better. Where taps reach over
   * its ends, a short line falls to pieces. */
  const bool ends = !c->window[1] || c->pad[1] || (c->grid[2] - 1) * c->stride[2] + c->window[1] > c->in[2];
  const int64_t shortest = c->single_taps || !ends ? o->mr / 2 : 2 * o->mr;
  const bool alone = one_tap && !c->shifted && c->in_k == 1; /* a row is a pixel */
  c->direct = alone && same_grid && (c->batch == 1 || c->in_batch == pixels * c->in_pitch);
  c->strided = !c->direct && c->run_step > 0 && c->in_k == 1 && is_near(c, o, l2) && c->grid[2] >= shortest;
  c->n_panels = hn_div_up(c->cout, o->nr);
  c->copied = c->copy = 0;
  c->copied = alone && rows_meet(c, o, l1) && c->n_panels >= 4 && !HN_FAULT("conv_meeting_rows_in_place");
  if (c->copied) c->strided = 0;
  plan_padding(c, o, l1, l2);
  if (c->strided || c->padded) flat = false;
  c->line = flat ? c->batch * pixels : c->grid[2];
  c->lines = flat ? 1 : c->batch * c->grid[0] * c->grid[1];
  c->down = c->deep && !flat && !c->padded;
  c->skips = c->idle > (c->strided ? 0 : 0.02) && !c->padded;
  const int64_t tile_rows = most_rows(c, o, l1);
  c->tiles_per_line = hn_div_up(c->line, tile_rows);
  c->tiles = c->tiles_per_line * c->lines;
  plan_blocks(c, o, tile_rows, threads, l1, l2);
  if (!c->copied) return;
  const int64_t longest = c->tiles_per_line ? hn_div_up(c->line, c->tiles_per_line) : 0;
  c->copied = c->block_tiles * longest * copied_ld(c);
  if (c->copied <= (int64_t)l2) return; /* four times L2 */
  c->copied = 0, c->copy = c->direct;   /* tile by tile: for each block of weights anew, but in L1 */
  plan_blocks(c, o, tile_rows, threads, l1, l2);
}

double hn_conv_seconds(const hn_conv *c, const hn_gemm_ops *o, const hone_machine *machine) {
  return hn_conv_seconds_at(c, o, machine, 1);
}

double hn_conv_seconds_at(const hn_conv *c, const hn_gemm_ops *o, const hone_machine *machine, double share) {
  int64_t vectors = hn_div_up(hn_div_up(c->cout, o->vw), c->n_tasks),
          rows = hn_div_up(c->lines * c->line, c->m_tasks);
  double rounds =
      (double)hn_div_up(c->groups * c->m_tasks * c->n_tasks, machine->threads ? machine->threads : 1);
  double k = (double)c->k, width = (double)(vectors * o->vw), pixels = (double)rows;
  /* A panel of one vector makes one product of each broadcast. */
  double products = k * pixels * ((double)vectors / 2 + (vectors % 2 ? 0.08 : 0)) / 0.85 * share;
  double layer = (double)(c->groups * c->cout) * k * 4;
  /* Tiles over the end of a line lie in two: what one leaves out the other may need. */
  if (c->skips) products *= 1 - c->idle * (double)c->grid[2] / (double)(c->grid[2] + o->mr - 1);
  double weights = hn_weights_cycles(k * width * 4, layer, o, machine);
  double gather = pixels * row_cycles(c);
  /* Where the kernel walks lines of taps, it begins and ends a loop for each. */
  const double walk = 3.2 * pixels * (double)c->n_runs;
  if (c->direct)
    gather = 0;
  else if (c->padded)
    gather = padding_cycles(c, (double)hn_div_up(c->lines, c->m_tasks)) + walk;
  else if (c->strided) /* of lines of taps, the few at the border are not counted */
    gather = (c->single_taps ? gather * border_share(c) : 0) + walk;
  double touch = 0.05 * 4 * pixels * ((double)c->cin + width);
  /* Where rows are brought, or walked, a tile begins and ends with some 200 cycles. What is above was fitted
   * with tiles of 14 rows, and holds that part of it. */
  if (!c->direct) touch += 200 * pixels * (1.0 / o->mr - 1.0 / 14);
  return rounds * (hn_overlapped_cycles(products, weights) + gather + touch) / hn_core_hertz(o, machine) +
         7e-7;
}

typedef struct position {
  int64_t n, z, y, x;
} position;

static position locate(const hn_conv *c, int64_t line, int64_t offset) {
  position p;
  int64_t i = line * c->line + offset;
  p.x = i % c->grid[2], i /= c->grid[2];
  p.n = i / (c->grid[0] * c->grid[1]), i %= c->grid[0] * c->grid[1];
  p.y = c->down ? i / c->grid[0] : i % c->grid[1];
  p.z = c->down ? i % c->grid[0] : i / c->grid[1];
  return p;
}

/* A tile. Divisions take as long as a good part of a small tile's products: a walk over tiles needs none. */
typedef struct cursor {
  bool even; /* pixels have one distance in all that is read and written: they may be told by their number */
  int64_t tile, line, column, m,
      remainder;                /* m: its first pixel in the line, column * line / tiles_per_line */
  int64_t step, step_remainder; /* from one tile to the next */
  position start; /* of the line, which is no longer than one of the grid; not used where `even` */
} cursor;

/* Is a line of tiles longer than one of the grid? It runs through all of the output then. */
static bool runs_on(const hn_conv *c) { return c->line > c->grid[2]; }

static bool evenly(const hn_conv *c, const hn_view *v) {
  return (c->grid[1] == 1 || v->row == c->grid[2] * v->pixel) &&
         (c->grid[0] == 1 || v->slice == c->grid[1] * c->grid[2] * v->pixel) &&
         (c->batch == 1 || v->batch == c->grid[0] * c->grid[1] * c->grid[2] * v->pixel);
}

static cursor cursor_at(const hn_conv_args *a, int64_t tile) {
  const hn_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  cursor at = {.tile = tile, .line = tile / c->tiles_per_line, .column = tile % c->tiles_per_line};
  at.m = at.column * c->line / c->tiles_per_line;
  at.remainder = at.column * c->line % c->tiles_per_line;
  at.step = c->line / c->tiles_per_line;
  at.step_remainder = c->line % c->tiles_per_line;
  at.even =
      runs_on(c) && c->direct && !c->copy && !e->n_post && (!e->residual || evenly(c, &e->residual_view));
  if (!runs_on(c)) at.start = locate(c, at.line, 0);
  return at;
}

/* The first pixel after the tile. */
static int64_t cursor_end(const hn_conv *c, const cursor *at) {
  return at->m + at->step + (at->remainder + at->step_remainder >= c->tiles_per_line);
}

static void cursor_next(const hn_conv *c, cursor *at) {
  at->tile++;
  at->m += at->step;
  at->remainder += at->step_remainder;
  if (at->remainder >= c->tiles_per_line) at->remainder -= c->tiles_per_line, at->m++;
  if (++at->column < c->tiles_per_line) return;
  at->column = at->m = at->remainder = 0;
  at->line++;
  position *p = &at->start;
  const int inner = c->down ? 0 : 1;
  int64_t *const of[] = {&p->z, &p->y};
  if (++*of[inner] < c->grid[inner]) return;
  *of[inner] = 0;
  if (++*of[1 - inner] < c->grid[1 - inner]) return;
  *of[1 - inner] = 0;
  p->n++;
}

/* Pixel m of the tile's line. */
static position cursor_pixel(const hn_conv *c, const cursor *at, int64_t m) {
  if (runs_on(c) && !at->even) return locate(c, at->line, m);
  position p = at->start;
  p.x = m;
  return p;
}

static void advance(const hn_conv *c, position *p) {
  if (++p->x < c->grid[2]) return;
  p->x = 0;
  if (++p->y < c->grid[1]) return;
  p->y = 0;
  if (++p->z < c->grid[0]) return;
  p->z = 0;
  p->n++;
}

static void copy_floats(float *restrict d, const float *restrict s, int64_t n) {
  if (n >= 64)
    memcpy(d, s, (size_t)n * sizeof *d);
  else
    for (int64_t i = 0; i < n; i++) d[i] = s[i];
}

static void zero_floats(float *d, int64_t n) {
  if (n > 0) memset(d, 0, (size_t)n * sizeof *d);
}

/* Row of A for the grid position p: values k0 .. k1-1 of its taps, zeros where a tap lies outside the image.
 */
static void gather_row(const hn_conv *c, const hn_tap_run *runs, const float *x, const position *p,
                       int64_t k0, int64_t k1, float *dst) {
  int64_t begin = 0;
  for (int64_t r = 0; r < c->n_runs && begin < k1; r++) {
    const hn_tap_run *t = &runs[r];
    int64_t length = t->taps * c->cin, end = begin + length;
    if (end <= k0) {
      begin = end;
      continue;
    }
    int64_t lo = begin > k0 ? begin : k0, hi = end < k1 ? end : k1;
    int64_t z = p->z * c->stride[0] + t->dz, y = p->y * c->stride[1] + t->dy,
            x0 = p->x * c->stride[2] + t->dx;
    float *d = dst + (lo - k0);
    if (z < 0 || z >= c->in[0] || y < 0 || y >= c->in[1] || x0 >= c->in[2] || x0 + (int64_t)t->taps <= 0) {
      zero_floats(d, hi - lo);
    } else {
      /* In floats from the run's begin: [live0, live1) lies inside the image. */
      int64_t live0 = x0 < 0 ? -x0 * c->cin : 0;
      int64_t live1 = x0 + t->taps > c->in[2] ? (c->in[2] - x0) * c->cin : length;
      if (HN_FAULT("conv_right_padding")) live1 = length;
      if (HN_FAULT("conv_left_padding")) live0 = 0;
      int64_t a = lo - begin, b = hi - begin;
      int64_t from = a > live0 ? a : live0, to = b < live1 ? b : live1;
      if (to <= from)
        zero_floats(d, b - a);
      else {
        const float *row = x + p->n * c->in_batch + ((z * c->in[1] + y) * c->in[2] + x0) * c->in_pitch;
        zero_floats(d, from - a);
        copy_floats(d + (from - a), row + from, to - from);
        zero_floats(d + (to - a), b - to);
      }
    }
    begin = end;
  }
}

/* Makes rows k0..k1 of a tile of m pixels contiguous; returns their distance. */
static int64_t gather(const hn_conv *c, const hn_tap_run *runs, const float *x, position p, int64_t m,
                      int64_t k0, int64_t k1, float *scratch) {
  int64_t ld = scratch_ld(c);
  for (int64_t i = 0; i < m; i++, advance(c, &p)) {
    float *d = scratch + i * ld;
    if (c->in_k != 1) {
      const float *s = x + p.n * c->in_batch + p.x * c->in_pitch + k0 * c->in_k;
      for (int64_t k = 0; k < k1 - k0; k++) d[k] = s[k * c->in_k];
    } else if (c->copy) {
      const float *s = x + p.n * c->in_batch + ((p.z * c->in[1] + p.y) * c->in[2] + p.x) * c->in_pitch;
      copy_floats(d, s + k0, k1 - k0);
    } else {
      gather_row(c, runs, x, &p, k0, k1, d);
    }
  }
  return ld;
}

/* Where a thread brings rows of A together. */
typedef struct room {
  float *floats;
  int64_t first; /* of a copied block: the number of its first pixel */
} room;

static int64_t number_of(const hn_conv *c, const cursor *at, int64_t m) { return at->line * c->line + m; }

/* Rows of a block of tiles, the first one at `from`, up to tile `end`. */
static void copy_rows(const hn_conv_args *a, int64_t group, const cursor *from, int64_t end, room *to) {
  const hn_conv *c = a->conv;
  const int64_t ld = copied_ld(c), per_line = c->tiles_per_line;
  position p = locate(c, from->line, from->m);
  to->first = number_of(c, from, from->m);
  int64_t n = end / per_line * c->line + end % per_line * c->line / per_line - to->first;
  if (HN_FAULT("conv_last_copied_row")) n--;
  for (int64_t i = 0; i < n; i++, advance(c, &p)) {
    const int64_t z = p.z * c->stride[0], y = p.y * c->stride[1], x = p.x * c->stride[2];
    const float *row =
        a->x + group * c->cin + p.n * c->in_batch + ((z * c->in[1] + y) * c->in[2] + x) * c->in_pitch;
    copy_floats(to->floats + i * ld, row, c->k);
  }
}

/* The runs of taps, [first, last) of them, that the m grid positions from p on (of one line) walk where they
 * lie: all that are not left out lie inside the image, and one distance leads from each to the next. Else
 * none. */
typedef struct walk {
  int64_t first, last;
} walk;

static walk walk_of(const hn_conv *c, const hn_tap_run *runs, const position *p, int64_t m) {
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
static bool met(const hn_conv *c, const hn_tap_run *t, position p, int64_t m) {
  for (int64_t i = 0, run; i < m; i += run) {
    run = hn_min(m - i, c->grid[2] - p.x);
    const int64_t z = p.z * c->stride[0] + t->dz, y = p.y * c->stride[1] + t->dy,
                  x = p.x * c->stride[2] + t->dx;
    if (z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1] && x < c->in[2] &&
        x + (run - 1) * c->stride[2] + (int64_t)t->taps > 0)
      return true;
    p.x += run - 1;
    advance(c, &p);
  }
  return false;
}

/* Takes from [*k0, *k1) what the m grid positions from p on all find outside of the image, at both ends.
 * Something is left in any case: results are written by products. */
static void leave_out(const hn_conv *c, const hn_tap_run *runs, position p, int64_t m, int64_t *k0,
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
  if (c->strided && !c->padded) {
    const hn_tap_run *last = a->runs + c->n_runs - 1;
    const int64_t dx = a->runs->dx, room = c->in[2] - (int64_t)last->taps - last->dx;
    f.run_k = c->k / c->n_runs;
    f.from = dx < 0 ? hn_div_up(-dx, step) : 0, f.to = room < 0 ? 0 : room / step + 1;
  }
  /* A contiguous activation: each panel's share of the rows that the tile after next will read, where more is
   * read than written; else the stores are what the memory system is busy with. */
  f.dense = as_it_lies(c) && c->in_pitch == c->k && c->block_tiles == 1 && c->k >= c->cout;
  /* Else a contiguous residual, of most columns at least: the rows that the next tile adds. */
  f.adds = (f.t.flags & HN_EPI_RESIDUAL) && c->direct && e->residual_view.pixel == c->cout &&
           (b->n1 - b->n0) * 4 >= c->cout * 3 && !HN_FAULT("conv_residual_not_asked");
  f.row = hn_div_up((f.dense ? c->k : c->cout) * o->nr, b->n1 - b->n0);
  return f;
}

/* Where the part of a tile that begins at m0 ends: pixels that can be read where they lie, whose runs of taps
 * are *w then, or those before and behind them, whose taps reach over the image's border. */
static int64_t part_end(const frame *f, const cursor *at, int64_t m0, int64_t m1, walk *w) {
  enum { WORTH = 4 };
  const hn_conv *c = f->a->conv;
  *w = (walk){0, 0};
  if (!c->strided || c->padded) return m1;
  position p = cursor_pixel(c, at, m0);
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
static void tile_part(frame *f, const cursor *at, int64_t m0, int64_t m1, walk in_place, const ahead *next,
                      const room *bring) {
  const hn_conv_args *a = f->a;
  const int64_t n0 = f->b->n0, n1 = f->b->n1;
  const hn_conv *c = a->conv;
  const hn_gemm_ops *o = a->ops;
  const hn_epilogue *e = a->epilogue;
  int64_t k0 = f->b->k0, k1 = f->k1, panel = 0;
  position p = cursor_pixel(c, at, m0);
  if (in_place.last)
    k0 = in_place.first * f->run_k, k1 = in_place.last * f->run_k;
  else if (c->skips)
    leave_out(c, a->runs, p, m1 - m0, &k0, &k1);
  const float *x = f->x;
  hn_gemm_tile *t = &f->t;
  t->k = t->segment = (size_t)(k1 - k0);
  t->m = (uint32_t)(m1 - m0);
  t->skip = t->jump = 0, t->turns = 0;
  if (c->copied) {
    t->lda = copied_ld(c);
    t->a = bring->floats + (number_of(c, at, m0) - bring->first) * t->lda + k0;
  } else if (as_it_lies(c)) {
    t->a = x + p.n * c->in_batch + ((p.z * c->in[1] + p.y) * c->in[2] + p.x) * c->in_pitch + k0;
    t->lda = c->in_pitch;
  } else if (c->padded) {
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
    t->lda = gather(c, a->runs, x, p, m1 - m0, k0, k1, bring->floats);
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
  for (int64_t i = 0, run; f->last && e->n_post && i < m1 - m0; i += run, advance(c, &p)) {
    run = hn_min(m1 - m0 - i, c->grid[2] - p.x);
    hn_epilogue_post_pixels(e, y + n0 + i * c->out.pixel, c->out.pixel, run, (size_t)(f->g0 + n0),
                            (size_t)(n1 - n0), p.n, p.z, p.y, p.x);
    p.x += run - 1;
  }
}

static void tile_row(frame *f, const cursor *at, const ahead *next, const room *bring) {
  static const ahead none = {0};
  const int64_t m1 = cursor_end(f->a->conv, at);
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
static bool in_strips(const hn_conv_args *a, const cursor *at) {
  return a->strip && as_it_lies(a->conv) && (at->even || !runs_on(a->conv));
}

/* Pixels m0..m1 of a line, panel after panel. What as many behind them read is asked for meanwhile. */
static void strip_of(const frame *f, hn_strip *s, const cursor *at, int64_t m0, int64_t m1) {
  const hn_conv_args *a = f->a;
  const hn_conv *c = a->conv;
  const hn_epilogue *e = a->epilogue;
  const int64_t n0 = f->b->n0, n1 = f->b->n1;
  const position p = cursor_pixel(c, at, m0);
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
static void strips(const frame *f, cursor *at, int64_t t1) {
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
    const cursor first = *at;
    int64_t end;
    do {
      end = cursor_end(c, at);
      cursor_next(c, at);
    } while (at->tile < t1 && at->line == first.line && end - first.m < rows);
    strip_of(f, &s, &first, first.m, end);
  }
}

void hn_conv_block(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, int64_t n0, int64_t n1,
                   float *scratch) {
  const hn_conv *c = a->conv;
  cursor first = t0 < t1 ? cursor_at(a, t0) : (cursor){0}, at = first;
  int64_t width = c->first_columns;
  room bring = {scratch, 0};
  if (c->block_tiles == 1 && !c->copied && c->kc >= c->k &&
      width >= n1 - n0) { /* one block, the same for all tiles */
    const block all = {0, n0, n1};
    const ahead none = {0};
    frame shared = frame_of(a, group, &all);
    if (t0 < t1 && in_strips(a, &at)) {
      strips(&shared, &at, t1);
      return;
    }
    for (; at.tile < t1; cursor_next(c, &at)) tile_row(&shared, &at, &none, &bring);
    return;
  }
  for (int64_t b0 = t0; b0 < t1; b0 += c->block_tiles, first = at, width = c->block_columns) {
    int64_t b1 = hn_min(b0 + c->block_tiles, t1);
    block b = {0, n0, hn_min(n0 + width, n1)};
    if (c->copied) copy_rows(a, group, &first, b1, &bring);
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
      for (; at.tile < b1; cursor_next(c, &at), f.index += panels) tile_row(&shared, &at, &f, &bring);
      b = next;
    }
  }
}

/* cin floats of each of n pixels, which leave gaps between each other, side by side. */
static void copy_pixels(const hn_conv *c, float *restrict d, const float *restrict x, int64_t n) {
  enum { BLOCK = 8 };
  for (int64_t i = 0; i < n; i++, d += c->cin, x += c->in_pitch) {
    int64_t k = 0;
    for (; k + BLOCK <= c->cin; k += BLOCK) memcpy(d + k, x + k, BLOCK * sizeof *d);
    for (; k < c->cin; k++) d[k] = x[k];
  }
}

/* Rows of the padded input of a group that the lines of tiles [t0, t1) read. */
static void pad_rows(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, float *to) {
  const hn_conv *c = a->conv;
  const int64_t row = c->padded_size[1] * c->cin, last = hn_div_up(t1, c->tiles_per_line);
  const int64_t left = c->pad[1] * c->cin, width = hn_min(c->in[2] * c->cin, row - left);
  for (int64_t line = t0 / c->tiles_per_line, made = 0; line < last;
       line++) { /* made: rows of the image so far */
    const int64_t n = line / c->grid[1], y = line % c->grid[1] * c->stride[1], end = y + c->window[0];
    if (made < y || y == 0) made = y;
    for (; made < end; made++) {
      float *d = to + (n * c->padded_size[0] + made) * row;
      const int64_t from = made - c->pad[0];
      if (from < 0 || from >= c->in[1] || width <= 0) {
        zero_floats(d, row);
        continue;
      }
      const float *x = a->x + group * c->cin + n * c->in_batch + from * c->in[2] * c->in_pitch;
      zero_floats(d, left);
      if (c->in_pitch == c->cin)
        copy_floats(d + (HN_FAULT("conv_left_padding") ? 0 : left), x, width);
      else
        copy_pixels(c, d + left, x, width / c->cin);
      const int64_t end_of = left + width - (HN_FAULT("conv_right_padding") ? c->cin : 0);
      zero_floats(d + end_of, row - end_of);
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
  if (c->padded) pad_rows(a, group, t0, t1, scratch);
  hn_conv_block(a, group, t0, t1, n0, hn_min(n1, c->cout), scratch);
}

void hn_conv_exec(const hn_conv_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_conv *c = a->conv;
  if (c->tiles == 0 || c->cout == 0 || c->groups == 0) return;
  parallel(pool, c->groups * c->m_tasks * c->n_tasks, task, (void *)(uintptr_t)a);
}
