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
  d->groups = hn_div_up(d->kernel[0] * parts * d->phases, HN_DW8_ROWS);
}

static int64_t lines_of(const hn_dw8 *d) { return (d->kernel[0] - 1) * d->dilation[0] + 1; }

/* Pixels of a line that folded pixels are read from. */
static int64_t line_pixels(const hn_dw8 *d) { return d->out[1] + (d->taps - 1) * d->dilation[1]; }

/* Few channels leave most of a block's lanes idle, unless pixels beside each other share it: they do where
 * they lie without gaps, on lines with their padding, of each phase of the stride its own. */
static void set_fold(hn_dw8 *d) {
  const int64_t pixels = HN_DW8_BLOCK / d->channels, stride = d->stride[1],
                value = d->wide && !d->coded ? (int64_t)sizeof(float) : 1;
  const bool dense = d->in_pitch == d->channels && d->out_pitch == d->channels * value;
  d->fold = d->phases = 1, d->taps = d->kernel[1];
  if (pixels < 2 || !dense || d->out[1] < pixels || stride > 2 || (stride == 2 && d->dilation[1] != 1) ||
      lines_of(d) > HN_DW8_LINES || d->kernel[0] * stride > HN_DW8_KERNEL_ROWS)
    return;
  d->fold = pixels, d->phases = stride, d->taps = hn_div_up(d->kernel[1], stride);
}

int64_t hn_dw8_value_channel(const hn_dw8 *d, int64_t i) {
  const int64_t c = i / HN_DW8_BLOCK * HN_DW8_BLOCK + hn_dw8_channel(i % HN_DW8_BLOCK);
  return c < d->channels * d->fold ? c % d->channels : -1;
}

void hn_dw8_plan(hn_dw8 *d, uint32_t threads, size_t l1) {
  set_fold(d);
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
  const double outputs =
      (double)(d->batch * d->out[0] * hn_div_up(d->out[1], d->fold)) * (double)(d->blocks * HN_DW8_BLOCK);
  /* Of three parts the third is rare. */
  const int64_t groups = hn_div_up(d->kernel[0] * hn_min(d->parts, 2) * d->phases, HN_DW8_ROWS);
  const double taps = (double)(groups * HN_DW8_ROWS * d->taps);
  const double bytes = (double)(d->batch * d->in[0] * d->in[1] * d->in_pitch) + outputs;
  return 2 * outputs * taps / (peak * 0.5 * o->rate) + outputs * 6 / peak + bytes / cache + 3e-6;
}

size_t hn_dw8_weights(const hn_dw8 *d) { return (size_t)(d->blocks * d->groups * d->taps) * HN_DW8_TAP; }
size_t hn_dw8_values(const hn_dw8 *d) { return (size_t)d->blocks * HN_DW8_BLOCK; }

size_t hn_dw8_line(const hn_dw8 *d) {
  return (size_t)((d->fold > 1 ? line_pixels(d) : d->in[1]) * d->in_pitch);
}

/* Of one thread's scratch, what results take that become codes. */
static size_t coded_bytes(const hn_dw8 *d) {
  return d->coded ? hn_code_rows_bytes(d->out[1], HN_DW8_BLOCK) : 0;
}

size_t hn_dw8_scratch(const hn_dw8 *d) {
  const size_t lines = d->fold > 1 ? (size_t)(lines_of(d) * d->phases) * hn_dw8_line(d) : 0;
  return coded_bytes(d) + (lines + 63) / 64 * 64;
}

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

/* One channel's weights of a row of its kernel, one tap after the other, HN_DW8_TAP apart: its taps u0, u0 +
 * phases, ... as far as there are any. Returns their sum. */
static int32_t put_taps(const hn_dw8 *d, const hn_weight_codes *w, int64_t row, int32_t zero, int64_t part,
                        int64_t u0, int8_t *at) {
  int32_t sum = 0;
  for (int64_t u = u0; u < d->kernel[1]; u += d->phases, at += HN_DW8_TAP) {
    *at = part_of(hn_weight_code(w, w->w, row + u) - zero, part);
    sum += *at;
  }
  return sum;
}

