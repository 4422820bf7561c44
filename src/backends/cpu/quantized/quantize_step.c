#include "backends/cpu/quantized/quantize_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "model/ops/quantized/quant.h"

/* The tensor as `rows` rows of `length` elements: row r has parameter r % channels, or element i of each row
 * parameter i when `vectors`. Rows may lie apart: pixels whose channels are some of a Concat's. */
typedef struct blob_head {
  hn_isa isa;
  bool is_signed, vectors, wide; /* wide: 16 bits */
  int64_t rows, length, channels;
  int64_t x_pitch, y_pitch; /* elements from row to row */
  float param[];            /* scale[channels], zero[channels] */
} blob_head;

static bool is_apart(const hone_tensor_desc *d) {
  return d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch != d->dim[1];
}

static bool is_plain(const hone_tensor_desc *d) {
  return d->layout == HONE_LAYOUT_ROW_MAJOR || d->layout == HONE_LAYOUT_CHANNELS_LAST;
}

static bool describe(const hone_step *step, bool to_real, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc, *real = to_real ? y : x,
                         *coded = to_real ? x : y;
  const bool shifted = step->n_anchor_inputs > 2 && hn_step_has(step, 2);
  memset(h, 0, sizeof *h);
  if (real->dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "the real side is %s, not f32", hone_dtype_name(real->dtype));
  h->wide = coded->dtype == HONE_DTYPE_U16 || coded->dtype == HONE_DTYPE_I16;
  if (!h->wide && coded->dtype != HONE_DTYPE_U8 && coded->dtype != HONE_DTYPE_I8)
    return hn_refuse(why, "the quantised side is %s, not 8 or 16 bits", hone_dtype_name(coded->dtype));
  if (step->n_epilogue) return hn_refuse(why, "quantisation has no epilogue");
  if (!hone_desc_known(x) || !hone_desc_same_dims(x, y) || x->layout != y->layout || !is_plain(x))
    return hn_refuse(why, "input and output are not plain and of one layout");
  if (!step->input[1].constant || step->input[1].desc.dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "the scale is not constant f32");
  if (shifted && (!step->input[2].constant || step->input[2].desc.dtype != coded->dtype))
    return hn_refuse(why, "the zero point is not constant");
  hn_quant_map map;
  hone_error error = {0};
  if (hn_quant_map_init(&map, step->node, x, &step->input[1].desc, shifted ? &step->input[2].desc : NULL,
                        &error))
    return hn_refuse(why, "%.140s", error.what);
  if (map.kind == HN_BLOCKED) return hn_refuse(why, "blocked parameters");
  h->is_signed = coded->dtype == HONE_DTYPE_I8 || coded->dtype == HONE_DTYPE_I16;
  const int64_t count = hone_desc_count(x);
  if (count == 0) return hn_refuse(why, "an empty input");
  h->channels = 1, h->rows = 1, h->length = count;
  if (is_apart(x) || is_apart(y)) h->length = x->dim[1], h->rows = count / h->length;
  h->x_pitch = is_apart(x) ? x->channel_pitch : h->length;
  h->y_pitch = is_apart(y) ? y->channel_pitch : h->length;
  if (map.kind == HN_PER_TENSOR || map.axis == 1) return true;
  h->channels = map.axis;
  if (x->layout == HONE_LAYOUT_ROW_MAJOR) {
    h->vectors = map.inner == 1;
    h->rows = h->vectors ? map.outer : map.outer * map.axis;
    h->length = h->vectors ? map.axis : map.inner;
    h->x_pitch = h->y_pitch = h->length;
  } else {
    if (map.outer != x->dim[0] || map.axis != x->dim[1])
      return hn_refuse(why, "parameters along another axis than the channels");
    h->vectors = true, h->length = map.axis, h->rows = count / map.axis;
    h->x_pitch = x->channel_pitch, h->y_pitch = y->channel_pitch;
  }
  return true;
}

