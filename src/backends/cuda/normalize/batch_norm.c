/* BatchNormalization that no convolution took in (inference form), as an elementwise kernel: statistics
 * broadcast along dimension 1. */
#include <string.h>

#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "model/ops/normalize/training.h"

enum { INPUTS = 5 };

static bool describe(const hone_step *s, hone_tensor_desc vector[INPUTS], const hone_tensor_desc *in[INPUTS],
                     hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (!hn_cuda_known(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "a standalone batch normalisation has no epilogue");
  if (s->n_outputs > 1 || hn_batch_norm_trains(s->node)) return hn_refuse(why, "only the inference form");
  if (!hone_node_int(s->node, "spatial", 1)) return hn_refuse(why, "only one set of statistics a channel");
  if (x->rank < 2 || !hone_dtype_is_float(x->dtype))
    return hn_refuse(why, "no channels, or no floating type");
  in[0] = x;
  for (uint32_t i = 1; i < INPUTS; i++) {
    if (!hn_cuda_has(s, i) || hone_desc_count(&s->input[i].desc) != x->dim[1] || s->input[i].desc.rank != 1)
      return hn_refuse(why, "statistics are not one value a channel");
    int64_t dims[HONE_MAX_RANK];
    for (int32_t k = 1; k < x->rank; k++) dims[k - 1] = k == 1 ? x->dim[1] : 1;
    vector[i] = hone_desc(s->input[i].desc.dtype, x->rank - 1, dims);
    in[i] = &vector[i];
  }
  return true;
}

static bool plan_of(const hone_step *s, hn_cuda_elementwise *plan, void *const *at, hone_reason *why) {
  hone_tensor_desc vector[INPUTS];
  const hone_tensor_desc *in[INPUTS], *out = &s->output[0].desc;
  return describe(s, vector, in, why) && hn_cuda_elementwise_plan(plan, &out, 1, in, INPUTS, at, 0, why);
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)plan;
  hn_str_puts(text, "o0 = (i0 - i3) * (i1 / sqrt(i4 + ");
  hn_cuda_literal(text, hone_node_float(s->node, "epsilon", 1e-5f));
  hn_str_puts(text, ")) + i2;\n");
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return plan_of(s, &plan, NULL, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops / 4, hn_cuda_bytes(s), 0.8);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  void *at[1 + INPUTS] = {r->out[0]};
  for (int i = 0; i < INPUTS; i++) at[1 + i] = (void *)(uintptr_t)r->in[i];
  if (!plan_of(r->step, &plan, at, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "batch_norm: %s", why.text);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(r), r->step, &plan, body, at, error);
}

HN_TACTIC(cuda, batch_norm, "BatchNormalization", 1, .accepts = accepts, .cost = cost, .run = run);
