#include "backends/cpu/conv/planes_driver.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

/* Remainders of the stride are numbered by the taps that meet them first. */
typedef struct phases {
  int64_t count, of[HN_PLANES_STRIDE]; /* a phase's remainder */
  int32_t tap[HN_PLANES_TAPS];         /* where a tap of output pixel 0 lies in a channel's planes */
} phases;

static phases find_phases(const hn_window *g, int64_t columns) {
  phases f = {0};
  for (int64_t u = 0; u < g->kernel[2]; u++) {
    const int64_t at = u * g->dilation[2], remainder = at % g->stride[2];
    int64_t i = 0;
    while (i < f.count && f.of[i] != remainder) i++;
    if (i == f.count) f.of[f.count++] = remainder;
    f.tap[u] = (int32_t)(i * columns + at / g->stride[2]);
  }
  return f;
}

static int64_t reach(const hn_window *g, int d, int64_t n) {
  return (n - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] + 1;
}

/* Mostly of none or one: calls for that would take longer than all the rest of a short row. */
static void zeros(float *to, int64_t n) {
  if (n == 1)
    *to = 0;
  else if (n > 1)
    memset(to, 0, (size_t)n * sizeof *to);
}

/* Columns that pixels of the output read: what lies behind them meets nothing but lanes that are not stored.
 */
static int64_t columns_read(const hn_window *g) {
  return g->out[2] + (g->kernel[2] - 1) * g->dilation[2] / g->stride[2];
}

void hn_planes_plan(hn_planes *p, uint32_t vw, uint32_t threads, size_t l2) {
  const hn_window *g = &p->window;
  /* What lies behind a row is read with its last vector, and written with what is spread. */
  p->columns = hn_fill_up(columns_read(g) + 2 * vw, 16);
  p->phases = find_phases(g, p->columns).count;
  /* A block's planes take a quarter of L2. Blocks read anew what they share: none is lower than its kernel.
   */
  const int64_t row = p->channels * p->phases * p->columns * (int64_t)sizeof(float),
                most = (int64_t)l2 / 4 / (row > 0 ? row : 1);
  p->slices = p->lines = 1;
  while (p->lines < g->out[1] && reach(g, 0, 1) * reach(g, 1, p->lines + 1) <= most) p->lines++;
  while (p->lines == g->out[1] && p->slices < g->out[0] &&
         reach(g, 0, p->slices + 1) * reach(g, 1, p->lines) <= most)
    p->slices++;
  const int64_t want = threads > 1 ? 2 * (int64_t)threads : 1;
  while (p->batch * hn_div_up(g->out[0], p->slices) * hn_div_up(g->out[1], p->lines) < want &&
         (p->slices > 1 || p->lines > g->kernel[1])) {
    if (p->slices > 1)
      p->slices = hn_div_up(p->slices, 2);
    else
      p->lines = hn_div_up(p->lines, 2);
  }
  p->z_blocks = hn_div_up(g->out[0], p->slices), p->y_blocks = hn_div_up(g->out[1], p->lines);
  /* As many for each thread, of as many rows: else one works while the others wait. */
  const int64_t even = hn_fill_up(p->y_blocks, threads);
  if (p->y_blocks > 1 && p->batch * p->z_blocks * p->y_blocks % threads && g->out[1] >= even * g->kernel[1] &&
      !HN_FAULT("planes_blocks_uneven"))
    p->y_blocks = even;
  if (p->y_blocks > 0)
    p->lines = hn_div_up(g->out[1], p->y_blocks), p->y_blocks = hn_div_up(g->out[1], p->lines);
  p->in_slices = hn_min(reach(g, 0, p->slices), g->in[0]),
  p->in_lines = hn_min(reach(g, 1, p->lines), g->in[1]);
}

static int64_t weights_row(const hn_planes *p) { return p->window.kernel[2] * HN_PLANES_OUTPUTS; }

static int64_t weights_block(const hn_planes *p) {
  return p->window.kernel[0] * p->window.kernel[1] * p->channels * weights_row(p);
}

size_t hn_planes_packed_size(const hn_planes *p) {
  return (size_t)(hn_div_up(p->outputs, HN_PLANES_OUTPUTS) * weights_block(p));
}