bool hn_quantize_step_accepts(const hone_step *step, const hone_machine *machine,
                              const hn_quantize_step_config *config, hone_reason *why) {
  blob_head h;
  (void)machine;
  return describe(step, config->to_real, &h, why);
}

double hn_quantize_step_cost(const hone_step *step, const hone_machine *machine,
                             const hn_quantize_step_config *config) {
  (void)config;
  const double n = (double)hone_desc_count(&step->input[0].desc);
  return hn_step_seconds(machine, 16 * n, 5 * n, 0.5);
}

hone_status hn_quantize_step_need(const hone_step *step, const hone_machine *machine,
                                  const hn_quantize_step_config *config, hone_tactic_need *need,
                                  hone_error *error) {
  (void)machine, (void)config, (void)error;
  need->blob_bytes = sizeof(blob_head) + 2 * sizeof(float) * (size_t)hone_desc_count(&step->input[1].desc);
  need->workspace_bytes = 0;
  return HONE_OK;
}

static float zero_of(const blob_head *h, const void *zero, int64_t i) {
  if (!zero) return 0;
  if (h->wide) return h->is_signed ? (float)((const int16_t *)zero)[i] : (float)((const uint16_t *)zero)[i];
  return h->is_signed ? (float)((const int8_t *)zero)[i] : (float)((const uint8_t *)zero)[i];
}

hone_status hn_quantize_step_prepack(const hone_step *step, const hone_machine *machine,
                                     const hn_quantize_step_config *config, void *blob, hone_error *error) {
  blob_head *h = blob;
  hone_reason why = {""};
  if (!describe(step, config->to_real, h, &why)) return hn_not_described(step, &why, error);
  h->isa = hn_isa_of(machine->isa);
  const void *zero = step->n_anchor_inputs > 2 && hn_step_has(step, 2) ? step->input[2].constant : NULL;
  memcpy(h->param, step->input[1].constant, (size_t)h->channels * sizeof(float));
  for (int64_t i = 0; i < h->channels; i++) h->param[h->channels + i] = zero_of(h, zero, i);
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  bool to_real;
  int64_t chunk, chunks, per_task; /* elements of a row, chunks in a row, chunks in a task */
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->run->blob;
  const struct hn_quantize_ops *ops = hn_quantize_find(h->isa);
  int64_t i = index * j->per_task, end = i + j->per_task;
  (void)thread;
  for (end = end < h->rows * j->chunks ? end : h->rows * j->chunks; i < end; i++) {
    const int64_t row = i / j->chunks, in_row = i % j->chunks * j->chunk, from = row * h->x_pitch + in_row,
                  to = row * h->y_pitch + in_row;
    const size_t n = (size_t)(h->length - in_row < j->chunk ? h->length - in_row : j->chunk);
    const int64_t k = h->vectors ? in_row : HN_FAULT("quantize_channel") ? 0 : row % h->channels;
    const float *scale = h->param + k, *zero = scale + h->channels;
    const int64_t bytes = h->wide ? 2 : 1; /* of a code */
    if (j->to_real)
      (h->wide ? ops->dequantize_wide : ops->dequantize)((float *)j->run->out[0] + to,
                                                         (const char *)j->run->in[0] + from * bytes, n, scale,
                                                         zero, h->vectors, h->is_signed);
    else
      (h->wide ? ops->quantize_wide : ops->quantize)((char *)j->run->out[0] + to * bytes,
                                                     (const float *)j->run->in[0] + from, n, scale, zero,
                                                     h->vectors, h->is_signed);
  }
}

hone_status hn_quantize_step_run(const hone_step_run *run, const hn_quantize_step_config *config,
                                 hone_error *error) {
  (void)error;
  enum { TASK = 16384 };
  const blob_head *h = run->blob;
  job j = {run, config->to_real, h->length < TASK ? h->length : TASK, 1, 1};
  j.chunks = hn_div_up(h->length, j.chunk);
  j.per_task = TASK / j.chunk;
  const int64_t tasks = hn_div_up(h->rows * j.chunks, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, task, &j);
  return HONE_OK;
}
