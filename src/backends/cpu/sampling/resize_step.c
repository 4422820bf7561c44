#include "backends/cpu/sampling/resize_step.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/cpu/kernels/resize/resize.h"
#include "backends/cpu/sampling/resize_read.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

/* Images of `channels` neighbouring elements a pixel; a row-major tensor is many images of one channel. */
typedef struct images {
  int64_t count, channels, height, width;
  int64_t image, row, pixel; /* distances in elements */
} images;

typedef struct blob_head {
  hn_isa isa;
  bool linear;
  int64_t narrow; /* bytes of an element that is no f32: of codes of 8 bits, floats of 16; else 0 */
  bool is_signed; /* codes */
  images x, y;
  int64_t columns_at, rows_at, scratch_at, bytes; /* tables: bytes from the blob's begin */
} blob_head;

/* Sources of n outputs along one axis. */
typedef struct table {
  int32_t *first, *second;
  float *weight; /* of the second */
} table;

static table table_at(unsigned char *p, int64_t n) {
  return (table){(int32_t *)(void *)p, (int32_t *)(void *)p + n, (float *)(void *)p + 2 * n};
}

static bool images_of(const hone_tensor_desc *d, images *m) {
  hn_pixels p;
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && hn_pixels_of(d, &p)) {
    *m = (images){p.batch, p.channels, p.size[1], p.size[2], p.view.batch, p.view.row, p.view.pixel};
    return p.size[0] == 1;
  }
  const int32_t r = d->rank;
  if (d->layout != HONE_LAYOUT_ROW_MAJOR || r < 1) return false;
  const int64_t h = r > 1 ? d->dim[r - 2] : 1, w = d->dim[r - 1];
  *m = (images){hn_dims(d, 0, r - 2), 1, h, w, h * w, w, 1};
  return true;
}

/* Whether the weights of an axis are multiples of 2^-8: then those of two axes times codes are exact in f32,
 * and what is cut off behind the point is what the definition, which has double the bits, cuts off. */
static bool weights_are_exact(const hn_resize *r, int32_t axis, int64_t n) {
  if (axis < 0 || hn_resample_is_still(r, axis)) return true;
  const int64_t taps = hn_resample_taps(r, axis);
  const size_t each = sizeof(int64_t) + sizeof(float) + sizeof(bool);
  unsigned char *room = hn_malloc((size_t)(n * taps) * each);
  hn_resample_axis a = {.taps = taps};
  if (!room) return false;
  a.index = (int64_t *)(void *)room;
  a.weight = (float *)(void *)(a.index + n * taps);
  a.outside = (bool *)(void *)(a.weight + n * taps);
  hn_resample_fill(r, axis, &a);
  bool exact = true;
  for (int64_t i = 0; i < n * taps && exact; i++) exact = a.weight[i] * 256 == rintf(a.weight[i] * 256);
  hn_free(room);
  return exact;
}

static bool describe(const hone_step *step, const hone_machine *machine, blob_head *h, hn_resize *resize,
                     hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  memset(h, 0, sizeof *h);
  if (x->dtype == HONE_DTYPE_U8 || x->dtype == HONE_DTYPE_I8) h->narrow = 1;
  if (x->dtype == HONE_DTYPE_F16 || x->dtype == HONE_DTYPE_BF16) h->narrow = 2;
  if ((x->dtype != HONE_DTYPE_F32 && !h->narrow) || y->dtype != x->dtype)
    return hn_refuse(why, "the elements are %s, neither floats nor codes of 8 bits",
                     hone_dtype_name(x->dtype));
  if (!hn_resize_read(step, resize, why)) return false;
  if (resize->mode == HN_RESIZE_CUBIC || resize->antialias)
    return hn_refuse(why, "only nearest and linear without antialiasing");
  if (resize->coord == HN_COORD_TF_CROP) return hn_refuse(why, "only whole inputs");
  for (int32_t i = 0; i < x->rank; i++) {
    if (i + 2 < x->rank && !hn_resample_is_still(resize, i))
      return hn_refuse(why, "dimension %d is resized, too", (int)i);
  }
  if (!images_of(x, &h->x) || !images_of(y, &h->y) || h->x.channels != h->y.channels)
    return hn_refuse(
        why, "input and output are not both channels-last or row-major, with at most two spatial axes");
  if (x->rank == 3 && x->layout == HONE_LAYOUT_CHANNELS_LAST && !hn_resample_is_still(resize, 1))
    return hn_refuse(why, "channels are resized");
  h->isa = hn_isa_of(machine->isa);
  h->linear = resize->mode == HN_RESIZE_LINEAR;
  h->is_signed = x->dtype == HONE_DTYPE_I8;
  if (h->linear && h->narrow == 2) return hn_refuse(why, "%s between two pixels", hone_dtype_name(x->dtype));
  if (h->linear && h->narrow && x->rank > 0 &&
      (!weights_are_exact(resize, x->rank - 1, y->dim[x->rank - 1]) ||
       (x->rank > 1 && !weights_are_exact(resize, x->rank - 2, y->dim[x->rank - 2]))))
    return hn_refuse(why, "codes between two pixels, by weights that f32 rounds");
  const size_t longest = (size_t)(h->y.width > h->y.height ? h->y.width : h->y.height);
  h->columns_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->rows_at = (int64_t)hn_round_up((size_t)(h->columns_at + 12 * h->y.width), 64);
  h->scratch_at = (int64_t)hn_round_up((size_t)(h->rows_at + 12 * h->y.height), 64);
  h->bytes = h->scratch_at + (int64_t)longest * 32;
  return true;
}