void hn_planes_pack(const hn_planes *p, const float *w, float *dst) {
  const int64_t rows = p->window.kernel[0] * p->window.kernel[1], taps = p->window.kernel[2];
  memset(dst, 0, hn_planes_packed_size(p) * sizeof *dst);
  for (int64_t o = 0; o < p->outputs; o++)
    for (int64_t c = 0; c < p->channels; c++)
      for (int64_t t = 0; t < rows * taps; t++)
        dst[o / HN_PLANES_OUTPUTS * weights_block(p) + o % HN_PLANES_OUTPUTS +
            ((t / taps * p->channels + c) * taps + t % taps) * HN_PLANES_OUTPUTS] =
            w[(o * p->channels + c) * rows * taps + t];
}

size_t hn_planes_scratch(const hn_planes *p) {
  return (size_t)hn_fill_up(p->in_slices * p->in_lines * p->channels * p->phases * p->columns, 16);
}

/* A block of output rows, and the input rows under it: [z0, ...) x [y0, ...). */
typedef struct block {
  const hn_planes_args *a;
  const phases *f;
  int64_t image, z0, y0;
  float *planes; /* [in_slices][in_lines][channels][phases][columns] */
} block;

static float *plane_of(const block *b, int64_t z, int64_t y) {
  const hn_planes *p = b->a->p;
  return b->planes + ((z - b->z0) * p->in_lines + y - b->y0) * p->channels * p->phases * p->columns;
}

static void lay_out(const block *b, int64_t z, int64_t y) {
  const hn_planes *p = b->a->p;
  const hn_window *g = &p->window;
  const float *row = b->a->x + b->image * p->in_batch + (z * g->in[1] + y) * g->in[2] * p->in_pixel;
  float *to = plane_of(b, z, y);
  const int64_t read = columns_read(g);
  const size_t whole = (size_t)((g->in[2] - 1) * p->in_pixel + p->channels);
  for (int64_t c = 0; c < p->channels; c++)
    for (int64_t i = 0; i < p->phases; i++, to += p->columns) {
      /* Column j is that of the input's j * stride + shift. */
      const int64_t stride = g->stride[2], shift = b->f->of[i] - g->pad[2], last = g->in[2] - 1 - shift;
      int64_t from = shift < 0 ? hn_div_up(-shift, stride) : 0, until = last < 0 ? 0 : last / stride + 1;
      from = hn_min(from, read), until = hn_min(until, read);
      if (from >= until) {
        zeros(to, read);
        continue;
      }
      zeros(to, HN_FAULT("planes_left_padding") ? 0 : from);
      const int64_t at = (from * stride + shift) * p->in_pixel + c;
      b->a->ops->spread(to + from, row + at, (size_t)(stride * p->in_pixel), (size_t)(until - from),
                        whole - (size_t)at);
      zeros(to + until, read - until);
    }
}