void hn_dw8_pack(const hn_dw8 *d, const hn_weight_codes *w, int8_t *dst, int32_t *sums) {
  memset(dst, 0, hn_dw8_weights(d)); /* rows and taps that there are not */
  for (int64_t i = 0; i < (int64_t)hn_dw8_values(d); i++) {
    const int64_t b = i / HN_DW8_BLOCK, j = i % HN_DW8_BLOCK, c = hn_dw8_value_channel(d, i);
    sums[i] = 0;
    if (c < 0) continue;
    const int32_t zero = hn_weight_zero(w, c);
    int8_t *block = dst + b * d->groups * d->taps * HN_DW8_TAP + 4 * j;
    int64_t v = 0;
    for (int64_t phase = 0; phase < d->phases; phase++) /* a line of one phase has every so manieth tap */
      for (int64_t part = 0; part < d->parts; part++)
        for (int64_t line = 0; line < d->kernel[0]; line++, v++)
          sums[i] += put_taps(d, w, (c * d->kernel[0] + line) * d->kernel[1], zero, part, phase,
                              block + v / HN_DW8_ROWS * d->taps * HN_DW8_TAP + v % HN_DW8_ROWS);
  }
}

void hn_dw8_fill_line(const hn_dw8 *d, uint8_t *line) {
  memset(line, (int)d->padding ^ (d->flip ? 0x80 : 0), hn_dw8_line(d));
}

/* ---------------------------------------------------------------- lines of folded pixels */

typedef struct kept_lines {
  uint8_t *at;
  int64_t held[HN_DW8_LINES]; /* the input line in each slot; -1: none */
} kept_lines;

/* n pixels of `bytes` each, every second one of the input's. */
static void copy_every_second(uint8_t *d, const uint8_t *s, int64_t n, int64_t bytes) {
  if (bytes == 8)
    for (; n-- > 0; d += 8, s += 16) memcpy(d, s, 8);
  else if (bytes == 16)
    for (; n-- > 0; d += 16, s += 32) memcpy(d, s, 16);
  else
    for (; n-- > 0; d += bytes, s += 2 * bytes) memcpy(d, s, (size_t)bytes);
}

/* Input pixels s, s + phases, ... of one line, the padding left and right of it included. */
static void bring_phase(const hn_dw8 *d, const uint8_t *from, int64_t s, uint8_t *to) {
  const int64_t all = line_pixels(d), at = s - d->pad[1], c = d->channels,
                first = hn_min(at < 0 ? hn_div_up(-at, d->phases) : 0, all),
                end = hn_max(first, hn_min(all, hn_div_up(d->in[1] - at, d->phases)));
  const int padding = (int)d->padding ^ (d->flip ? 0x80 : 0);
  memset(to, padding, (size_t)((HN_FAULT("dw8_fold_left") ? 0 : first) * c));
  from += (at + first * d->phases) * c;
  if (d->phases == 1)
    memcpy(to + first * c, from, (size_t)((end - first) * c));
  else
    copy_every_second(to + first * c, from, end - first, c);
  memset(to + end * c, padding, (size_t)((HN_FAULT("dw8_fold_right") ? 0 : all - end) * c));
}

/* Where input line iy of the image at `x` lies in all its phases. */
static const uint8_t *kept_line(const hn_dw8 *d, kept_lines *k, const uint8_t *x, int64_t iy) {
  const int64_t slot = iy % lines_of(d), bytes = (int64_t)hn_dw8_line(d);
  uint8_t *to = k->at + slot * d->phases * bytes;
  if (k->held[slot] != iy)
    for (int64_t s = 0; s < d->phases; s++)
      bring_phase(d, x + iy * d->in[1] * d->in_pitch, s, to + s * bytes);
  k->held[slot] = iy;
  return to;
}

/* ---------------------------------------------------------------- rows */

