#include "backends/cpu/product/conv_plan.h"

#include "base/fault.h"
#include "base/integers.h"

size_t hn_conv_scratch(const hn_conv *c, const hn_gemm_ops *o) {
  return (size_t)(c->brought ? hn_fill_up(c->brought, 16) : hn_conv_tile_ld(c) * o->mr) + 16;
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
  double runs = c->matrix ? 0 : 16.0 * (double)(c->tiles * tile_rows * c->n_runs);
  if ((flop / 64 + runs) * (double)c->groups < 6250) want = 1;
  /* In cycles of one thread: 32 multiply-adds a cycle, 12 bytes a cycle for weights (pulled in ahead), 4 for
   * the input: where a step is divided by columns, part of it was written by another core.  8 floats a cycle
   * for gathering rows. */
  double pixels = (double)(c->tiles * tile_rows), compute = pixels * (double)c->k * (double)c->cout / 32;
  double weights = (double)c->k * (double)c->cout * 4 / 12;
  double rows = (double)(c->batch * c->in[0] * c->in[1] * c->in[2] * c->cin) +
                (c->matrix ? 0 : pixels * (double)c->k / 8);
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
static bool plan_padding(hn_conv *c, const hn_gemm_ops *o, size_t l1, size_t l2) {
  if (!c->shifted || !c->window[0] || c->pad[0] < 0 || c->pad[1] < 0 || c->in_k != 1 || !c->run_step ||
      (c->tap_step && (!c->single_taps || c->tap_step != c->in_pitch)) || c->grid[0] != 1 || c->in[0] != 1 ||
      c->k > (int64_t)(l1 / 2 / 4 / o->mr))
    return false;
  const int64_t filled = hn_fill_up(c->grid[2], o->mr), pixels = c->grid[1] * c->grid[2];
  /* A third of every tile would be empty; half, where single taps are gathered. */
  if (c->single_taps ? filled > 2 * c->grid[2] : filled * 3 > c->grid[2] * 4) return false;
  for (int i = 0; i < 2; i++) c->padded_size[i] = (c->grid[i + 1] - 1) * c->stride[i + 1] + c->window[i];
  const int64_t floats = c->batch * c->padded_size[0] * c->padded_size[1] * c->cin;
  if (!floats || floats * 4 > (int64_t)l2 / 2) return false;
  const double share = c->read == HN_CONV_WALKED ? border_share(c) : 1;
  if (padding_cycles(c, (double)c->grid[1]) >= (double)pixels * row_cycles(c) * share) return false;
  c->read = HN_CONV_PADDED, c->brought = floats;
  return true;
}

/* Floats from row to row of A where it is read as it lies. */
static int64_t row_distance(const hn_conv *c) {
  return c->read == HN_CONV_IN_PLACE ? c->in_pitch
         : c->read == HN_CONV_WALKED ? c->stride[2] * c->in_pitch
                                     : 0;
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
  if (c->matrix) return distance % (WAY / 2) == 0;
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
  const bool whole = c->read == HN_CONV_IN_PLACE || c->read == HN_CONV_COPIED_ONCE;
  const size_t room = whole ? l1 / 8 * 7 : l1 / 2;
  int64_t kc = (int64_t)(room / 4 / o->mr);
  if (kc < 64) kc = 64;
  int64_t blocks = c->read == HN_CONV_WALKED ? 1 : hn_div_up(c->k, kc);
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
  const int64_t most = hn_max((int64_t)(l2 / 8) / (c->kc * 4 * o->mr), ROW_TILES),
                parts = hn_div_up(tiles, most);
  c->block_tiles = parts ? hn_div_up(tiles, parts) : 1;
  c->block_columns = hn_max((int64_t)(l2 / (whole ? 8 : 4)) / (c->kc * 4) / o->nr, 1) * o->nr;
  c->first_columns =
      !whole || tiles < 4 ? c->block_columns : hn_min(hn_fill_up(FIRST_COLUMNS, o->nr), c->block_columns);
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
  const bool near = c->run_step > 0 && c->in_k == 1 && is_near(c, o, l2) && c->grid[2] >= shortest;
  c->matrix = alone && same_grid && (c->batch == 1 || c->in_batch == pixels * c->in_pitch);
  c->read = c->matrix ? HN_CONV_IN_PLACE : near ? HN_CONV_WALKED : HN_CONV_GATHERED;
  c->brought = 0;
  c->n_panels = hn_div_up(c->cout, o->nr);
  if (alone && rows_meet(c, o, l1) && c->n_panels >= 4 && !HN_FAULT("conv_meeting_rows_in_place"))
    c->read = HN_CONV_COPIED_ONCE;
  const bool padded = plan_padding(c, o, l1, l2);
  if (c->read == HN_CONV_WALKED || padded) flat = false;
  c->line = flat ? c->batch * pixels : c->grid[2];
  c->lines = flat ? 1 : c->batch * c->grid[0] * c->grid[1];
  c->down = c->deep && !flat && !padded;
  c->skips = c->idle > (c->read == HN_CONV_WALKED ? 0 : 0.02) && !padded;
  const int64_t tile_rows = most_rows(c, o, l1);
  c->tiles_per_line = hn_div_up(c->line, tile_rows);
  c->tiles = c->tiles_per_line * c->lines;
  plan_blocks(c, o, tile_rows, threads, l1, l2);
  if (c->read != HN_CONV_COPIED_ONCE) return;
  const int64_t longest = c->tiles_per_line ? hn_div_up(c->line, c->tiles_per_line) : 0;
  c->brought = c->block_tiles * longest * hn_conv_copied_ld(c);
  if (c->brought <= (int64_t)l2) return; /* four times L2 */
  /* Tile by tile: for each block of weights anew, but in L1. */
  c->read = c->matrix ? HN_CONV_COPIED : HN_CONV_GATHERED, c->brought = 0;
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
  if (c->matrix)
    gather = 0;
  else if (c->read == HN_CONV_PADDED)
    gather = padding_cycles(c, (double)hn_div_up(c->lines, c->m_tasks)) + walk;
  else if (c->read == HN_CONV_WALKED) /* of lines of taps, the few at the border are not counted */
    gather = (c->single_taps ? gather * border_share(c) : 0) + walk;
  double touch = 0.05 * 4 * pixels * ((double)c->cin + width);
  /* Where rows are brought, or walked, a tile begins and ends with some 200 cycles. What is above was fitted
   * with tiles of 14 rows, and holds that part of it. */
  if (!c->matrix) touch += 200 * pixels * (1.0 / o->mr - 1.0 / 14);
  return rounds * (hn_overlapped_cycles(products, weights) + gather + touch) / hn_core_hertz(o, machine) +
         7e-7;
}
