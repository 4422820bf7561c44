#include "backends/cpu/pooling/pooling.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/pool/pool.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

/* Spatial lists are filled up in front to three values. */
static bool list3(const hone_node *node, const char *name, int32_t spatial, int64_t fill, int64_t out[3],
                  hone_reason *why) {
  size_t n = 0;
  const int64_t *v = hone_node_ints(node, name, &n);
  for (int32_t i = 0; i < 3; i++) out[i] = fill;
  if (v && (int64_t)n != spatial)
    return hn_refuse(why, "%s has %zu values for %d dimensions", name, n, (int)spatial);
  for (int32_t i = 0; v && i < spatial; i++) out[3 - spatial + i] = v[i];
  return true;
}

static bool padding(const hone_step *step, int32_t spatial, hn_pooling *p, hone_reason *why) {
  const char *mode = hone_node_string(step->node, "auto_pad", "NOTSET");
  size_t n = 0;
  const int64_t *pads = hone_node_ints(step->node, "pads", &n);
  memset(p->begin, 0, sizeof p->begin);
  memset(p->end, 0, sizeof p->end);
  if (!strncmp(mode, "SAME", 4)) {
    for (int32_t i = 0; i < 3; i++) {
      int64_t total =
          (p->y.size[i] - 1) * p->stride[i] + (p->kernel[i] - 1) * p->dilation[i] + 1 - p->x.size[i];
      if (total < 0) total = 0;
      p->begin[i] = !strcmp(mode, "SAME_LOWER") ? total - total / 2 : total / 2;
      p->end[i] = total - p->begin[i];
    }
  } else if (pads && !strcmp(mode, "NOTSET")) {
    if ((int64_t)n != 2 * spatial)
      return hn_refuse(why, "pads has %zu values for %d dimensions", n, (int)spatial);
    for (int32_t i = 0; i < spatial; i++) {
      p->begin[3 - spatial + i] = pads[i];
      p->end[3 - spatial + i] = pads[spatial + i];
      if (pads[i] < 0 || pads[spatial + i] < 0) return hn_refuse(why, "negative padding");
    }
  }
  return true;
}