static void output_row(const block *b, int64_t z, int64_t y) {
  const hn_planes_args *a = b->a;
  const hn_planes *p = a->p;
  const hn_window *g = &p->window;
  const hn_epilogue *e = a->epilogue;
  hn_window_row under[HN_WINDOW_ROWS];
  const float *x[HN_PLANES_ROWS], *w[HN_PLANES_ROWS];
  uint32_t n = 0, live = hn_window_rows(g, z, y, under);
  if (HN_FAULT("planes_last_row") && live > 1) live--;
  for (uint32_t v = 0; v < live; v++)
    for (int64_t c = 0; c < p->channels; c++, n++) {
      x[n] = plane_of(b, under[v].z, under[v].y) + c * p->phases * p->columns;
      w[n] = a->w + (under[v].kernel * p->channels + c) * weights_row(p);
    }
  const hn_planes_row r = {.x = x,
                           .w = w,
                           .w_block = weights_block(p),
                           .tap = b->f->tap,
                           .rows = n,
                           .taps = (uint32_t)g->kernel[2],
                           .outputs = (uint32_t)p->outputs,
                           .y = a->y + hn_view_at(&p->y, b->image, z, y, 0),
                           .y_pixel = p->y.pixel,
                           .n = g->out[2],
                           .flags = e->flags,
                           .lo = e->lo,
                           .hi = e->hi,
                           .slope = e->slope,
                           .bias = e->bias};
  a->ops->row(&r);
  if (e->n_post) hn_epilogue_post_pixels(e, r.y, r.y_pixel, r.n, 0, r.outputs, b->image, z, y, 0);
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const hn_planes_args *a = arg;
  const hn_planes *p = a->p;
  const hn_window *g = &p->window;
  const phases f = find_phases(g, p->columns);
  const int64_t rest = t / p->y_blocks, z0 = rest % p->z_blocks * p->slices, y0 = t % p->y_blocks * p->lines;
  const int64_t z1 = hn_min(z0 + p->slices, g->out[0]), y1 = hn_min(y0 + p->lines, g->out[1]);
  const int64_t top[2] = {z0 * g->stride[0] - g->pad[0], y0 * g->stride[1] - g->pad[1]};
  const int64_t end[2] = {hn_min(top[0] + reach(g, 0, z1 - z0), g->in[0]),
                          hn_min(top[1] + reach(g, 1, y1 - y0), g->in[1])};
  const block b = {a,
                   &f,
                   rest / p->z_blocks,
                   hn_max(top[0], 0),
                   hn_max(top[1], 0),
                   a->scratch + thread * hn_planes_scratch(p)};
  for (int64_t z = b.z0; z < end[0]; z++)
    for (int64_t y = b.y0; y < end[1]; y++) lay_out(&b, z, y);
  for (int64_t z = z0; z < z1; z++)
    for (int64_t y = y0; y < y1; y++) output_row(&b, z, y);
}

void hn_planes_exec(const hn_planes_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_planes *p = a->p;
  const int64_t *out = p->window.out;
  if (p->outputs == 0 || out[0] <= 0 || out[1] <= 0 || out[2] <= 0) return;
  parallel(pool, p->batch * p->z_blocks * p->y_blocks, task, (void *)(uintptr_t)a);
}

/* Cycles of the cost model. */
#define PRODUCT 0.6 /* a multiply-add of a vector */
#define TOUCH 0.2   /* a value that is written */
#define TURN 20     /* a block of outputs of a vector of pixels */
#define PLANE 20    /* of an input row that is laid out */
#define ROW 80      /* an output row, and an input row that is laid out */

double hn_planes_seconds(const hn_planes *p, const hn_planes_ops *ops, const hone_machine *machine,
                         hn_isa isa) {
  const hn_window *g = &p->window;
  const double vectors = (double)hn_div_up(g->out[2], ops->vw),
               blocks = (double)hn_div_up(p->outputs, HN_PLANES_OUTPUTS),
               k = (double)(g->kernel[0] * g->kernel[1] * g->kernel[2] * p->channels);
  const double out_rows = (double)(p->batch * g->out[0] * g->out[1]);
  /* Blocks read anew what they share with their neighbours. */
  const int64_t again = hn_max(reach(g, 1, 1) - g->stride[1], 0) * (p->y_blocks - 1),
                lines = hn_min(p->in_lines * p->y_blocks, g->in[1] + again);
  const double in_rows = (double)(p->batch * p->z_blocks * p->in_slices * lines);
  const double distance = (double)(p->in_pixel * g->stride[2]), lanes = (double)ops->vw;
  /* A vector that is spread takes as many shuffles as values lie between two of it; without them, a load and
   * a store for each. */
  const double spread = distance == 1 ? 2 : lanes >= 16 && distance <= 16 ? 2 + 0.8 * distance : 1.5 * lanes;
  const double products = out_rows * (vectors * blocks * (k * HN_PLANES_OUTPUTS * PRODUCT + TURN) + ROW);
  const double planes = (double)(p->channels * p->phases * hn_div_up(columns_read(g), ops->vw)),
               rows = in_rows * (planes * spread + (double)(p->channels * p->phases) * PLANE + ROW);
  const int64_t threads = machine->threads ? machine->threads : 1,
                tasks = p->batch * p->z_blocks * p->y_blocks;
  const double share = tasks ? (double)hn_div_up(tasks, threads) / (double)tasks : 1;
  const double written = out_rows * (double)(g->out[2] * p->outputs) * TOUCH;
  return share * (products + rows + written) / hn_core_hertz(hn_gemm_find(isa), machine) + 1e-6;
}