/* The row's pixels; folded ones by the block, and the last that fill none. */
static void run_row(const hn_dw8_args *a, hn_dw8_row *r) {
  const hn_dw8 *d = a->d;
  if (d->fold == 1) {
    a->ops->row(r);
    return;
  }
  hn_dw8_row part = *r;
  const int64_t whole = d->out[1] / d->fold, rest = d->out[1] % d->fold, pixels = whole * d->fold;
  const uint8_t *x[HN_DW8_KERNEL_ROWS * HN_DW8_PARTS];
  part.channels = (uint32_t)(d->fold * d->channels), part.n = whole;
  part.y_pixel = r->y_pixel * d->fold;
  a->ops->row(&part);
  if (!rest || HN_FAULT("dw8_fold_rest")) return;
  for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++) x[v] = r->x[v] + pixels * r->x_pixel;
  part.x = x, part.y = r->y + pixels * r->y_pixel, part.width -= pixels;
  part.channels = (uint32_t)(rest * d->channels), part.n = 1;
  a->ops->row(&part);
}

/* Rows [y0, y1) of image n for blocks [b0, b1). */
static void slab_rows(const hn_dw8_args *a, uint8_t *scratch, int64_t n, int64_t y0, int64_t y1, int64_t b0,
                      int64_t b1) {
  const hn_dw8 *d = a->d;
  const int64_t row_bytes = d->in[1] * d->in_pitch;
  const int64_t part_rows = d->kernel[0] * d->parts, all = part_rows * d->phases;
  const uint8_t *rows[HN_DW8_KERNEL_ROWS * HN_DW8_PARTS], *shifted[HN_DW8_KERNEL_ROWS * HN_DW8_PARTS];
  const uint8_t *image = a->x + n * d->in[0] * row_bytes;
  kept_lines kept = {.at = d->fold > 1 ? scratch + coded_bytes(d) : NULL};
  for (int i = 0; i < HN_DW8_LINES; i++) kept.held[i] = -1;
  hn_dw8_row r = {.x = shifted,
                  .x_pixel = d->in_pitch,
                  .width = d->fold > 1 ? line_pixels(d) : d->in[1],
                  .groups = (uint32_t)d->groups,
                  .taps = (uint32_t)d->taps,
                  .stride = d->fold > 1 ? d->fold : d->stride[1],
                  .dilation = d->dilation[1],
                  .pad = d->fold > 1 ? 0 : d->pad[1],
                  .padding = (uint8_t)d->padding,
                  .flip = d->flip != 0,
                  .n = d->out[1],
                  .zero = (int32_t)d->zero,
                  .is_signed = d->is_signed != 0,
                  .wide = d->wide != 0,
                  .whole = d->whole != 0};
  for (int64_t y = y0; y < y1; y++) {
    for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++) {
      const int64_t iy = y * d->stride[0] + v % d->kernel[0] * d->dilation[0] - d->pad[0];
      const bool inside = v < all && iy >= 0 && iy < d->in[0] - (HN_FAULT("dw8_bottom") ? 1 : 0);
      rows[v] = !inside       ? a->line
                : d->fold > 1 ? kept_line(d, &kept, image, iy) + v / part_rows * (int64_t)hn_dw8_line(d)
                              : image + iy * row_bytes;
    }
    for (int64_t b = b0; b < b1; b++) {
      const int64_t c = b * HN_DW8_BLOCK;
      for (int64_t v = 0; v < d->groups * HN_DW8_ROWS; v++) shifted[v] = rows[v] + c;
      r.w = a->w + b * d->groups * d->taps * HN_DW8_TAP;
      r.bias = a->bias + c;
      if (!d->whole) r.scale = a->scale + c;
      r.channels = (uint32_t)hn_min(d->channels - c, HN_DW8_BLOCK);
      uint8_t *codes = (uint8_t *)a->y + (n * d->out[0] + y) * d->out[1] * d->out_pitch +
                       c * (d->wide && !d->coded ? 4 : 1);
      r.y = d->coded ? scratch : codes;
      r.y_pixel = d->coded ? (int64_t)r.channels * (int64_t)sizeof(float) : d->out_pitch;
      run_row(a, &r);
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
  const size_t own = hn_dw8_scratch(d);
  uint8_t *scratch = own ? a->scratch + thread * own : NULL;
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
