#include "backends/cuda/wgmma/wgmma_parts.h"

#include <string.h>

#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, hn_wgmma_problem *q,
                     hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_product_of(s, &q->p, why)) return false;
  if (q->p.a_type != HONE_DTYPE_F32 || q->p.out_type != HONE_DTYPE_F32)
    return hn_refuse(why, "input and output are %s and %s, not f32", hone_dtype_name(q->p.a_type),
                     hone_dtype_name(q->p.out_type));
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the plan allows f32 products alone");
  q->parts = s->math < HONE_MATH_TF32 ? 2 : 1;
  if (!hn_wgmma_fits(q, why)) return false;
  q->unread = hn_wgmma_unread(s, q), q->added = hn_cuda_epilogue_staged(s) >= 0;
  q->vectors = hn_cuda_epilogue_vectors(s, q->p.bias), q->functions = hn_cuda_epilogue_instructions(s);
  return hn_wgmma_tiles(q, m, t, why);
}

bool hn_wgmma_parts_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                            hone_reason *why) {
  hn_wgmma_problem q;
  return describe(s, m, t, &q, why);
}

double hn_wgmma_parts_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t) {
  hn_wgmma_problem q;
  return describe(s, m, t, &q, NULL) ? hn_wgmma_seconds(&q, m, t, q.splits) : HN_REFUSED_SECONDS;
}

hone_status hn_wgmma_parts_need(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                                hone_tactic_need *need, hone_error *error) {
  hn_wgmma_problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = hn_wgmma_weights(&q);
  need->packed = need->bytewise = 1u << 1;
  return HONE_OK;
}

hone_status hn_wgmma_parts_prepack(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                                   void *blob, hone_error *error) {
  hn_wgmma_problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  hn_wgmma_pack_parts(s, &q, q.n16 / 8, blob);
  return HONE_OK;
}

size_t hn_wgmma_parts_shared(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                             uint64_t *key) {
  hn_wgmma_problem q;
  return describe(s, m, t, &q, NULL) ? hn_wgmma_shared_weights(&q, key) : 0;
}

void hn_wgmma_parts_work(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, hone_work *work) {
  (void)m, (void)t;
  hn_cuda_tf32_work(s, work);
}

hone_status hn_wgmma_parts_run(const hone_step_run *run, const hn_wgmma_tile *t, hone_error *error) {
  const hone_step *s = run->step;
  hn_wgmma_problem q;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(run)), t, &q, &why))
    return hn_not_described(s, &why, error);
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  hn_cuda_epilogue_bind(run, q.p.bias, &args.epilogue);
  hn_str text = {0};
  hn_wgmma_prefix(&q, t, &text);
  const int added = args.epilogue.aligned ? hn_cuda_epilogue_staged(s) : -1;
  if (added >= 0) hn_str_printf(&text, "#define HN_ADDED %d\n", added);
  hone_status st = hn_cuda_epilogue_fragments(s, q.p.bias, added, &text, error);
  if (!st) st = hn_wgmma_launch(run, &q, t, NULL, &args, &text, error);
  hn_str_free(&text);
  return st;
}
