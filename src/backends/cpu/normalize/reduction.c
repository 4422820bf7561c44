#include "backends/cpu/normalize/reduction.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "base/fault.h"
#include "base/integers.h"
#include "optimize/step/axes.h"

/* Strides of y along x's dimensions, 0 where reduced. */
static bool strides_of_result(const hone_tensor_desc *x, const hone_tensor_desc *y, uint32_t axes,
                              int64_t *y_stride, hone_reason *why) {
  /* y keeps the reduced dimensions as 1, or has dropped them. */
  int32_t at = 0;
  for (int32_t i = 0; i < x->rank; i++) {
    const bool reduced = axes >> i & 1;
    if (!reduced && (at >= y->rank || y->dim[at] != x->dim[i]))
      return hn_refuse(why, "the output's dimension %d does not fit", (int)at);
    y_stride[i] = reduced ? 0 : y->stride[at];
    if (!reduced || y->rank == x->rank) at++;
  }
  return true;
}

bool hn_reduction_collapse(const hone_tensor_desc *x, const int64_t *y_stride, uint32_t axes, hn_reduction *r,
                           hone_reason *why) {
  hn_nest *n = &r->nest;
  hn_nest_begin(n, x->rank, x->dim);
  hn_nest_add(n, x->stride);
  hn_nest_add(n, y_stride);
  /* Which dimensions are reduced survives sorting and merging as a stride of a third operand; kept ones of y
   * may have stride 0 by their size alone. */
  int64_t flag[HONE_MAX_RANK];
  for (int32_t i = 0; i < x->rank; i++) flag[i] = axes >> i & 1 ? 0 : x->stride[i];
  hn_nest_add(n, flag);
  hn_nest_finish(n);
  int32_t reduced = -1, last = n->rank - 1;
  for (int32_t i = 0; i < n->rank; i++) {
    if (n->stride[2][i] != 0 || n->stride[0][i] == 0) continue;
    if (reduced >= 0) return hn_refuse(why, "the reduced dimensions are not neighbours in memory");
    reduced = i;
  }
  n->n = 2;
  if (reduced < 0 && n->rank == HN_NEST_RANK) return hn_refuse(why, "too many dimensions");
  if (reduced < 0) { /* nothing is longer than 1: one row of each column */
    for (int32_t i = n->rank; i > 0; i--) {
      n->dim[i] = n->dim[i - 1];
      for (int32_t k = 0; k < 2; k++) n->stride[k][i] = n->stride[k][i - 1];
    }
    n->dim[0] = 1, n->stride[0][0] = 0, n->stride[1][0] = 0;
    n->rank++, last++, reduced = 0;
  }
  if (n->stride[0][last] != 1 && n->dim[last] > 1)
    return hn_refuse(why, "the input has no contiguous dimension");
  r->columns = reduced != last;
  r->length = n->dim[reduced];
  if (r->columns) {
    if (n->stride[1][last] != 1 && n->dim[last] > 1)
      return hn_refuse(why, "the output has not the input's layout");
    for (int32_t i = reduced; i + 2 < n->rank; i++) { /* the reduced one next to the last */
      const int64_t d = n->dim[i];
      n->dim[i] = n->dim[i + 1], n->dim[i + 1] = d;
      for (int32_t k = 0; k < 2; k++) {
        const int64_t s = n->stride[k][i];
        n->stride[k][i] = n->stride[k][i + 1], n->stride[k][i + 1] = s;
      }
    }
    r->kept = n->dim[last];
  }
  r->outer = 1;
  for (int32_t i = 0; i < n->rank - (r->columns ? 2 : 1); i++) r->outer *= n->dim[i];
  return true;
}

static bool describe(const hone_step *step, const hone_machine *machine, const hn_reduction_config *rule,
                     hn_reduction *r, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  uint32_t axes = 0;
  memset(r, 0, sizeof *r);
  if (x->dtype != HONE_DTYPE_F32 || y->dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "input or output is not f32");
  if (!hone_desc_known(x) || !hone_desc_known(y)) return hn_refuse(why, "dimensions are not known");
  if (step->n_epilogue) return hn_refuse(why, "a reduction has no epilogue");
  if (rule->spatial)
    for (int32_t i = 2; i < x->rank; i++) axes |= 1u << i;
  else if (!hn_step_axes(step, &axes, why))
    return false;
  if (axes == 0 && !rule->spatial) return hn_refuse(why, "nothing is reduced");
  if (hone_desc_count(x) == 0) return hn_refuse(why, "an empty input");
  r->isa = hn_isa_of(machine->isa);
  r->kind = rule->kind, r->finish = rule->finish;
  int64_t y_stride[HONE_MAX_RANK];
  if (!strides_of_result(x, y, axes, y_stride, why) || !hn_reduction_collapse(x, y_stride, axes, r, why))
    return false;
  if (r->columns) {
    /* Enough tasks for all threads, but no fewer than 64 floats each. */
    const int64_t wanted = (int64_t)machine->threads * 2 / (r->outer > 0 ? r->outer : 1) + 1;
    r->chunk = (r->kept / wanted + 63) / 64 * 64;
    if (r->chunk < 64) r->chunk = 64;
  }
  return true;
}