bool hn_pooling_of(const hone_step *step, const hone_machine *machine, bool max, hn_pooling *p,
                   hone_reason *why) {
  memset(p, 0, sizeof *p);
  const hone_dtype type = step->input[0].desc.dtype;
  if (!hn_step_is_float(step, type == HONE_DTYPE_F16 || type == HONE_DTYPE_BF16 ? type : HONE_DTYPE_F32, why))
    return false;
  if (step->output[0].desc.dtype != type) return hn_refuse(why, "input and output are not of one type");
  p->stored = type == HONE_DTYPE_F16    ? HN_STORED_F16
              : type == HONE_DTYPE_BF16 ? HN_STORED_BF16
                                        : HN_STORED_F32;
  if (step->n_epilogue) return hn_refuse(why, "pooling has no epilogue");
  if (step->n_outputs > 1 && step->output[1].desc.dtype != HONE_DTYPE_NONE)
    return hn_refuse(why, "indices of the maxima are wanted");
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  if (!hn_pixels_of(x, &p->x) || !hn_pixels_of(y, &p->y))
    return hn_refuse(why, "input or output is not channels-last of rank 3 to 5");
  const int32_t spatial = x->rank - 2;
  p->isa = hn_isa_of(machine->isa);
  p->max = max;
  p->count_padding = hone_node_int(step->node, "count_include_pad", 0) != 0;
  if (!hone_node_has(step->node, "kernel_shape")) return hn_refuse(why, "kernel_shape is missing");
  if (!list3(step->node, "kernel_shape", spatial, 1, p->kernel, why) ||
      !list3(step->node, "strides", spatial, 1, p->stride, why) ||
      !list3(step->node, "dilations", spatial, 1, p->dilation, why) || !padding(step, spatial, p, why))
    return false;
  for (int32_t i = 0; i < 3; i++)
    if (p->kernel[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1)
      return hn_refuse(why, "kernel, stride or dilation below 1");
  return true;
}

bool hn_pooling_accepts(const hone_step *step, const hone_machine *machine, const hn_pooling_config *config,
                        hone_reason *why) {
  hn_pooling p;
  return hn_pooling_of(step, machine, config->max, &p, why);
}

double hn_pooling_cost(const hone_step *step, const hone_machine *machine, const hn_pooling_config *config) {
  hn_pooling p;
  if (!hn_pooling_of(step, machine, config->max, &p, NULL)) return HN_REFUSED_SECONDS;
  const double taps = (double)(p.kernel[0] * p.kernel[1] * p.kernel[2]),
               out = (double)hone_desc_count(&step->output[0].desc);
  const double bytes =
      (double)hone_desc_bytes(&step->input[0].desc) + (double)hone_desc_bytes(&step->output[0].desc);
  return hn_step_seconds(machine, 2 * taps * out, bytes, config->max ? 0.15 : 0.3);
}

hone_status hn_pooling_need(const hone_step *step, const hone_machine *machine,
                            const hn_pooling_config *config, hone_tactic_need *need, hone_error *error) {
  (void)step, (void)machine, (void)config, (void)error;
  need->blob_bytes = sizeof(hn_pooling);
  need->workspace_bytes = 0;
  return HONE_OK;
}

hone_status hn_pooling_prepack(const hone_step *step, const hone_machine *machine,
                               const hn_pooling_config *config, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (!hn_pooling_of(step, machine, config->max, blob, &why)) return hn_not_described(step, &why, error);
  return HONE_OK;
}

typedef struct job {
  const hn_pooling *p;
  const char *x;
  char *y;
  int64_t rows, per_task;
} job;

/* Taps of dimension i for the output coordinate: first valid input coordinate, valid and counted taps. */
static int64_t clip(const hn_pooling *p, int i, int64_t at, int64_t *taps, int64_t *counted) {
  const int64_t x0 = at * p->stride[i] - p->begin[i];
  int64_t first = 0;
  *taps = *counted = 0;
  for (int64_t k = 0; k < p->kernel[i]; k++) {
    const int64_t x = x0 + k * p->dilation[i];
    *counted += x < p->x.size[i] + (HN_FAULT("pooling_counted_padding") ? 0 : p->end[i]);
    if (x < 0 || x >= p->x.size[i]) continue;
    if ((*taps)++ == 0) first = x;
  }
  return first;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_pooling *p = j->p;
  const struct hn_pool_ops *ops = hn_pool_find(p->isa);
  int64_t row = index * j->per_task, end = row + j->per_task;
  (void)thread;
  for (end = end < j->rows ? end : j->rows; row < end; row++) {
    const int64_t oy = row % p->y.size[1], oz = row / p->y.size[1] % p->y.size[0],
                  n = row / p->y.size[1] / p->y.size[0];
    int64_t taps_z, taps_y, counted_z, counted_y;
    const int64_t z = clip(p, 0, oz, &taps_z, &counted_z), y = clip(p, 1, oy, &taps_y, &counted_y);
    const int64_t size = p->stored == HN_STORED_F32 ? 4 : 2;
    const struct hn_pool_row r = {.src = j->x + hn_view_at(&p->x.view, n, z, y, 0) * size,
                                  .taps_z = taps_z,
                                  .taps_y = taps_y,
                                  .step_z = p->dilation[0] * p->x.view.slice,
                                  .step_y = p->dilation[1] * p->x.view.row,
                                  .width = p->x.size[2],
                                  .pitch = p->x.view.pixel,
                                  .kernel = p->kernel[2],
                                  .stride = p->stride[2],
                                  .dilation = p->dilation[2],
                                  .pad_begin = p->begin[2],
                                  .pad_end = p->end[2],
                                  .counted_zy = p->count_padding ? counted_z * counted_y : 0,
                                  .channels = p->x.channels,
                                  .dst = j->y + hn_view_at(&p->y.view, n, oz, oy, 0) * size,
                                  .out_width = p->y.size[2],
                                  .out_pitch = p->y.view.pixel};
    (p->max ? ops->max : ops->average)[p->stored](&r);
  }
}

hone_status hn_pooling_run(const hone_step_run *run, const hn_pooling_config *config, hone_error *error) {
  const hn_pooling *p = run->blob;
  job j = {p, run->in[0], run->out[0], p->y.batch * p->y.size[0] * p->y.size[1], 1};
  (void)config, (void)error;
  /* About four tasks a thread, each of at least 16 KiB of output. */
  const int64_t row_bytes = p->y.size[2] * p->y.channels * 4 + 1;
  j.per_task = j.rows / ((int64_t)run->threads * 4);
  if (j.per_task * row_bytes < 16384) j.per_task = 16384 / row_bytes + 1;
  const int64_t tasks = hn_div_up(j.rows, j.per_task);
  if (tasks <= 1)
    task(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, task, &j);
  return HONE_OK;
}
