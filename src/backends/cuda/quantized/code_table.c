/* CodeTable: what becomes of every code stands in a table. */
#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

/* The table is an operand of which the kernel reads what it likes. */
static bool describe(const hone_step *s, hn_cuda_elementwise *plan, void *const *at, hone_reason *why) {
  const hone_tensor_desc *out = &s->output[0].desc;
  if (s->n_anchor_inputs < 2 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  if (!hn_cuda_known(s, why)) return false;
  const hone_tensor_desc one = hone_desc(s->input[1].desc.dtype, 0, NULL), *const in[] = {&s->input[0].desc,
                                                                                          &one};
  if (!hn_codes_type(in[0]->dtype) || !hn_codes_type(out->dtype) || one.dtype != out->dtype)
    return hn_refuse(why, "a tensor has no codes of 8 bits");
  if (hone_desc_count(&s->input[1].desc) != 256) return hn_refuse(why, "the table has not 256 codes");
  return hn_cuda_elementwise_plan(plan, &out, 1, in, 2, at, 0, why);
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)plan;
  hn_str_printf(text, "    o0 = ((const %s *)a->at[2])[(u8)i0];\n", hn_cuda_value(s->output[0].desc.dtype));
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, NULL, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  void *const at[] = {r->out[0], (void *)(uintptr_t)r->in[0], (void *)(uintptr_t)r->in[1]};
  if (!describe(r->step, &plan, at, &why)) return hn_not_described(r->step, &why, error);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(r), r->step, &plan, body, at, error);
}

HN_TACTIC(cuda, code_table, "CodeTable", 1, .accepts = accepts, .cost = cost, .run = run);