/* A thread's: a line of the input, and of codes another one and a line of the result. */
static size_t line_bytes(const blob_head *h) {
  return hn_round_up((size_t)(h->x.width * h->x.pixel) * sizeof(float), 64);
}

static size_t scratch_bytes(const blob_head *h) {
  const size_t result = hn_round_up((size_t)(h->y.width * h->y.channels) * sizeof(float), 64);
  return h->narrow ? 2 * line_bytes(h) + result : line_bytes(h);
}

bool hn_resize_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {
  blob_head h;
  hn_resize r;
  return describe(step, machine, &h, &r, why);
}

double hn_resize_step_cost(const hone_step *step, const hone_machine *machine) {
  const double in = (double)hone_desc_bytes(&step->input[0].desc),
               out = (double)hone_desc_bytes(&step->output[0].desc);
  blob_head h;
  hn_resize r;
  hone_reason why = {""};
  if (!describe(step, machine, &h, &r, &why)) return HN_REFUSED_SECONDS;
  /* Pixels are found one by one. */
  const double pixels = (double)(h.y.count * h.y.height * h.y.width);
  return hn_step_seconds(machine, 2 * out + 140 * pixels, in + 2 * out, 0.5);
}

hone_status hn_resize_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                hone_error *error) {
  blob_head h;
  hn_resize r;
  hone_reason why = {""};
  if (!describe(step, machine, &h, &r, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "resize: %s", why.text);
  need->blob_bytes = (size_t)h.bytes;
  need->workspace_bytes = h.linear ? scratch_bytes(&h) * machine->threads : 0;
  return HONE_OK;
}

/* The operator's table of one axis in the form of the kernels. axis < 0: one row that is its own source. */
static void fill(const hn_resize *r, int32_t axis, unsigned char *scratch, table t, int64_t n) {
  hn_resample_axis a = {.taps = 1};
  if (axis >= 0) {
    a.taps = hn_resample_taps(r, axis);
    a.index = (int64_t *)(void *)scratch;
    a.weight = (float *)(void *)(a.index + n * a.taps);
    a.outside = (bool *)(void *)(a.weight + n * a.taps);
    hn_resample_fill(r, axis, &a);
  }
  for (int64_t o = 0; o < n; o++) {
    const int64_t at = o * a.taps;
    t.first[o] = axis < 0 ? 0 : (int32_t)a.index[at];
    t.second[o] = a.taps > 1 ? (int32_t)a.index[at + 1] : t.first[o];
    t.weight[o] = a.taps > 1 ? a.weight[at + 1] : 0.0f;
  }
}

hone_status hn_resize_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                   hone_error *error) {
  blob_head *h = blob;
  hn_resize r;
  hone_reason why = {""};
  unsigned char *base = blob;
  if (!describe(step, machine, h, &r, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "resize: %s", why.text);
  const int32_t rank = step->input[0].desc.rank;
  const bool plain = step->input[0].desc.layout == HONE_LAYOUT_CHANNELS_LAST && rank == 3;
  for (int32_t i = rank > 1 ? rank - 2 : rank - 1; i < rank; i++)
    if (i >= 0 && hn_resample_taps(&r, i) > 2)
      return hn_fail(error, HONE_ERROR_INTERNAL, "resize: more than two taps");
  fill(&r, rank - 1, base + h->scratch_at, table_at(base + h->columns_at, h->y.width), h->y.width);
  fill(&r, rank > 1 && !plain ? rank - 2 : -1, base + h->scratch_at, table_at(base + h->rows_at, h->y.height),
       h->y.height);
  memset(base + h->scratch_at, 0,
         (size_t)(h->bytes - h->scratch_at)); /* saved plans are the same in every run */
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  int64_t per_task;
} job;

/* One row of elements that are only picked: pixel first[o] of src for each o. */
static void pick_bytes(uint8_t *y, const uint8_t *src, const blob_head *h, const int32_t *first) {
  const size_t bytes = (size_t)(h->x.channels * h->narrow);
  const int64_t to = h->y.pixel * h->narrow, from = h->x.pixel * h->narrow;
  if (bytes == 1)
    for (int64_t o = 0; o < h->y.width; o++) y[o * to] = src[first[o] * from];
  else if (bytes == 2)
    for (int64_t o = 0; o < h->y.width; o++) memcpy(y + o * to, src + first[o] * from, 2);
  else
    for (int64_t o = 0; o < h->y.width; o++) memcpy(y + o * to, src + first[o] * from, bytes);
}

/* One row of codes between codes: in f32, where all of it is exact, then cut off. */
static void blend_codes(const job *j, float *scratch, const table *columns, int64_t image, int64_t oy,
                        int64_t first, int64_t second, float weight) {
  const blob_head *h = j->h;
  const struct hn_resize_ops *ops = hn_resize_find(h->isa);
  const struct hn_quantize_ops *codes = hn_quantize_find(h->isa);
  const float one = 1, none = 0;
  const size_t n = (size_t)((h->x.width - 1) * h->x.pixel + h->x.channels);
  float *a = scratch, *b = a + line_bytes(h) / sizeof *a, *row = b + line_bytes(h) / sizeof *b;
  const uint8_t *x = (const uint8_t *)j->run->in[0] + image * h->x.image;
  uint8_t *y = (uint8_t *)j->run->out[0] + image * h->y.image + oy * h->y.row;
  codes->dequantize(a, x + first * h->x.row, n, &one, &none, false, h->is_signed);
  if (weight != 0.0f) {
    codes->dequantize(b, x + second * h->x.row, n, &one, &none, false, h->is_signed);
    ops->blend(a, a, b, n, weight);
  }
  ops->blend_row(row, h->y.channels, a, h->x.pixel, (size_t)h->y.channels, (size_t)h->y.width, columns->first,
                 columns->second, columns->weight);
  if (h->y.pixel == h->y.channels) {
    ops->cut(y, row, (size_t)(h->y.width * h->y.channels), h->is_signed);
    return;
  }
  for (int64_t i = 0; i < h->y.width; i++)
    ops->cut(y + i * h->y.pixel, row + i * h->y.channels, (size_t)h->y.channels, h->is_signed);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const struct hn_resize_ops *ops = hn_resize_find(h->isa);
  unsigned char *base = (unsigned char *)(uintptr_t)j->run->blob;
  const table columns = table_at(base + h->columns_at, h->y.width),
              rows = table_at(base + h->rows_at, h->y.height);
  const size_t line = (size_t)(h->x.width * h->x.pixel - (h->x.pixel - h->x.channels));
  float *blended = (float *)(void *)((unsigned char *)j->run->workspace + (size_t)thread * scratch_bytes(h));
  int64_t row = index * j->per_task, end = row + j->per_task;
  if (end > h->y.count * h->y.height) end = h->y.count * h->y.height;
  for (; row < end; row++) {
    const int64_t image = row / h->y.height, oy = row % h->y.height;
    if (h->narrow && h->linear) {
      blend_codes(j, blended, &columns, image, oy, rows.first[oy], rows.second[oy], rows.weight[oy]);
      continue;
    }
    if (h->narrow) {
      const int64_t to = image * h->y.image + oy * h->y.row,
                    from = image * h->x.image + rows.first[oy] * h->x.row;
      pick_bytes((uint8_t *)j->run->out[0] + to * h->narrow,
                 (const uint8_t *)j->run->in[0] + from * h->narrow, h, columns.first);
      continue;
    }
    const float *x = (const float *)j->run->in[0] + image * h->x.image;
    float *y = (float *)j->run->out[0] + image * h->y.image + oy * h->y.row;
    const float *src = x + rows.first[HN_FAULT("resize_source_row") && oy > 0 ? oy - 1 : oy] * h->x.row;
    if (!h->linear) {
      ops->pick_row(y, h->y.pixel, src, h->x.pixel, (size_t)h->x.channels, (size_t)h->y.width, columns.first);
      continue;
    }
    if (rows.weight[oy] != 0.0f) {
      ops->blend(blended, src, x + rows.second[oy] * h->x.row, line, rows.weight[oy]);
      src = blended;
    }
    ops->blend_row(y, h->y.pixel, src, h->x.pixel, (size_t)h->x.channels, (size_t)h->y.width, columns.first,
                   columns.second, columns.weight);
  }
}

hone_status hn_resize_step_run(const hone_step_run *run, hone_error *error) {
  const blob_head *h = run->blob;
  const int64_t rows = h->y.count * h->y.height, row_bytes = h->y.width * h->y.channels * 4 + 1;
  job j = {run, h, 16384 / row_bytes + 1};
  const int64_t tasks = hn_div_up(rows, j.per_task);
  (void)error;
  if (tasks <= 1)
    task(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, task, &j);
  return HONE_OK;
}
