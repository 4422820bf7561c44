/* DynamicQuantizeLinear: the range of a tensor, then its codes, in any dense layout. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/cpu/kernels/reduce/reduce.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { TASK = 16384, MOST_TASKS = 64 };

static int64_t tasks_of(int64_t n) { return hn_min(hn_max(hn_div_up(n, TASK), 1), MOST_TASKS); }

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  (void)m;
  if (s->n_outputs != 3) return hn_refuse(why, "an output is left out");
  if (x->dtype != HONE_DTYPE_F32) return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  if (s->output[1].desc.dtype != HONE_DTYPE_F32) return hn_refuse(why, "the scale is not f32");
  if (s->n_epilogue) return hn_refuse(why, "quantisation has no epilogue");
  if (!hone_desc_known(x) || !hone_desc_same_dims(x, y) || x->layout != y->layout)
    return hn_refuse(why, "input and output are not of one shape and layout");
  if (x->layout == HONE_LAYOUT_CHANNELS_LAST &&
      (x->channel_pitch != x->dim[1] || y->channel_pitch != y->dim[1]))
    return hn_refuse(why, "channels have gaps");
  return hone_desc_count(x) > 0 ? true : hn_refuse(why, "an empty input");
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, 20 * n, 9 * n, 0.5);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)s, (void)m, (void)error;
  n->blob_bytes = sizeof(hn_isa);
  n->workspace_bytes = 2 * MOST_TASKS * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  (void)s, (void)error;
  *(hn_isa *)blob = hn_isa_of(m->isa);
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  const struct hn_reduce_ops *reduce;
  const struct hn_quantize_ops *quantize;
  int64_t n, tasks;
  float *range; /* of each task, with 0: least, most */
  float scale, zero;
} job;

/* Without NaN, as comparisons see it. */
static void range_of_numbers(const float *x, int64_t n, float *least, float *most) {
  *least = *most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < *least) *least = x[i];
    if (x[i] > *most) *most = x[i];
  }
}

static void find_range(void *arg, int64_t t, uint32_t thread) {
  enum { BLOCK = 4096 }; /* read twice, the second time from L1 */
  const job *j = arg;
  const int64_t from = t * j->n / j->tasks,
                end = (t + 1) * j->n / j->tasks - (HN_FAULT("dynamic_last") ? 1 : 0);
  float *range = j->range + 2 * t;
  (void)thread;
  range[0] = range[1] = 0;
  for (int64_t i = from; i < end; i += BLOCK) {
    const float *x = (const float *)j->run->in[0] + i;
    const size_t n = (size_t)hn_min(BLOCK, end - i);
    float least = j->reduce->row[HN_REDUCE_MIN](x, n), most = j->reduce->row[HN_REDUCE_MAX](x, n);
    if (isnan(least)) range_of_numbers(x, (int64_t)n, &least, &most);
    range[0] = fminf(least, range[0]);
    range[1] = fmaxf(most, range[1]);
  }
}

static void make_codes(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const int64_t from = t * j->n / j->tasks, end = (t + 1) * j->n / j->tasks;
  (void)thread;
  j->quantize->quantize((uint8_t *)j->run->out[0] + from, (const float *)j->run->in[0] + from,
                        (size_t)(end - from), &j->scale, &j->zero, false, false);
}

static void each(const job *j, void (*fn)(void *, int64_t, uint32_t)) {
  if (j->tasks == 1)
    fn((void *)(uintptr_t)j, 0, 0);
  else
    j->run->parallel(j->run->pool, j->tasks, fn, (void *)(uintptr_t)j);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hn_isa isa = *(const hn_isa *)r->blob;
  const int64_t n = hone_desc_count(&r->step->input[0].desc);
  job j = {.run = r,
           .reduce = hn_reduce_find(isa),
           .quantize = hn_quantize_find(isa),
           .n = n,
           .tasks = tasks_of(n),
           .range = r->workspace};
  (void)error;
  each(&j, find_range);
  float least = 0, most = 0;
  for (int64_t t = 0; t < j.tasks; t++) {
    least = fminf(least, j.range[2 * t]);
    most = fmaxf(most, j.range[2 * t + 1]);
  }
  /* The formulas of ONNX, in its order. */
  j.scale = (most - least) / 255;
  if (j.scale == 0) j.scale = 1; /* all zero: any scale will do */
  j.zero = rintf(fminf(fmaxf(0 - least / j.scale, 0), 255));
  each(&j, make_codes);
  if (r->out[1]) *(float *)r->out[1] = j.scale;
  if (r->out[2]) *(uint8_t *)r->out[2] = (uint8_t)j.zero;
  return HONE_OK;
}

HN_TACTIC(cpu, dynamic_quantize, "DynamicQuantizeLinear", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