bool hn_reduction_accepts(const hone_step *step, const hone_machine *machine,
                          const hn_reduction_config *config, hone_reason *why) {
  hn_reduction r;
  return describe(step, machine, config, &r, why);
}

double hn_reduction_cost(const hone_step *step, const hone_machine *machine,
                         const hn_reduction_config *config) {
  (void)config;
  return hn_step_seconds(machine, 2 * (double)hone_desc_count(&step->input[0].desc),
                         (double)hone_desc_bytes(&step->input[0].desc), 0.3);
}

hone_status hn_reduction_need(const hone_step *step, const hone_machine *machine,
                              const hn_reduction_config *config, hone_tactic_need *need, hone_error *error) {
  (void)step, (void)machine, (void)config, (void)error;
  need->blob_bytes = sizeof(hn_reduction);
  need->workspace_bytes = 0;
  return HONE_OK;
}

hone_status hn_reduction_prepack(const hone_step *step, const hone_machine *machine,
                                 const hn_reduction_config *config, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(step, machine, config, blob, &why)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", step->anchor, why.text);
}

typedef struct job {
  const hn_reduction *r;
  const float *x;
  float *y;
  int64_t per_task;
} job;

static void finish(const hn_reduction *r, float *y, int64_t n) {
  const struct hn_pw_ops *pw = hn_pw_find(r->isa);
  const float count = (float)(r->length + (HN_FAULT("reduction_mean_count") ? 1 : 0));
  switch (r->finish) {
  case HN_FINISH_MEAN: pw->fn[HONE_PW_DIV](y, y, &count, NULL, (size_t)n, 2, NULL); break;
  case HN_FINISH_SQRT: pw->act[HONE_PW_SQRT](y, (size_t)n, NULL); break;
  case HN_FINISH_LOG: pw->act[HONE_PW_LOG](y, (size_t)n, NULL); break;
  default: break;
  }
}

static void row_task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_reduction *r = j->r;
  const struct hn_reduce_ops *ops = hn_reduce_find(r->isa);
  int64_t row = index * j->per_task, end = row + j->per_task;
  (void)thread;
  for (end = end < r->outer ? end : r->outer; row < end; row++) {
    float *y = j->y + hn_nest_offset(&r->nest, 1, row, 1);
    *y = ops->row[r->kind](j->x + hn_nest_offset(&r->nest, 0, row, 1), (size_t)r->length);
    finish(r, y, 1);
  }
}

static void column_task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_reduction *r = j->r;
  const int64_t chunks = hn_div_up(r->kept, r->chunk), at = index % chunks * r->chunk, outer = index / chunks;
  const int64_t n = r->kept - at < r->chunk ? r->kept - at : r->chunk;
  float *y = j->y + hn_nest_offset(&r->nest, 1, outer, 2) + at;
  (void)thread;
  hn_reduce_find(r->isa)->columns[r->kind](y, j->x + hn_nest_offset(&r->nest, 0, outer, 2) + at,
                                           (size_t)r->length, (size_t)n,
                                           (ptrdiff_t)r->nest.stride[0][r->nest.rank - 2]);
  finish(r, y, n);
}

hone_status hn_reduction_run(const hone_step_run *run, const hn_reduction_config *config, hone_error *error) {
  (void)config;
  const hn_reduction *r = run->blob;
  job j = {r, run->in[0], run->out[0], 1};
  (void)error;
  int64_t tasks = r->outer;
  if (r->columns) {
    tasks *= hn_div_up(r->kept, r->chunk);
  } else {
    j.per_task = 16384 / (r->length + 16) + 1;
    tasks = hn_div_up(r->outer, j.per_task);
  }
  if (tasks == 1)
    (r->columns ? column_task : row_task)(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, r->columns ? column_task : row_task, &j);
  return HONE_OK;
}
