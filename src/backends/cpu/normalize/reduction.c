#include "backends/cpu/normalize/reduction.h"

#include <stddef.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "backends/tactic.h"
#include "base/error.h"
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

static size_t blob_bytes(const hn_reduction_plan *plan) {
  return offsetof(hn_reduction_plan, pass) + (size_t)plan->n * sizeof plan->pass[0];
}

/* The dimensions of x longer than 1, the largest step first, and how many. */
static int32_t in_memory_order(const hone_tensor_desc *x, int32_t order[HONE_MAX_RANK]) {
  int32_t n = 0;
  for (int32_t i = 0; i < x->rank; i++) {
    if (x->dim[i] == 1) continue;
    int32_t at = n++;
    for (; at > 0 && x->stride[order[at - 1]] < x->stride[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  return n;
}

/* The sets of reduced dimensions that are one in memory, and how many there are. */
static int32_t runs_of(const hone_tensor_desc *x, uint32_t axes, uint32_t run[HONE_MAX_RANK]) {
  int32_t order[HONE_MAX_RANK], runs = 0, before = -1;
  const int32_t n = in_memory_order(x, order);
  for (int32_t k = 0; k < n; k++) {
    const int32_t i = order[k];
    if (!(axes >> i & 1)) {
      before = -1;
      continue;
    }
    if (before < 0 || x->stride[before] != x->stride[i] * x->dim[i]) run[runs++] = 0;
    run[runs - 1] |= 1u << i;
    before = i;
  }
  return runs;
}

/* Long reductions with few results are cut into parts, by sizes alone: the sum must not depend on the number
 * of threads. */
enum { PART = 65536, FEW = 32, MAX_PARTS = 64 };

static int64_t parts_of(const hn_reduction *r) {
  const int64_t kept = r->columns ? r->kept : 1, results = r->outer * hn_div_up(kept, 64);
  if (results >= FEW) return 1;
  int64_t parts = r->outer * kept * r->length / PART;
  if (parts > MAX_PARTS) parts = MAX_PARTS;
  if (parts > r->length / 64) parts = r->length / 64;
  return parts > 1 ? parts : 1;
}

/* About how many elements a pass could move in its time. */
static double effort(const hn_reduction *r) {
  const double call = r->columns || r->length > 128 ? 32 : 4, outer = (double)r->outer,
               length = (double)r->length;
  if (!r->columns) return outer * (call + length + 2);
  /* Vectors are filled up; rows on pages of their own defeat the prefetcher. */
  const double far = r->nest.stride[0][r->nest.rank - 2] >= 1024 ? 1.5 : 1, kept = (double)r->kept;
  return outer * (call + far * length * (double)hn_div_up(r->kept, 16) * 16 + 2 * kept);
}

/* What remains of x once the dimensions of `run` are one, or `parts` of them: dense, in x's order. */
static void reduced(const hone_tensor_desc *x, uint32_t run, int64_t parts, hone_tensor_desc *y) {
  int32_t order[HONE_MAX_RANK];
  *y = *x;
  for (int32_t i = 0; i < x->rank; i++)
    if (run >> i & 1 && x->dim[i] > 1) y->dim[i] = parts, parts = 1;
  int64_t stride = 1;
  for (int32_t i = 0; i < x->rank; i++) y->stride[i] = 1;
  for (int32_t k = in_memory_order(x, order); k-- > 0;) {
    y->stride[order[k]] = stride;
    stride *= y->dim[order[k]];
  }
}

/* One pass over x that reduces `run`, into y of the given strides. */
static bool pass_of(const hone_tensor_desc *x, const int64_t *y_stride, uint32_t run, hn_reduction *r,
                    hone_reason *why) {
  int64_t stride[HONE_MAX_RANK];
  for (int32_t i = 0; i < x->rank; i++) stride[i] = run >> i & 1 ? 0 : y_stride[i];
  r->parts = 1, r->part_stride = 0;
  return hn_reduction_collapse(x, stride, run, r, why);
}

/* Chooses the passes: each reduces dimensions that are one in memory, the cheapest of them first. */
static bool passes_of(const hone_tensor_desc *input, const int64_t *y_stride, uint32_t axes,
                      hn_reduction_plan *plan, hone_reason *why) {
  hone_tensor_desc x = *input, rest;
  size_t end[2] = {0, 0};
  plan->n = 0;
  for (;; plan->n++) {
    uint32_t run[HONE_MAX_RANK], best = axes;
    const int32_t runs = runs_of(&x, axes, run);
    hn_reduction *r = &plan->pass[plan->n];
    double least = 0;
    for (int32_t i = 0; i < runs && runs > 1; i++) {
      reduced(&x, run[i], 1, &rest);
      if (!pass_of(&x, rest.stride, run[i], r, why)) continue;
      const double e = effort(r) + 2 * (double)hone_desc_count(&rest);
      if (best != axes && e >= least) continue;
      best = run[i], least = e;
    }
    reduced(&x, best, 1, &rest);
    const bool last = runs <= 1;
    if (!pass_of(&x, last ? y_stride : rest.stride, best, r, why)) return false;
    const int64_t parts = parts_of(r);
    if (last && parts == 1) {
      r->to = -1;
      plan->n++;
      break;
    }
    if (plan->n + 1 == HN_REDUCTION_PASSES) return hn_refuse(why, "too many separate dimensions");
    if (parts > 1) {
      reduced(&x, best, parts, &rest);
      if (!pass_of(&x, rest.stride, best, r, why)) return false;
      r->parts = parts;
      for (int32_t i = x.rank - 1; i >= 0; i--)
        if (best >> i & 1 && rest.dim[i] > 1) r->part_stride = rest.stride[i];
    } else {
      axes &= ~best;
    }
    /* Two buffers in turn. */
    r->to = plan->n & 1;
    const size_t bytes = (size_t)hone_desc_count(&rest) * sizeof(float);
    if (end[r->to] < bytes) end[r->to] = bytes;
    x = rest;
  }
  plan->second = (end[0] + 63) / 64 * 64;
  plan->workspace = plan->second + end[1];
  return true;
}

static bool describe(const hone_step *step, const hone_machine *machine, const hn_reduction_config *rule,
                     hn_reduction_plan *plan, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  uint32_t axes = 0;
  memset(plan, 0, sizeof *plan);
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
  int64_t y_stride[HONE_MAX_RANK];
  if (!strides_of_result(x, y, axes, y_stride, why) || !passes_of(x, y_stride, axes, plan, why)) return false;
  plan->count = 1;
  for (int32_t i = 0; i < x->rank; i++)
    if (axes >> i & 1) plan->count *= x->dim[i];
  for (int32_t i = 0; i < plan->n; i++) {
    hn_reduction *r = &plan->pass[i];
    r->isa = hn_isa_of(machine->isa);
    /* |x| and x^2 are taken once, by the first pass. */
    const bool sums = rule->kind == HN_REDUCE_ABS || rule->kind == HN_REDUCE_SQUARE;
    r->kind = i > 0 && sums ? HN_REDUCE_SUM : rule->kind;
    r->finish = i + 1 == plan->n ? rule->finish : HN_FINISH_NONE;
    if (r->columns) {
      /* Enough tasks for all threads, but no fewer than 64 floats each. */
      const int64_t wanted = (int64_t)machine->threads * 2 / (r->outer * r->parts) + 1;
      r->chunk = (r->kept / wanted + 63) / 64 * 64;
      if (r->chunk < 64) r->chunk = 64;
    }
  }
  return true;
}

bool hn_reduction_accepts(const hone_step *step, const hone_machine *machine,
                          const hn_reduction_config *config, hone_reason *why) {
  hn_reduction_plan plan;
  return describe(step, machine, config, &plan, why);
}

double hn_reduction_cost(const hone_step *step, const hone_machine *machine,
                         const hn_reduction_config *config) {
  (void)config;
  return hn_step_seconds(machine, 2 * (double)hone_desc_count(&step->input[0].desc),
                         (double)hone_desc_bytes(&step->input[0].desc), 0.3);
}

hone_status hn_reduction_need(const hone_step *step, const hone_machine *machine,
                              const hn_reduction_config *config, hone_tactic_need *need, hone_error *error) {
  hn_reduction_plan plan;
  hone_reason why = {""};
  if (!describe(step, machine, config, &plan, &why)) return hn_not_described(step, &why, error);
  need->blob_bytes = blob_bytes(&plan);
  need->workspace_bytes = plan.workspace;
  return HONE_OK;
}

hone_status hn_reduction_prepack(const hone_step *step, const hone_machine *machine,
                                 const hn_reduction_config *config, void *blob, hone_error *error) {
  hn_reduction_plan plan;
  hone_reason why = {""};
  if (!describe(step, machine, config, &plan, &why)) return hn_not_described(step, &why, error);
  memcpy(blob, &plan, blob_bytes(&plan));
  return HONE_OK;
}

typedef struct job {
  const hn_reduction *r;
  /* Found once: rows may be shorter than the search. */
  const struct hn_reduce_ops *ops;
  const struct hn_pw_ops *pw;
  const float *x;
  float *y;
  int64_t count, tasks, per_task;
} job;

static void finish(const job *j, float *y, int64_t n) {
  const struct hn_pw_ops *pw = j->pw;
  const float count = (float)(j->count + (HN_FAULT("reduction_mean_count") ? 1 : 0));
  switch (j->r->finish) {
  case HN_FINISH_MEAN: pw->fn[HONE_PW_DIV](y, y, &count, NULL, (size_t)n, 2, NULL); break;
  case HN_FINISH_SQRT: pw->act[HONE_PW_SQRT](y, (size_t)n, NULL); break;
  case HN_FINISH_LOG: pw->act[HONE_PW_LOG](y, (size_t)n, NULL); break;
  default: break;
  }
}

/* Where part `part` of the reduced dimension begins, and its length. */
static int64_t part_begin(const hn_reduction *r, int64_t part) { return r->length * part / r->parts; }

/* Rows whole or in parts, one after the other. */
static void single_rows(const job *j, int64_t index, int64_t n) {
  const hn_reduction *r = j->r;
  for (const int64_t end = index + n; index < end; index++) {
    const int64_t outer = index / r->parts, part = index % r->parts, from = part_begin(r, part);
    float *y = j->y + hn_nest_offset(&r->nest, 1, outer, 1) + part * r->part_stride;
    *y = j->ops->row[r->kind](j->x + hn_nest_offset(&r->nest, 0, outer, 1) + from,
                              (size_t)(part_begin(r, part + 1) - from));
    finish(j, y, 1);
  }
}

/* Rows evenly apart whose results are neighbours go together. */
static void rows(const job *j, int64_t index, int64_t n) {
  const hn_reduction *r = j->r;
  const hn_nest *nest = &r->nest;
  const int32_t d = nest->rank - 2;
  if (r->parts > 1 || d < 0 || nest->stride[1][d] != 1) {
    single_rows(j, index, n);
    return;
  }
  for (int64_t some; n > 0; index += some, n -= some) {
    const int64_t left = nest->dim[d] - index % nest->dim[d];
    some = left < n ? left : n;
    float *y = j->y + hn_nest_offset(nest, 1, index, 1);
    j->ops->rows[r->kind](y, j->x + hn_nest_offset(nest, 0, index, 1), (size_t)some, (size_t)r->length,
                          (ptrdiff_t)nest->stride[0][d]);
    finish(j, y, some);
  }
}

static void columns(const job *j, int64_t index) {
  const hn_reduction *r = j->r;
  const int64_t chunks = hn_div_up(r->kept, r->chunk), at = index % chunks * r->chunk;
  const int64_t part = index / chunks % r->parts, outer = index / chunks / r->parts;
  const int64_t n = r->kept - at < r->chunk ? r->kept - at : r->chunk, from = part_begin(r, part);
  const int64_t step = r->nest.stride[0][r->nest.rank - 2];
  float *y = j->y + hn_nest_offset(&r->nest, 1, outer, 2) + part * r->part_stride + at;
  j->ops->columns[r->kind](y, j->x + hn_nest_offset(&r->nest, 0, outer, 2) + from * step + at,
                           (size_t)(part_begin(r, part + 1) - from), (size_t)n, (ptrdiff_t)step);
  finish(j, y, n);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  int64_t i = index * j->per_task, end = i + j->per_task;
  (void)thread;
  end = end < j->tasks ? end : j->tasks;
  if (!j->r->columns) {
    rows(j, i, end - i);
    return;
  }
  for (; i < end; i++) columns(j, i);
}

hone_status hn_reduction_run(const hone_step_run *run, const hn_reduction_config *config, hone_error *error) {
  (void)config, (void)error;
  const hn_reduction_plan *plan = run->blob;
  const float *x = run->in[0];
  for (int32_t i = 0; i < plan->n; i++) {
    const hn_reduction *r = &plan->pass[i];
    float *y = r->to < 0 ? run->out[0] : (float *)((char *)run->workspace + (r->to ? plan->second : 0));
    job j = {r, hn_reduce_find(r->isa), hn_pw_find(r->isa), x, y, plan->count, r->outer * r->parts, 1};
    int64_t each = r->length / r->parts; /* elements of one */
    if (r->columns) {
      j.tasks *= hn_div_up(r->kept, r->chunk);
      each *= r->kept < r->chunk ? r->kept : r->chunk;
    }
    j.per_task = 16384 / (each + 16) + 1;
    const int64_t tasks = hn_div_up(j.tasks, j.per_task);
    if (tasks == 1)
      task(&j, 0, 0);
    else
      run->parallel(run->pool, tasks, task, &j);
    x = y;
  }
  return HONE_OK;
}
