#include "backends/cpu/conv/depthwise_driver.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/kernels/depthwise_bf16/depthwise_bf16.h"
#include "base/fault.h"
#include "base/integers.h"

const hn_depthwise_ops *hn_depthwise_find(hn_isa isa) {
  static const hn_depthwise_ops *_Atomic found[HN_ISA_COUNT];
  if ((unsigned)isa >= HN_ISA_COUNT) return NULL;
  const hn_depthwise_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("depthwise", "f32", isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}

const hn_depthwise_bf16_ops *hn_depthwise_bf16_find(hn_isa isa) {
  if (isa < HN_ISA_AVX512BF16) return NULL;
  const struct hn_kernel *k = hn_kernel_find("depthwise_bf16", "bf16", isa);
  return k ? k->ops : NULL;
}

enum { LONGEST_RUN = 512 }; /* values of a period */

/* Pixels that fill whole vectors, where a row may be taken as one run and a fifth of the lanes or more would
 * be empty otherwise; else 0. */
static int64_t period_of(const hn_depthwise *d, int64_t vw) {
  const bool dense = d->window.stride[2] == 1 && d->in_pixel == d->channels && d->y.pixel == d->channels;
  if (!dense || d->channels == 0 || d->channels * 5 > hn_fill_up(d->channels, vw) * 4) return 0;
  int64_t period = 1;
  while (period * d->channels % vw) period *= 2; /* vw is a power of two */
  return period * d->channels <= LONGEST_RUN ? period : 0;
}

static int64_t kernel_rows(const hn_depthwise *d) { return d->window.kernel[0] * d->window.kernel[1]; }

/* Channels of a slab: its input rows of one output row and the output row fill about two thirds of L1. An
 * image beyond L2 is better streamed in one go, in the order in which it lies in memory. */
static int64_t slab_of(const hn_depthwise *d, size_t l1, size_t l2) {
  const int64_t pixels = kernel_rows(d) * d->window.in[2] + d->window.out[2];
  int64_t slab = (int64_t)(l1 * 2 / 3 / 4) / (pixels > 0 ? pixels : 1) / 16 * 16;
  if (slab < 16) slab = 16;
  if (d->period || slab > d->w_tap || d->in_batch * 4 > (int64_t)l2) slab = d->w_tap;
  return slab;
}

void hn_depthwise_plan(hn_depthwise *d, uint32_t vw, uint32_t threads, size_t l1, size_t l2) {
  const int64_t *out = d->window.out, lines = out[0] * out[1];
  d->period = period_of(d, vw);
  d->slab = slab_of(d, l1, l2);
  d->slabs = d->slab ? hn_div_up(d->channels, d->slab) : 0;
  const double work =
      2.0 * (double)(d->batch * lines * out[2] * d->channels * kernel_rows(d) * d->window.kernel[2]);
  const int64_t want = threads == 1 || work < 2e5 ? 1
                       : work > 4e6               ? 4 * (int64_t)threads
                                                  : 2 * (int64_t)threads;
  const int64_t blocks = d->batch ? hn_div_up(want, d->batch) : 1;
  /* Blocks of rows share kernel - stride input rows with their neighbours: keep them tall, cut channels
   * instead; those of runs are not cut. */
  int64_t most = d->period ? lines : lines / (2 * d->window.kernel[1]);
  if (most < 1) most = 1;
  d->row_blocks = blocks < most ? blocks : most;
  d->slab_tasks = d->period ? 1 : hn_div_up(blocks, d->row_blocks);
  if (d->slab_tasks > d->slabs) {
    /* Thinner slabs when there are too few for the threads. */
    int64_t vectors = d->w_tap / 16, per = hn_div_up(vectors, d->slab_tasks);
    if (per < 1) per = 1;
    if (per * 16 < d->slab) d->slab = per * 16, d->slabs = hn_div_up(d->channels, d->slab);
    if (d->slab_tasks > d->slabs) d->slab_tasks = d->slabs;
  }
}

size_t hn_depthwise_packed_size(const hn_depthwise *d) {
  return (size_t)(kernel_rows(d) * d->window.kernel[2] * (d->w_tap + d->period * d->channels));
}

/* Where the weights of runs lie in the packed ones. */
static int64_t run_weights_at(const hn_depthwise *d) {
  return kernel_rows(d) * d->window.kernel[2] * d->w_tap;
}

void hn_depthwise_pack(const hn_depthwise *d, const float *w, float *dst) {
  const int64_t taps = kernel_rows(d) * d->window.kernel[2];
  memset(dst, 0, hn_depthwise_packed_size(d) * sizeof *dst);
  for (int64_t c = 0; c < d->channels; c++)
    for (int64_t t = 0; t < taps; t++) dst[t * d->w_tap + c] = w[c * taps + t];
  float *run = dst + run_weights_at(d);
  for (int64_t t = 0; t < taps; t++)
    for (int64_t p = 0; p < d->period; p++, run += d->channels)
      memcpy(run, dst + t * d->w_tap, (size_t)d->channels * sizeof *run);
}

/* The rows of one output row, and where their weights lie. */
static void place_rows(const hn_depthwise_args *a, int64_t image, int64_t z, int64_t y, int64_t c0,
                       hn_depthwise_row *r, const float **x, const float **w) {
  const hn_depthwise *d = a->d;
  const hn_window *g = &d->window;
  hn_window_row under[HN_WINDOW_ROWS];
  r->rows = hn_window_rows(g, z, y, under);
  const int64_t first = r->rows ? under[0].kernel : 0, line = g->kernel[2] * d->w_tap;
  for (uint32_t v = 0; v < r->rows; v++) {
    int64_t at = under[v].y;
    if (HN_FAULT("depthwise_row_origin") && first > 0) at = at + 1 < g->in[1] ? at + 1 : at - 1;
    x[v] = a->x + image * d->in_batch + (under[v].z * g->in[1] + at) * g->in[2] * d->in_pixel + c0;
    w[v] = a->w + under[v].kernel * line + c0;
  }
  const bool follow = r->rows == 0 || under[r->rows - 1].kernel - first == (int64_t)r->rows - 1;
  r->w = a->w + first * line + c0;
  r->w_rows = follow || HN_FAULT("depthwise_rows_apart") ? NULL : w;
  r->period = follow && r->run_bias ? d->period : 0;
  r->run_w = a->w + run_weights_at(d) + first * g->kernel[2] * d->period * d->channels;
}

/* Rows [l0, l1) of all slices, channels [c0, c1) of an image. */
static void slab_rows(const hn_depthwise_args *a, int64_t image, int64_t l0, int64_t l1, int64_t c0,
                      int64_t c1) {
  const hn_depthwise *d = a->d;
  const hn_window *g = &d->window;
  const hn_epilogue *e = a->epilogue;
  const float *rows[HN_WINDOW_ROWS], *w[HN_WINDOW_ROWS];
  hn_depthwise_row r = {.x = rows,
                        .x_pixel = d->in_pixel,
                        .width = g->in[2],
                        .w_tap = d->w_tap,
                        .taps = (uint32_t)g->kernel[2],
                        .stride = g->stride[2],
                        .dilation = g->dilation[2],
                        .pad = g->pad[2],
                        .y_pixel = d->y.pixel,
                        .n = g->out[2],
                        .channels = (size_t)(c1 - c0),
                        .flags = e->flags,
                        .lo = e->lo,
                        .hi = e->hi,
                        .slope = e->slope,
                        .bias = e->bias ? e->bias + c0 : NULL,
                        .r_pixel = e->residual_view.pixel};
  float run_bias[LONGEST_RUN];
  if (d->period && (!e->residual || e->residual_view.pixel == d->channels)) {
    r.run_bias = run_bias;
    for (int64_t i = 0; e->bias && i < d->period; i++)
      memcpy(run_bias + i * d->channels, e->bias, (size_t)d->channels * sizeof *run_bias);
  }
  for (int64_t l = l0; l < l1; l++) {
    const int64_t z = l / g->out[1], y = l % g->out[1];
    place_rows(a, image, z, y, c0, &r, rows, w);
    r.y = a->y + hn_view_at(&d->y, image, z, y, 0) + c0;
    r.residual = e->residual ? e->residual + hn_view_at(&e->residual_view, image, z, y, 0) + c0 : NULL;
    a->ops->row(&r);
    if (e->n_post) hn_epilogue_post_pixels(e, r.y, r.y_pixel, r.n, (size_t)c0, r.channels, image, z, y, 0);
  }
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const hn_depthwise_args *a = arg;
  const hn_depthwise *d = a->d;
  (void)thread;
  const int64_t *out = d->window.out, lines = out[0] * out[1];
  int64_t s = t % d->slab_tasks, rest = t / d->slab_tasks, b = rest % d->row_blocks, n = rest / d->row_blocks;
  const int64_t l0 = b * lines / d->row_blocks, l1 = (b + 1) * lines / d->row_blocks;
  int64_t s0 = s * d->slabs / d->slab_tasks, s1 = (s + 1) * d->slabs / d->slab_tasks;
  if (HN_FAULT("depthwise_last_slab") && s == d->slab_tasks - 1) s1--;
  for (; s0 < s1; s0++) {
    const int64_t c0 = s0 * d->slab, c1 = hn_min(c0 + d->slab, d->channels);
    slab_rows(a, n, l0, l1, c0, c1);
  }
}

void hn_depthwise_exec(const hn_depthwise_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_depthwise *d = a->d;
  const int64_t *out = d->window.out;
  if (d->slabs == 0 || out[0] <= 0 || out[1] <= 0 || out[2] <= 0) return;
  parallel(pool, d->batch * d->row_blocks * d->slab_tasks, task, (void *)(uintptr_t)a);
}
