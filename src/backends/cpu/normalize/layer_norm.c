#include "backends/cpu/normalize/layer_norm.h"

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/norm/norm.h"
#include "base/dims.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/strided.h"
#include "optimize/step/axes.h"

static int64_t row_length(const hone_step *step) {
  const hone_tensor_desc *x = &step->input[0].desc;
  int64_t axis = step->node ? hone_node_int(step->node, "axis", -1) : -1;
  return hn_dims(x, (int32_t)(axis < 0 ? axis + x->rank : axis), x->rank);
}

static bool input_fits(const hone_step *step, uint32_t i, const char *what, int64_t count, hone_reason *why) {
  if (i == HN_NO_TENSOR || i >= step->n_anchor_inputs || !hn_step_has(step, i)) return true;
  const hone_tensor_desc *d = &step->input[i].desc;
  if (d->dtype != HONE_DTYPE_F32 || hone_desc_count(d) != count || !hn_strided_dense(d))
    return hn_refuse(why, "%s is not %lld row-major f32 values", what, (long long)count);
  return true;
}

bool hn_layer_norm_accepts(const hone_step *step, const hone_machine *machine,
                           const hn_layer_norm_config *roles, hone_reason *why) {
  (void)machine;
  const hone_tensor_desc *x = &step->input[0].desc;
  if (!hn_step_is_f32(step, why)) return false;
  if (step->n_epilogue) return hn_refuse(why, "layer normalisation has no epilogue");
  if (x->rank < 1 || hone_desc_count(x) == 0) return hn_refuse(why, "a scalar or empty input");
  int32_t axis;
  if (!hn_step_axis(step->node ? hone_node_int(step->node, "axis", -1) : -1, x->rank, &axis, why))
    return false;
  if (!hn_strided_dense(x) || !hone_desc_same_dims(x, &step->output[0].desc) ||
      !hn_strided_dense(&step->output[0].desc))
    return hn_refuse(why, "input or output is not row-major");
  for (uint32_t i = 0; i < step->n_outputs; i++) {
    const hone_tensor_desc *d = &step->output[i].desc;
    if (d->dtype == HONE_DTYPE_NONE) continue;
    if (d->dtype != HONE_DTYPE_F32 || !hn_strided_dense(d))
      return hn_refuse(why, "output %u is not row-major f32", i);
    if (i > 0 && i != roles->mean && i != roles->inv_std && i != roles->sum)
      return hn_refuse(why, "output %u is not computed", i);
  }
  const int64_t n = row_length(step), count = hone_desc_count(x);
  return input_fits(step, roles->residual, "the residual", count, why) &&
         input_fits(step, roles->bias, "the bias", n, why) &&
         input_fits(step, roles->gamma, "the scale", n, why) &&
         input_fits(step, roles->beta, "the shift", n, why);
}

double hn_layer_norm_cost(const hone_step *step, const hone_machine *machine,
                          const hn_layer_norm_config *roles) {
  (void)roles;
  const double n = (double)hone_desc_count(&step->input[0].desc);
  const bool sum = step->n_anchor_inputs > 1 && hone_desc_count(&step->input[1].desc) == (int64_t)n;
  /* Products of few rows are divided among threads by columns; a row is read whole. */
  return hn_step_seconds(machine, 16 * n, 12 * n, 0.5) + hn_handed_over_seconds(machine, (sum ? 8 : 4) * n);
}

hone_status hn_layer_norm_need(const hone_step *step, const hone_machine *machine,
                               const hn_layer_norm_config *roles, hone_tactic_need *need, hone_error *error) {
  (void)step, (void)machine, (void)roles, (void)error;
  need->blob_bytes = sizeof(hn_isa);
  need->workspace_bytes = 0;
  return HONE_OK;
}

hone_status hn_layer_norm_prepack(const hone_step *step, const hone_machine *machine,
                                  const hn_layer_norm_config *roles, void *blob, hone_error *error) {
  (void)step, (void)roles, (void)error;
  *(hn_isa *)blob = hn_isa_of(machine->isa);
  return HONE_OK;
}

typedef struct job {
  const struct hn_norm_ops *ops;
  struct hn_norm_row row; /* the first one */
  float *mean, *inv_std;
  int64_t rows, per_task;
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  int64_t i = index * j->per_task, end = i + j->per_task;
  (void)thread;
  end = end < j->rows ? end : j->rows;
  struct hn_norm_row r = j->row;
  const size_t at = (size_t)i * r.n;
  r.x += at, r.y += at;
  if (r.residual && !HN_FAULT("layer_norm_residual_row")) r.residual += at;
  if (HN_FAULT("layer_norm_shift") && i > 0) r.beta = NULL;
  if (r.h) r.h += at;
  j->ops->rows(&r, (size_t)(end - i), j->mean ? j->mean + i : NULL, j->inv_std ? j->inv_std + i : NULL);
}

static const void *input(const hone_step_run *run, uint32_t i) {
  return i != HN_NO_TENSOR && i < run->step->n_anchor_inputs && hn_step_has(run->step, i) ? run->in[i] : NULL;
}

static void *output(const hone_step_run *run, uint32_t i) {
  return i != HN_NO_TENSOR && i < run->step->n_outputs && run->step->output[i].desc.dtype != HONE_DTYPE_NONE
             ? run->out[i]
             : NULL;
}

hone_status hn_layer_norm_run(const hone_step_run *run, const hn_layer_norm_config *roles,
                              hone_error *error) {
  (void)error;
  const hone_step *step = run->step;
  const int64_t n = row_length(step);
  job j = {
      .ops = hn_norm_find(*(const hn_isa *)run->blob),
      .row = {.x = run->in[0],
              .residual = input(run, roles->residual),
              .bias = input(run, roles->bias),
              .gamma = input(run, roles->gamma),
              .beta = input(run, roles->beta),
              .y = run->out[0],
              .h = output(run, roles->sum),
              .n = (size_t)n,
              .eps = step->node ? hone_node_float(step->node, "epsilon", roles->epsilon) : roles->epsilon,
              .rms = roles->rms},
      .mean = output(run, roles->mean),
      .inv_std = output(run, roles->inv_std),
      .rows = hone_desc_count(&step->input[0].desc) / n};
  j.per_task = 8192 / n + 1;
  const int64_t tasks = hn_div_up(j.rows, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, task, &j);
  return HONE_OK;
}
