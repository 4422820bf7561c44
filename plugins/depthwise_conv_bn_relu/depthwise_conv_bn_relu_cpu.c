/* DepthwiseConvBnReLU on the processor: a task is some planes, one channel of one image each. The lines that
 * an output line needs lie in a ring with zeros around them, so that every tap is a load of numbers in a row.
 */
#include "depthwise_conv_bn_relu_op.h"

#include "../depthwise.h"

#define INLINE static inline __attribute__((always_inline))

enum { MOST_TAPS = 16 }; /* of a side of the kernel, for vectors */

typedef struct job {
  const hone_step_run *run;
  depthwise_sizes s;
  float epsilon;
  int64_t tasks, lines, slots, length;
} job;

/* n numbers, a stride apart; whole vectors, of which the last may begin before the others end. */
INLINE void copy(const float *from, int64_t stride, int64_t n, float *to) {
  if (stride == 1 && n >= HONE_LANES) {
    for (int64_t i = 0; i + HONE_LANES <= n; i += HONE_LANES)
      hone_store(to + i, hone_load(from + i, HONE_LANES), HONE_LANES);
    hone_store(to + n - HONE_LANES, hone_load(from + n - HONE_LANES, HONE_LANES), HONE_LANES);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = from[stride * i];
  }
}

/* One line of the input, cut by the stride. What lies outside was zero from the beginning, and stays so. */
INLINE void fill_by(const int64_t stride, const job *j, const float *line, float *to) {
  const int64_t width = j->s.in[1], length = j->length;
  for (int64_t p = 0; p < stride; p++, to += length) {
    const int64_t before = j->s.pad[1] - p;
    int64_t first = before > 0 ? (before + stride - 1) / stride : 0,
            end = width + before > 0 ? (width + before + stride - 1) / stride : 0;
    end = end < length ? end : length;
    if (first < end) copy(line + stride * first - before, stride, end - first, to + first);
  }
}

static void fill(const job *j, const float *line, float *to) {
  switch (j->s.stride[1]) {
  case 1: fill_by(1, j, line, to); break;
  case 2: fill_by(2, j, line, to); break;
  default: fill_by(j->s.stride[1], j, line, to); break;
  }
}

/* `vectors` vectors of results from x on. ahead: a line that is copied later; what memory takes for it, and
 * for the lines that results are written to, passes beside the arithmetic. */
INLINE void block(const int vectors, const int64_t rows, const int64_t columns, const float *const *line,
                  const int64_t *at, const float *w, hone_vf factor, hone_vf last, const char *ahead,
                  float *y, int64_t x, int k) {
  hone_vf sum[4];
  for (int v = 0; v < vectors; v++) {
    const int64_t i = x + v * HONE_LANES;
    __builtin_prefetch(ahead + i * (int64_t)sizeof *y);
    hone_ahead_written(y + i);
  }
  for (int v = 0; v < vectors; v++) sum[v] = hone_all(w[rows * columns + DEPTHWISE_SHIFT]);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < columns; c++)
      for (int v = 0; v < vectors; v++)
        sum[v] += hone_load(line[i] + at[c] + x + v * HONE_LANES, HONE_LANES) * w[i * columns + c];
  for (int v = 0; v < vectors; v++)
    hone_store(y + x + v * HONE_LANES, hone_max(sum[v] * factor + last, hone_all(0)),
               v + 1 < vectors ? HONE_LANES : k);
}

/* A line of n results; `room` numbers may be written, those behind n before the next line is. */
INLINE void line_of(const int64_t rows, const int64_t columns, const float *const *line, const int64_t *at,
                    const float *w, const char *ahead, float *y, int64_t n, int64_t room) {
  const float *more = w + rows * columns;
  const hone_vf factor = hone_all(more[DEPTHWISE_FACTOR]), last = hone_all(more[DEPTHWISE_LAST]);
  int64_t x = 0;
  for (; x + 4 * HONE_LANES <= room && x + 3 * HONE_LANES < n; x += 4 * HONE_LANES)
    block(4, rows, columns, line, at, w, factor, last, ahead, y, x, HONE_LANES);
  for (; x + 2 * HONE_LANES <= room && x + HONE_LANES < n; x += 2 * HONE_LANES)
    block(2, rows, columns, line, at, w, factor, last, ahead, y, x, HONE_LANES);
  for (; x < n; x += HONE_LANES)
    block(1, rows, columns, line, at, w, factor, last, ahead, y, x,
          x + HONE_LANES <= room ? HONE_LANES : hone_lanes(n - x));
}

