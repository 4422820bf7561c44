/* Pointwise programs: one generated kernel each. */
#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/step/program.h"
#include "backends/tactic.h"
#include "base/error.h"

static bool describe(const hone_step *s, hn_cuda_elementwise *plan, hone_reason *why) {
  if (!hn_cuda_program_accepts(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "a pointwise step has no epilogue");
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (s->output[i].desc.dtype == HONE_DTYPE_F64) return hn_refuse(why, "programs compute in f32");
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (s->input[i].desc.dtype == HONE_DTYPE_F64) return hn_refuse(why, "programs compute in f32");
  return hn_cuda_elementwise_step(plan, s, s->n_inputs, NULL, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)plan;
  hn_cuda_program(s, text);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  return hn_cuda_elementwise_run(r, r->step->n_inputs, body, error);
}

HN_TACTIC(cuda, pointwise, "Pointwise", 1, .accepts = accepts, .cost = cost, .run = run);
