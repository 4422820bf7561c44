/* BatchNormalization that no convolution could take in (inference form, constant statistics): y = x * scale +
 * shift with one pair a channel, prepared at plan time. Row-major and channels-last. */
#include <math.h>
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/norm/norm.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "model/ops/normalize/training.h"

typedef struct blob_head {
  hn_isa isa;
  bool channels_last;
  int64_t batch, channels, pixels;
  int64_t pitch_x, pitch_y;
  int64_t per_task; /* pixels (channels-last) or planes that a task does */
  float pair[];     /* scale[channels], shift[channels] */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  hn_pixels px, py;
  memset(h, 0, sizeof *h);
  if (!hn_step_is_f32(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "a standalone batch normalisation has no epilogue");
  if (s->n_outputs > 1 || hn_batch_norm_trains(s->node)) return hn_refuse(why, "only the inference form");
  if (!hone_node_int(s->node, "spatial", 1)) return hn_refuse(why, "only one set of statistics a channel");
  if (x->rank < 2 || !hone_desc_same_dims(x, y) || x->layout != y->layout)
    return hn_refuse(why, "input and output differ in dimensions or layout");
  h->isa = hn_isa_of(m->isa);
  h->batch = x->dim[0], h->channels = x->dim[1];
  const int64_t count = hone_desc_count(x);
  if (count == 0) return hn_refuse(why, "an empty input");
  h->pixels = count / (h->batch * h->channels);
  for (uint32_t i = 1; i < 5; i++)
    if (i >= s->n_anchor_inputs || !s->input[i].constant || hone_desc_count(&s->input[i].desc) != h->channels)
      return hn_refuse(why, "statistics are not constant, one value a channel");
  if (x->layout == HONE_LAYOUT_ROW_MAJOR && x->rank > 2) {
    h->per_task = 16384 / h->pixels + 1;
    return true;
  }
  h->channels_last = true;
  if (x->rank == 2) { /* a row-major matrix is already channels-last */
    h->pitch_x = h->pitch_y = h->channels;
  } else {
    if (!hn_pixels_of(x, &px) || !hn_pixels_of(y, &py) || !px.even || !py.even)
      return hn_refuse(why, "pixels are not evenly spaced");
    h->pitch_x = px.view.pixel, h->pitch_y = py.view.pixel;
    if (h->batch > 1 && (px.view.batch != h->pixels * h->pitch_x || py.view.batch != h->pixels * h->pitch_y))
      return hn_refuse(why, "images are not evenly spaced");
  }
  h->per_task = 16384 / h->channels + 1;
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, 2 * n, 8 * n, 0.5);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)m, (void)error;
  n->blob_bytes = sizeof(blob_head) + 2 * (size_t)s->input[0].desc.dim[1] * sizeof(float);
  n->workspace_bytes = 0;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  blob_head *h = blob;
  hone_reason why = {""};
  if (!describe(s, m, h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "batch_norm: %s", why.text);
  const float *gamma = s->input[1].constant, *beta = s->input[2].constant, *mean = s->input[3].constant,
              *var = s->input[4].constant;
  const double eps = (double)hone_node_float(s->node, "epsilon", 1e-5f);
  for (int64_t c = 0; c < h->channels; c++) {
    const double scale = (double)gamma[c] / sqrt((double)var[c] + eps);
    h->pair[c] = (float)scale;
    h->pair[h->channels + c] = (float)((double)beta[c] - (double)mean[c] * scale);
  }
  return HONE_OK;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->isa);
  const float *x = r->in[0], *scale = h->pair, *shift = h->pair + h->channels;
  float *y = r->out[0];
  const int64_t units = h->channels_last ? h->batch * h->pixels : h->batch * h->channels,
                begin = index * h->per_task;
  const int64_t end = begin + h->per_task < units ? begin + h->per_task : units;
  (void)thread;
  if (h->channels_last)
    ops->column_affine(y + begin * h->pitch_y, (ptrdiff_t)h->pitch_y, x + begin * h->pitch_x,
                       (ptrdiff_t)h->pitch_x, (size_t)(end - begin), (size_t)h->channels, NULL, scale, shift);
  else
    for (int64_t p = begin; p < end; p++)
      ops->affine(y + p * h->pixels, x + p * h->pixels, (size_t)h->pixels, 0.0f, scale[p % h->channels],
                  shift[HN_FAULT("batch_norm_second_image") && p >= h->channels ? 0 : p % h->channels]);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const int64_t units = h->channels_last ? h->batch * h->pixels : h->batch * h->channels;
  (void)error;
  r->parallel(r->pool, hn_div_up(units, h->per_task), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, batch_norm, "BatchNormalization", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
