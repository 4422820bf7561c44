/* Einsum by its loops. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"
#include "model/ops/product/equation.h"

enum { MOST_OPERANDS = 3, FIRST = 4 };

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *in[MOST_OPERANDS];
  hn_einsum e;
  hn_einsum_nest t;
  hone_error error = {0};
  const uint32_t n = s->n_anchor_inputs;
  if (n > MOST_OPERANDS) return hn_refuse(why, "%u operands", n);
  for (uint32_t i = 0; i < n; i++) in[i] = &s->input[i].desc;
  if (hn_einsum_parse(s->node, in, n, &e, &error) || hn_einsum_loops(s->node, in, &e, &t, &error))
    return hn_refuse(why, "%.140s", error.what);
  if (FIRST + (1 + (int)n) * t.rank > HN_DIRECT_NUMBERS) return hn_refuse(why, "%d letters", t.rank);
  p->args.p[0] = t.rank, p->args.p[1] = t.summed, p->args.p[2] = n;
  const int32_t loops = t.rank ? t.rank : 1;
  for (int32_t d = 0; d < t.rank; d++) {
    p->args.p[FIRST + d] = t.dim[d];
    for (uint32_t k = 0; k < n; k++) p->args.p[FIRST + (int32_t)(k + 1) * loops + d] = t.step[k][d];
  }
  p->text = "einsum";
  hn_cuda_direct_define(p, "HN_FLOATING", hone_dtype_is_float(s->output[0].desc.dtype));
  hn_cuda_direct_define(p, "HN_LOOPS", loops);
  hn_cuda_direct_define(p, "HN_OPERANDS", n);
  hn_cuda_direct_add(p, "hn_einsum", hone_desc_count(&s->output[0].desc), 0);
  return true;
}

hn_cuda_direct_tactic(einsum, "Einsum", plan);
