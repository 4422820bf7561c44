#include "backends/cuda/irregular/recurrent.h"

#include "base/error.h"
#include "base/integers.h"
#include "model/ops/recurrent/recurrent.h"

enum {
  INPUTS = 8,
  UNITS = 8,        /* of a block, where blocks share a step; each has a warp */
  WHOLE_WARPS = 32, /* of a block that has all steps of a sample */
  WHOLE_BYTES =
      1 << 18, /* of recurrent weights that one multiprocessor reads each step as fast as a launch lasts */
  TILE = 64,
  SPARE = 3 /* samples that a warp reads behind the last one */
};

bool hn_cuda_recurrent(const hone_step *s, int gates, hn_cuda_direct *p, hone_reason *why) {
  const hn_rnn_kind *kind = gates == 1 ? &hn_rnn_kind_rnn : gates == 3 ? &hn_rnn_kind_gru : &hn_rnn_kind_lstm;
  const hone_tensor_desc *desc[INPUTS] = {NULL};
  hn_rnn r;
  hone_error error = {0};
  for (uint32_t i = 0; i < s->n_anchor_inputs && i < INPUTS; i++)
    if (hn_cuda_has(s, i)) desc[i] = &s->input[i].desc;
  if (!hone_dtype_is_float(s->input[0].desc.dtype)) return hn_refuse(why, "no floating-point numbers");
  if (hn_rnn_init(&r, s->node, kind, desc, s->n_anchor_inputs, &error) != HONE_OK)
    return hn_refuse(why, "%.140s", error.what);
  const bool later = gates == 3 && hone_node_int(s->node, "linear_before_reset", 0) != 0;
  const bool wide = s->input[0].desc.dtype == HONE_DTYPE_F64;
  const int64_t rows = r.seq * r.batch, columns = r.directions * gates * r.hidden;
  const int64_t states = r.directions * r.batch * r.hidden;
  const bool whole = gates * r.hidden * r.hidden * 4 <= WHOLE_BYTES;
  p->text = "recurrent";
  p->zeroed = hn_cuda_has(s, 4); /* what lies behind the end of a sequence */
  hn_cuda_direct_define(p, "HN_GATES", gates);
  hn_cuda_direct_define(p, "HN_LATER", later);
  hn_cuda_direct_define(p, "HN_COUPLED", hone_node_int(s->node, "input_forget", 0) != 0);
  hn_cuda_direct_define(p, "HN_WHOLE", whole);
  hn_cuda_direct_define(p, "HN_BACKWARDS", r.reverse_only);
  hn_cuda_direct_define(p, "HN_BATCH_FIRST", r.batch_first);
  p->args.p[0] = r.seq, p->args.p[1] = r.batch, p->args.p[2] = r.input, p->args.p[3] = r.hidden;
  p->args.p[4] = r.directions;
  for (int64_t d = 0; d < r.directions; d++)
    for (int k = 0; k < kind->activations; k++) {
      const hn_activation *f = &r.act[d * kind->activations + k];
      p->args.p[8 + 3 * d + k] = f->kind, p->args.f[3 * d + k] = f->alpha, p->args.f[6 + 3 * d + k] = f->beta;
    }
  p->args.f[12] = r.clip;
  p->workspace =
      (size_t)(rows * columns + 5 * states + SPARE * r.hidden) * (wide ? sizeof(double) : sizeof(float));
  hn_cuda_direct_add(p, "hn_rnn_inputs", hn_div_up(rows, TILE) * hn_div_up(columns, TILE), 256);
  hn_cuda_direct_add(p, "hn_rnn_begin", states, 0);
  if (whole)
    hn_cuda_direct_add(p, "hn_rnn_steps", r.seq ? r.directions * r.batch : 0, WHOLE_WARPS * 32);
  else
    hn_cuda_direct_add(p, "hn_rnn_steps", r.batch && r.seq ? r.directions * hn_div_up(r.hidden, UNITS) : 0,
                       UNITS * 32);
  if (!whole) p->launch[p->launches - 1].times = (uint32_t)(r.seq * (gates == 3 && !later ? 2 : 1));
  hn_cuda_direct_add(p, "hn_rnn_end", states, 0);
  /* The steps wait for one another. */
  if (whole) p->seconds = (double)r.seq * (1.5e-6 + (double)(gates * r.hidden * r.hidden) * 4 / 1e11);
  return true;
}
