#include "backends/cpu/conv/dots_driver.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

enum { LINE = 16 };

void hn_dots_plan(hn_dots *d, uint32_t threads, size_t l1) {
  enum { NARROWEST = 32, STEP = 16 };
  const hn_window *g = &d->window;
  /* The input rows of one output row fill L1. */
  const int64_t column = g->kernel[0] * g->kernel[1] * g->stride[2] * d->in_pixel * (int64_t)sizeof(float);
  const int64_t piece = hn_max(column > 0 ? (int64_t)l1 / column : 0, NARROWEST);
  d->pieces = hn_div_up(g->out[2], piece);
  d->piece = d->pieces > 0 ? hn_fill_up(hn_div_up(g->out[2], d->pieces), STEP) : 0;
  d->pieces = d->piece > 0 ? hn_div_up(g->out[2], d->piece) : 0;
  /* Blocks of rows read anew what they share: tall, and only where there are too few pieces. */
  const int64_t want = threads > 1 ? 4 * (int64_t)threads : 1, have = d->batch * d->pieces,
                rows = g->out[0] * g->out[1];
  d->row_blocks = have > 0 ? hn_max(hn_min(hn_div_up(want, have), rows), 1) : 1;
}

/* Floats of one filter's part of a kernel row: each begins with a line of the cache. */
static int64_t filter_of(const hn_dots *d) { return hn_fill_up(d->window.kernel[2] * d->channels, LINE); }

size_t hn_dots_packed_size(const hn_dots *d) {
  const int64_t *k = d->window.kernel;
  return (size_t)(k[0] * k[1] * d->outputs * filter_of(d));
}

void hn_dots_pack(const hn_dots *d, const float *w, float *dst) {
  const int64_t rows = d->window.kernel[0] * d->window.kernel[1], taps = d->window.kernel[2];
  memset(dst, 0, hn_dots_packed_size(d) * sizeof *dst);
  for (int64_t v = 0; v < rows; v++)
    for (int64_t o = 0; o < d->outputs; o++)
      for (int64_t u = 0; u < taps; u++)
        for (int64_t c = 0; c < d->channels; c++)
          dst[(v * d->outputs + o) * filter_of(d) + u * d->channels + c] =
              w[(o * d->channels + c) * rows * taps + v * taps + u];
}

/* n pixels of output row y of slice z, from column x on. */
static void part_of_row(const hn_dots_args *a, int64_t image, int64_t z, int64_t y, int64_t x, int64_t n) {
  const hn_dots *d = a->d;
  const hn_window *g = &d->window;
  const hn_epilogue *e = a->epilogue;
  hn_window_row under[HN_WINDOW_ROWS];
  const float *rows[HN_WINDOW_ROWS], *w[HN_WINDOW_ROWS];
  const int64_t filter = filter_of(d);
  uint32_t live = hn_window_rows(g, z, y, under);
  if (HN_FAULT("dots_last_row") && live > 1) live--;
  for (uint32_t v = 0; v < live; v++) {
    const hn_window_row *u = &under[v];
    rows[v] = a->x + image * d->in_batch + (u->z * g->in[1] + u->y) * g->in[2] * d->in_pixel;
    w[v] = a->w + (HN_FAULT("dots_row_weights") ? v : u->kernel) * d->outputs * filter;
  }
  const hn_dots_row r = {.x = rows,
                         .w = w,
                         .w_output = filter,
                         .x_pixel = d->in_pixel,
                         .width = g->in[2],
                         .rows = live,
                         .taps = (uint32_t)g->kernel[2],
                         .stride = g->stride[2],
                         .dilation = g->dilation[2],
                         .pad = g->pad[2] - x * g->stride[2],
                         .channels = (size_t)d->channels,
                         .outputs = (uint32_t)d->outputs,
                         .y = a->y + hn_view_at(&d->y, image, z, y, x),
                         .y_pixel = d->y.pixel,
                         .n = n,
                         .flags = e->flags,
                         .lo = e->lo,
                         .hi = e->hi,
                         .slope = e->slope,
                         .bias = e->bias};
  a->ops->row(&r);
  if (e->n_post) hn_epilogue_post_pixels(e, r.y, r.y_pixel, n, 0, r.outputs, image, z, y, x);
}

static void task(void *arg, int64_t t, uint32_t thread) {
  (void)thread;
  const hn_dots_args *a = arg;
  const hn_dots *d = a->d;
  const int64_t *out = d->window.out, rows = out[0] * out[1];
  const int64_t x = t % d->pieces * d->piece, rest = t / d->pieces, b = rest % d->row_blocks;
  const int64_t n = hn_min(d->piece, out[2] - x);
  for (int64_t i = b * rows / d->row_blocks; i < (b + 1) * rows / d->row_blocks; i++)
    part_of_row(a, rest / d->row_blocks, i / out[1], i % out[1], x, n);
}

void hn_dots_exec(const hn_dots_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_dots *d = a->d;
  if (d->pieces <= 0 || d->outputs == 0) return;
  parallel(pool, d->batch * d->row_blocks * d->pieces, task, (void *)(uintptr_t)a);
}

/* Cycles of the cost model. */
#define LOAD 0.5  /* two a cycle, as many as multiply-adds */
#define CROSS 1.5 /* a load of channels that do not fill vectors: most cross a line */
#define SUM 1.5   /* of a vector's lanes, of as many vectors as it has lanes */
#define PART 3.0  /* vectors as long as one of few lanes that is not filled: a mask is made for it */
#define ROW 120
#define TOUCH 0.05 /* a byte of the input, read once from beyond L1 */

double hn_dots_seconds(const hn_dots *d, const hn_dots_ops *ops, const hone_machine *machine, hn_isa isa) {
  const hn_window *g = &d->window;
  const int64_t rows = g->kernel[0] * g->kernel[1], vw = ops->vw;
  const bool run = d->in_pixel == d->channels && g->dilation[2] == 1;
  const int64_t length = run ? g->kernel[2] * d->channels : d->channels;
  const int64_t whole = length / vw, runs = rows * (run ? 1 : g->kernel[2]);
  const double part = length % vw == 0 ? 0 : vw < 16 ? PART : 1;
  const double vectors = (double)runs * ((double)whole + part);
  const int64_t together = hn_min(d->outputs, ops->together), pixels = hn_max(vw / hn_max(together, 1), 1);
  const double loads = (double)d->outputs / (double)hn_max(together, 1) * (d->channels % vw ? CROSS : 1) +
                       (double)d->outputs / (double)pixels;
  const double most = loads > (double)d->outputs ? loads : (double)d->outputs;
  const double pixel = vectors * most * LOAD + (double)d->outputs * SUM;
  const int64_t threads = machine->threads ? machine->threads : 1, lines = g->out[0] * g->out[1],
                tasks = d->batch * d->row_blocks * d->pieces;
  const double share = tasks ? (double)hn_div_up(tasks, threads) / (double)tasks : 1;
  const double products =
      (double)(d->batch * lines) * ((double)g->out[2] * pixel + (double)(d->pieces * ROW));
  const double read = TOUCH * 4 * (double)(d->batch * g->in[0] * g->in[1] * g->in[2] * d->channels);
  return share * hn_overlapped_cycles(products, read) / hn_core_hertz(hn_gemm_find(isa), machine) + 1e-6;
}
