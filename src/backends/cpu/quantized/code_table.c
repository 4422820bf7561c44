/* CodeTable: what becomes of every code stands in a table. */
#include "backends/cpu/kernels/code_table/code_table.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { TASK = 32768 };

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  if (s->n_anchor_inputs < 2 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  const hone_tensor_desc *x = &s->input[0].desc, *t = &s->input[1].desc, *y = &s->output[0].desc;
  if (!hn_qlinear_codes(x, why) || !hn_qlinear_codes(y, why)) return false;
  if (!hone_desc_same_dims(x, y) || x->layout != y->layout)
    return hn_refuse(why, "the tensors are not of one shape and layout");
  if (t->dtype != y->dtype || hone_desc_count(t) != 256) return hn_refuse(why, "the table has not 256 codes");
  return true;
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, n, 2 * n, 0.5);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const unsigned char *x = r->in[0], *table = r->in[1];
  unsigned char *y = r->out[0];
  const int64_t n = hone_desc_count(&r->step->output[0].desc), end = (i + 1) * TASK < n ? (i + 1) * TASK : n;
  (void)thread;
  hn_code_table_find(hn_cpu()->isa)->look_up(y + i * TASK, x + i * TASK, (size_t)(end - i * TASK), table);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const int64_t tasks = hn_div_up(hone_desc_count(&r->step->output[0].desc), TASK);
  (void)error;
  if (tasks == 1)
    task((void *)(uintptr_t)r, 0, 0);
  else
    r->parallel(r->pool, tasks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, code_table, "CodeTable", 1, .accepts = accepts, .cost = cost, .run = run);