static void plane_of(const job *j, const float *x, const float *w, float *ring, float *y) {
  const depthwise_sizes *s = &j->s;
  const int64_t slot = s->stride[1] * j->length;
  const float *line[MOST_TAPS];
  int64_t at[MOST_TAPS], next = -s->pad[0], next_slot = 0, top_slot = 0, after_next = 0;
  const int64_t step = s->stride[0] % j->slots;
  for (int64_t k = 0; k < s->kernel[1]; k++) {
    const int64_t column = k * s->dilation[1];
    at[k] = column % s->stride[1] * j->length + column / s->stride[1];
  }
  for (int64_t oy = 0; oy < s->out[0]; oy++) {
    const int64_t top = oy * s->stride[0] - s->pad[0];
    if (next < top) next = top, next_slot = top_slot;
    if (next < top + j->lines) after_next = 0;
    for (const int64_t end = next < top + j->lines ? top + j->slots : next; next < end; next++) {
      if (next >= 0 && next < s->in[0]) fill(j, x + next * s->in[1], ring + next_slot * slot);
      next_slot = next_slot + 1 < j->slots ? next_slot + 1 : 0;
    }
    for (int64_t i = 0; i < s->kernel[0]; i++) {
      const int64_t row = top + i * s->dilation[0], after = top_slot + i * s->dilation[0],
                    place = after < j->slots ? after : after - j->slots;
      line[i] = ring + (row < 0 || row >= s->in[0] ? j->slots : place) * slot;
    }
    top_slot = top_slot + step < j->slots ? top_slot + step : top_slot + step - j->slots;
    float *to = y + oy * s->out[1];
    const char *ahead = (const char *)x + (next + after_next++) * s->in[1] * (int64_t)sizeof *x;
    const int64_t room = (s->out[0] - oy) * s->out[1];
    if (s->kernel[0] == 3 && s->kernel[1] == 3)
      line_of(3, 3, line, at, w, ahead, to, s->out[1], room);
    else if (s->kernel[0] == 5 && s->kernel[1] == 5)
      line_of(5, 5, line, at, w, ahead, to, s->out[1], room);
    else
      line_of(s->kernel[0], s->kernel[1], line, at, w, ahead, to, s->out[1], room);
  }
}

/* Kernels beyond vectors, taps of which a zero makes NaN (here they do not touch what lies outside), and
 * channels that f32 is too narrow for. */
static void plane_slowly(const job *j, const float *x, const float *w, float *y) {
  const depthwise_sizes *s = &j->s;
  const float *more = w + s->taps;
  for (int64_t o = 0; o < s->out[0] * s->out[1]; o++) {
    const int64_t top = o / s->out[1] * s->stride[0] - s->pad[0],
                  left = o % s->out[1] * s->stride[1] - s->pad[1];
    double sum = (double)more[DEPTHWISE_SHIFT];
    for (int64_t t = 0; t < s->taps; t++) {
      const int64_t iy = top + t / s->kernel[1] * s->dilation[0],
                    ix = left + t % s->kernel[1] * s->dilation[1];
      if (iy >= 0 && iy < s->in[0] && ix >= 0 && ix < s->in[1])
        sum += (double)x[iy * s->in[1] + ix] * (double)w[t];
    }
    sum = sum * (double)more[DEPTHWISE_FACTOR] * (double)more[DEPTHWISE_POWER] + (double)more[DEPTHWISE_LAST];
    y[o] = sum > 0 || sum != sum ? (float)sum : 0;
  }
}

static bool ordinary(const float *w, int64_t taps) {
  float sum = 0; /* 0 unless one is not a number to be summed */
  for (int64_t t = 0; t < taps; t++) sum += w[t] - w[t];
  return sum == 0 && w[taps + DEPTHWISE_POWER] == 1;
}

static void planes(void *arg, int64_t task, uint32_t thread) {
  const job *j = (const job *)arg;
  const hone_step_run *run = j->run;
  const depthwise_sizes *s = &j->s;
  const int64_t all = s->n * s->c, each = s->taps + DEPTHWISE_MORE,
                ring = (j->slots + 1) * s->stride[1] * j->length;
  float *work = (float *)run->workspace + (int64_t)thread * (ring + each);
  memset(work, 0, (size_t)ring * sizeof *work);
  for (int64_t p = task * all / j->tasks; p < (task + 1) * all / j->tasks; p++) {
    const float *x = (const float *)run->in[0] + p * s->in[0] * s->in[1], *w = (const float *)run->blob;
    float *y = (float *)run->out[0] + p * s->out[0] * s->out[1];
    if (w && depthwise_constant(run->step)) {
      w += p % s->c * each;
    } else {
      const void *data[7] = {0};
      hone_dtype type[7] = {0};
      for (uint32_t i = 1; i < run->step->n_inputs; i++)
        data[i] = run->in[i], type[i] = run->step->input[i].desc.dtype;
      depthwise_channel(data, type, s->taps, j->epsilon, p % s->c, work + ring);
      w = work + ring;
    }
    if (s->kernel[0] > MOST_TAPS || s->kernel[1] > MOST_TAPS || !ordinary(w, s->taps))
      plane_slowly(j, x, w, y);
    else
      plane_of(j, x, w, work, y);
  }
}

hone_status HONE_KERNEL(depthwise_conv_bn_relu)(const depthwise_conv_bn_relu_attrs *attrs,
                                                const hone_step_run *run, hone_error *error) {
  job j = {.run = run, .epsilon = attrs->epsilon};
  (void)error;
  depthwise_sizes_of(run->step->input[0].desc.dim, run->step->input[1].desc.dim,
                     attrs->n_strides ? attrs->strides : NULL, attrs->n_pads ? attrs->pads : NULL,
                     attrs->n_dilations ? attrs->dilations : NULL, &j.s);
  j.lines = depthwise_lines(&j.s);
  j.slots = depthwise_slots(&j.s);
  j.length = depthwise_length(&j.s);
  const int64_t all = j.s.n * j.s.c, want = run->threads > 1 ? 4 * (int64_t)run->threads : 1;
  j.tasks = all < want ? all : want;
  if (hone_desc_count(&run->step->output[0].desc) > 0) run->parallel(run->pool, j.tasks, planes, &j);
  return HONE_OK;
}
