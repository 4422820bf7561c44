#include "backends/cpu/quantized/depthwise_int8_driver.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

const hn_dw8_ops *hn_dw8_find(hn_isa isa) {
  static const hn_dw8_ops *_Atomic found[HN_ISA_COUNT];
  if ((unsigned)isa >= HN_ISA_COUNT) return NULL;
  const hn_dw8_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("depthwise_int8", "u8s8", isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}

void hn_dw8_split(hn_dw8 *d, int64_t parts) {
  d->parts = parts;
  d->groups = hn_div_up(d->kernel[0] * parts, HN_DW8_ROWS);
}

void hn_dw8_plan(hn_dw8 *d, uint32_t threads, size_t l1) {
  hn_dw8_split(d, hn_max(d->parts, 1));
  d->blocks = hn_div_up(d->channels, HN_DW8_BLOCK);
  /* A slab's input rows of one output row and the output row fill about two thirds of L1. */
  const int64_t pixels = d->kernel[0] * d->in[1] + d->out[1];
  d->slab = hn_min(hn_max((int64_t)(l1 * 2 / 3) / (pixels * HN_DW8_BLOCK), 1), d->blocks);
  const double work = (double)(d->batch * d->out[0] * d->out[1] * d->blocks * HN_DW8_BLOCK) *
                      (double)(d->groups * d->kernel[1]);
  const int64_t want = threads == 1 || work < 1e5 ? 1 : work > 4e6 ? 4 * (int64_t)threads : (int64_t)threads;
  const int64_t parts = hn_div_up(want, d->batch);
  /* Blocks of rows share input rows with their neighbours: keep them tall, cut channels instead. */
  d->row_blocks = hn_min(parts, hn_max(d->out[0] / (2 * d->kernel[0]), 1));
  d->slab_tasks = hn_min(hn_div_up(parts, d->row_blocks), d->blocks);
  d->slab = hn_min(d->slab, hn_div_up(d->blocks, d->slab_tasks));
}

double hn_dw8_seconds(const hn_dw8 *d, const hn_dw8_ops *o, double peak, double cache) {
  const double outputs = (double)(d->batch * d->out[0] * d->out[1]) * (double)(d->blocks * HN_DW8_BLOCK);
  /* Of three parts the third is rare. */
  const int64_t groups = hn_div_up(d->kernel[0] * hn_min(d->parts, 2), HN_DW8_ROWS);
  const double taps = (double)(groups * HN_DW8_ROWS * d->kernel[1]);
  const double bytes = (double)(d->batch * d->in[0] * d->in[1] * d->in_pitch) + outputs;
  return 2 * outputs * taps / (peak * 0.5 * o->rate) + outputs * 6 / peak + bytes / cache + 3e-6;
}

size_t hn_dw8_weights(const hn_dw8 *d) { return (size_t)(d->blocks * d->groups * d->kernel[1]) * HN_DW8_TAP; }
size_t hn_dw8_values(const hn_dw8 *d) { return (size_t)d->blocks * HN_DW8_BLOCK; }
size_t hn_dw8_scratch(const hn_dw8 *d) { return d->coded ? hn_code_rows_bytes(d->out[1], HN_DW8_BLOCK) : 0; }
size_t hn_dw8_line(const hn_dw8 *d) { return (size_t)(d->in[1] * d->in_pitch); }

int64_t hn_dw8_parts(const hn_dw8 *d, const hn_weight_codes *w) {
  const int64_t taps = d->kernel[0] * d->kernel[1];
  int32_t least = 0, most = 0;
  for (int64_t i = 0; i < d->channels * taps; i++) {
    const int32_t v = hn_weight_code(w, w->w, i) - hn_weight_zero(w, i / taps);
    least = v < least ? v : least, most = v > most ? v : most;
  }
  return most > 2 * 127 ? HN_DW8_PARTS : most > 127 || least < -128 ? 2 : 1;
}

/* Part `part` of weight v. */
static int8_t part_of(int32_t v, int64_t part) {
  for (;; part--) {
    const int32_t now = v < -128 ? -128 : v > 127 ? 127 : v;
    if (part == 0) return (int8_t)now;
    v -= now;
  }
}

void hn_dw8_pack(const hn_dw8 *d, const hn_weight_codes *w, int8_t *dst, int32_t *sums) {
  const int64_t rows = d->kernel[0] * d->parts;
  for (int64_t b = 0; b < d->blocks; b++)
    for (int64_t j = 0; j < HN_DW8_BLOCK; j++) {
      const int64_t c = b * HN_DW8_BLOCK + hn_dw8_channel(j);
      int32_t *sum = &sums[b * HN_DW8_BLOCK + j];
      *sum = 0;
      for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++)
        for (int64_t u = 0; u < d->kernel[1]; u++) {
          int8_t value = 0;
          const int64_t at = (c * d->kernel[0] + v % d->kernel[0]) * d->kernel[1] + u;
          if (c < d->channels && v < rows)
            value = part_of(hn_weight_code(w, w->w, at) - hn_weight_zero(w, c), v / d->kernel[0]);
          dst[((b * d->groups + v / HN_DW8_ROWS) * d->kernel[1] + u) * HN_DW8_TAP + 4 * j + v % HN_DW8_ROWS] =
              value;
          *sum += value;
        }
    }
}

