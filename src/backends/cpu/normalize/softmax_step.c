#include "backends/cpu/normalize/softmax_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/softmax/softmax.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

static bool describe(const hone_step *step, const hone_machine *machine, hn_reduction *r, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  memset(r, 0, sizeof *r);
  if (!hn_step_is_f32(step, why)) return false;
  if (step->n_epilogue) return hn_refuse(why, "softmax has no epilogue");
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "input and output differ in dimensions");
  if (x->rank < 1 || hone_desc_count(x) == 0) return hn_refuse(why, "a scalar or empty input");
  /* Before opset 13 the tensor counts as a matrix: all dimensions from the axis on are one row. */
  const bool matrix = step->node && hone_node_opset(step->node) < 13;
  int64_t axis = step->node ? hone_node_int(step->node, "axis", matrix ? 1 : -1) : -1;
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank + (matrix ? 1 : 0)) return hn_refuse(why, "axis outside the rank");
  uint32_t axes = 1u << axis;
  if (matrix) axes = ((1u << x->rank) - 1u) & ~((1u << axis) - 1u);
  r->isa = hn_isa_of(machine->isa);
  if (!hn_reduction_collapse(x, y->stride, axes, r, why)) return false;
  const int32_t last = r->nest.rank - 1, reduced = r->columns ? last - 1 : last;
  if (r->nest.stride[0][reduced] != r->nest.stride[1][reduced])
    return hn_refuse(why, "input and output differ in layout");
  r->chunk = 64;
  return true;
}

bool hn_softmax_accepts(const hone_step *step, const hone_machine *machine, const hn_softmax_config *config,
                        hone_reason *why) {
  hn_reduction r;
  (void)config;
  return describe(step, machine, &r, why);
}

double hn_softmax_cost(const hone_step *step, const hone_machine *machine, const hn_softmax_config *config) {
  (void)config;
  const double n = (double)hone_desc_count(&step->input[0].desc);
  return hn_step_seconds(machine, 60 * n, 8 * n, 0.5);
}

hone_status hn_softmax_need(const hone_step *step, const hone_machine *machine,
                            const hn_softmax_config *config, hone_tactic_need *need, hone_error *error) {
  (void)step, (void)machine, (void)config, (void)error;
  need->blob_bytes = sizeof(hn_reduction);
  need->workspace_bytes = 0;
  return HONE_OK;
}

hone_status hn_softmax_prepack(const hone_step *step, const hone_machine *machine,
                               const hn_softmax_config *config, void *blob, hone_error *error) {
  hone_reason why = {""};
  (void)config;
  if (describe(step, machine, blob, &why)) return HONE_OK;
  return hn_not_described(step, &why, error);
}

typedef struct job {
  const hn_reduction *r;
  const float *x;
  float *y;
  bool log;
  int64_t per_task, tasks;
} job;

/* Rows shorter than a vector: a block of them is turned, so that the lanes hold different rows. */
enum { NARROW = 16, NARROW_ROWS = 64 };

static bool is_narrow(const hn_reduction *r) {
  return !r->columns && r->length <= NARROW && r->nest.rank <= 2 && r->outer > 1 &&
         r->nest.stride[0][0] == r->length && r->nest.stride[1][0] == r->length;
}

static void narrow_rows(const job *j, int64_t row, int64_t rows) {
  const hn_reduction *r = j->r;
  const hn_transpose_fn turn = hn_transpose_find(r->isa)->matrix[2];
  float block[NARROW * NARROW_ROWS];
  const ptrdiff_t n = (ptrdiff_t)r->length;
  turn(block, NARROW_ROWS, j->x + row * n, n, (size_t)rows, (size_t)n);
  hn_softmax_find(r->isa)->columns(block, block, (size_t)n, (size_t)rows, NARROW_ROWS, j->log);
  turn(j->y + row * n, n, block, NARROW_ROWS, (size_t)n, (size_t)rows);
}

/* n rows from `row` on; those that are evenly apart go together. */
static void rows(const job *j, int64_t row, int64_t n) {
  const hn_nest *nest = &j->r->nest;
  const int32_t d = nest->rank - 2;
  const struct hn_softmax_ops *ops = hn_softmax_find(j->r->isa);
  for (int64_t some; n > 0; row += some, n -= some) {
    const int64_t left = d < 0 ? 1 : nest->dim[d] - row % nest->dim[d];
    some = left < n ? left : n;
    ops->rows(j->y + hn_nest_offset(nest, 1, row, 1), d < 0 ? 0 : (ptrdiff_t)nest->stride[1][d],
              j->x + hn_nest_offset(nest, 0, row, 1), d < 0 ? 0 : (ptrdiff_t)nest->stride[0][d], (size_t)some,
              (size_t)j->r->length, j->log);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_reduction *r = j->r;
  const struct hn_softmax_ops *ops = hn_softmax_find(r->isa);
  const int64_t chunks = r->columns ? hn_div_up(r->kept, r->chunk) : 1;
  int64_t i = index * j->per_task, end = i + j->per_task;
  (void)thread;
  if (is_narrow(r)) {
    for (end = end < j->tasks ? end : j->tasks; i < end; i += NARROW_ROWS)
      narrow_rows(j, i, end - i < NARROW_ROWS ? end - i : NARROW_ROWS);
    return;
  }
  end = end < j->tasks ? end : j->tasks;
  if (HN_FAULT("softmax_last_row") && end == j->tasks) end--;
  if (!r->columns) {
    rows(j, i, end - i);
    return;
  }
  for (; i < end; i++) {
    const int64_t row = i / chunks, at = i % chunks * r->chunk;
    const float *x = j->x + hn_nest_offset(&r->nest, 0, row, 2) + at;
    float *y = j->y + hn_nest_offset(&r->nest, 1, row, 2) + at;
    ops->columns(y, x, (size_t)r->length, (size_t)(r->kept - at < r->chunk ? r->kept - at : r->chunk),
                 (ptrdiff_t)r->nest.stride[0][r->nest.rank - 2], j->log);
  }
}

hone_status hn_softmax_run(const hone_step_run *run, const hn_softmax_config *config, hone_error *error) {
  const hn_reduction *r = run->blob;
  job j = {r,           run->in[0], run->out[0],
           config->log, 1,          r->outer * (r->columns ? hn_div_up(r->kept, r->chunk) : 1)};
  (void)error;
  j.per_task = 8192 / (r->length * (r->columns ? r->chunk : 1) + 16) + 1;
  if (is_narrow(r)) j.per_task = 16 * NARROW_ROWS;
  const int64_t tasks = hn_div_up(j.tasks, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    run->parallel(run->pool, tasks, task, &j);
  return HONE_OK;
}
