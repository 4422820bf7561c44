/* Gather of channels that are known, channels-last: each pixel's elements in another order (a shuffle), or
 * some of them. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/movement/windows.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

typedef struct blob_head {
  hn_isa isa;
  int64_t batch, pixels; /* of an image */
  int64_t in_batch, in_pixel, channels;
  int64_t out_batch, out_pixel, picked;
  int64_t per_task; /* pixels of an image */
  int64_t windows_at, bytes;
  uint32_t first[]; /* then, from windows_at on, the windows */
} blob_head;

/* Channel i of the output, or negative where there is none such. */
static int64_t channel(const hone_step *s, int64_t i, int64_t channels) {
  const void *index = s->input[1].constant;
  const int64_t c =
      s->input[1].desc.dtype == HONE_DTYPE_I64 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
  const int64_t at = c < 0 ? c + channels : c;
  return at < channels ? at : -1;
}

static bool indices(const hone_step *s, int64_t channels, hone_reason *why) {
  const hone_tensor_desc *d = &s->input[1].desc;
  if (!s->input[1].constant) return hn_refuse(why, "indices are known in the run only");
  if (d->rank != 1 || !hn_step_plain(d)) return hn_refuse(why, "indices are no vector");
  if (d->dtype != HONE_DTYPE_I64 && d->dtype != HONE_DTYPE_I32)
    return hn_refuse(why, "indices are %s", hone_dtype_name(d->dtype));
  for (int64_t i = 0; i < d->dim[0]; i++)
    if (channel(s, i, channels) < 0) return hn_refuse(why, "an index is outside of the channels");
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  hn_pixels px, py;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  const int64_t axis = hone_node_int(s->node, "axis", 0);
  if (s->n_epilogue) return hn_refuse(why, "a gather has no epilogue");
  if (x->dtype != y->dtype || hone_dtype_size(x->dtype) != 4)
    return hn_refuse(why, "elements are not of 4 bytes");
  if (x->layout != HONE_LAYOUT_CHANNELS_LAST || y->layout != HONE_LAYOUT_CHANNELS_LAST ||
      !hn_pixels_of(x, &px) || !hn_pixels_of(y, &py) || !px.even || !py.even)
    return hn_refuse(why, "not channels-last, with evenly spaced pixels");
  if (x->rank != y->rank || (axis != 1 && axis != 1 - x->rank))
    return hn_refuse(why, "the axis is not that of channels");
  if (!indices(s, px.channels, why)) return false;
  if (px.channels > INT32_MAX || !hn_pick_find(h->isa))
    return hn_refuse(why, "no kernel for so many channels");
  h->batch = px.batch, h->pixels = px.size[0] * px.size[1] * px.size[2];
  h->in_batch = px.view.batch, h->in_pixel = px.view.pixel, h->channels = px.channels;
  h->out_batch = py.view.batch, h->out_pixel = py.view.pixel, h->picked = py.channels;
  h->per_task = 16384 / (h->picked + 16) + 1;
  h->windows_at = hn_fill_up((int64_t)sizeof *h + (h->picked + 1) * (int64_t)sizeof *h->first, 64);
  h->bytes = h->windows_at + h->picked * (int64_t)sizeof(hn_pick_window);
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const double vectors =
      (double)(h->batch * h->pixels) * (double)hn_div_up(h->picked, hn_pick_find(h->isa)->vw);
  return hn_step_seconds(m, 0, 2.0 * (double)hone_desc_bytes(&s->output[0].desc), 1) +
         vectors * 0.5e-9 / (m->threads ? m->threads : 1);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s, (void)m;
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = 0;
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  memcpy(blob, h, sizeof *h);
  int32_t *from = hn_calloc((size_t)h->picked + 1, sizeof *from);
  if (!from) return hn_fail_memory(error, (size_t)h->picked * sizeof *from, "gather_channels");
  for (int64_t i = 0; i < h->picked; i++) from[i] = (int32_t)channel(s, i, h->channels);
  hn_windows_find(from, (size_t)h->picked, (size_t)h->channels, hn_pick_find(h->isa)->vw,
                  ((blob_head *)blob)->first, (hn_pick_window *)(void *)((char *)blob + h->windows_at));
  hn_free(from);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const struct hn_pick_ops *ops;
  hn_pick pick;
  int64_t chunks; /* of an image */
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t image = index / j->chunks, at = index % j->chunks * h->per_task;
  const int64_t n = hn_min(h->per_task, h->pixels - at);
  (void)thread;
  j->ops->pixels(&j->pick, (uint32_t *)j->run->out[0] + image * h->out_batch + at * h->out_pixel,
                 (ptrdiff_t)h->out_pixel,
                 (const uint32_t *)j->run->in[0] + image * h->in_batch + at * h->in_pixel,
                 (ptrdiff_t)h->in_pixel, (size_t)n);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hn_pick_window *window =
      (const hn_pick_window *)(const void *)((const char *)r->blob + h->windows_at);
  job j = {r, h, hn_pick_find(h->isa), {(size_t)h->picked, h->first, window}, 0};
  if (h->pixels == 0 || h->batch == 0) return HONE_OK;
  j.chunks = hn_div_up(h->pixels, h->per_task);
  r->parallel(r->pool, h->batch * j.chunks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, gather_channels, "Gather", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