void hn_dw8_fill_line(const hn_dw8 *d, uint8_t *line) {
  memset(line, (int)d->padding ^ (d->flip ? 0x80 : 0), hn_dw8_line(d));
}

/* Rows [y0, y1) of image n for blocks [b0, b1). */
static void slab_rows(const hn_dw8_args *a, uint8_t *scratch, int64_t n, int64_t y0, int64_t y1, int64_t b0,
                      int64_t b1) {
  const hn_dw8 *d = a->d;
  const int64_t row_bytes = d->in[1] * d->in_pitch;
  const int64_t all = d->kernel[0] * d->parts;
  const uint8_t *rows[HN_DW8_KERNEL_ROWS * HN_DW8_PARTS], *shifted[HN_DW8_KERNEL_ROWS * HN_DW8_PARTS];
  hn_dw8_row r = {.x = shifted,
                  .x_pixel = d->in_pitch,
                  .width = d->in[1],
                  .groups = (uint32_t)d->groups,
                  .taps = (uint32_t)d->kernel[1],
                  .stride = d->stride[1],
                  .dilation = d->dilation[1],
                  .pad = d->pad[1],
                  .padding = (uint8_t)d->padding,
                  .flip = d->flip != 0,
                  .y_pixel = d->out_pitch,
                  .n = d->out[1],
                  .zero = (int32_t)d->zero,
                  .is_signed = d->is_signed != 0,
                  .wide = d->wide != 0};
  for (int64_t y = y0; y < y1; y++) {
    for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++) {
      const int64_t iy = y * d->stride[0] + v % d->kernel[0] * d->dilation[0] - d->pad[0];
      const bool inside = v < all && iy >= 0 && iy < d->in[0] - (HN_FAULT("dw8_bottom") ? 1 : 0);
      rows[v] = inside ? a->x + (n * d->in[0] + iy) * row_bytes : a->line;
    }
    for (int64_t b = b0; b < b1; b++) {
      const int64_t c = b * HN_DW8_BLOCK;
      for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++) shifted[v] = rows[v] + c;
      r.w = a->w + b * d->groups * d->kernel[1] * HN_DW8_TAP;
      r.bias = a->bias + c, r.scale = a->scale + c;
      r.channels = (uint32_t)hn_min(d->channels - c, HN_DW8_BLOCK);
      uint8_t *codes = (uint8_t *)a->y + (n * d->out[0] + y) * d->out[1] * d->out_pitch +
                       c * (d->wide && !d->coded ? 4 : 1);
      r.y = d->coded ? scratch : codes;
      if (d->coded) r.y_pixel = (int64_t)r.channels * (int64_t)sizeof(float);
      a->ops->row(&r);
      if (a->table) a->tables->rows(r.y, d->out_pitch, (size_t)d->out[1], r.channels, a->table);
      if (a->epilogue && a->epilogue->n_post)
        hn_epilogue_post_pixels(a->epilogue, (float *)(void *)r.y, r.y_pixel / (int64_t)sizeof(float),
                                d->out[1], (size_t)c, r.channels, n, 0, y, 0);
      if (d->coded)
        hn_code_rows_put(a->codes, (float *)(void *)scratch, d->out[1], r.channels, c, codes, d->out_pitch);
    }
  }
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const hn_dw8_args *a = arg;
  const hn_dw8 *d = a->d;
  uint8_t *scratch = d->coded ? a->scratch + thread * hn_dw8_scratch(d) : NULL;
  const int64_t s = t % d->slab_tasks, rest = t / d->slab_tasks, i = rest % d->row_blocks,
                n = rest / d->row_blocks;
  const int64_t y0 = i * d->out[0] / d->row_blocks, y1 = (i + 1) * d->out[0] / d->row_blocks;
  const int64_t end = (s + 1) * d->blocks / d->slab_tasks;
  for (int64_t b = s * d->blocks / d->slab_tasks; b < end; b += d->slab)
    slab_rows(a, scratch, n, y0, y1, b, hn_min(b + d->slab, end));
}

void hn_dw8_exec(const hn_dw8_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_dw8 *d = a->d;
  const int64_t tasks = d->batch * d->row_blocks * d->slab_tasks;
  if (tasks == 1)
    task((void *)(uintptr_t)a, 0, 0);
  else
    parallel(pool, tasks, task, (void *)(uintptr_t)a);
}
