#include "backends/cuda/quantized/codes_mma.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"

typedef struct problem {
  hn_codes c;
  hn_product p;
} problem;

static bool describe(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, problem *q,
                     hone_reason *why) {
  if (!hn_cuda_tensor_cores(m, HONE_DTYPE_I8, why)) return false;
  return hn_codes_product(s, &q->c, &q->p, why) && hn_mma_fits(s, &q->p, m, t, why);
}

static hone_status describe_again(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, problem *q,
                                  hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, t, q, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

static hn_codes_blob blob_of(const problem *q) {
  hn_product packed = q->p;
  return hn_codes_blob_of(&q->c, hn_product_pack_layout(&packed, false));
}

bool hn_codes_mma_accepts(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

double hn_codes_mma_cost(const hone_step *s, const hone_machine *m, const hn_mma_tile *t) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return HN_REFUSED_SECONDS;
  const double sum = q.c.added != HONE_DTYPE_NONE ? 0.5e-6 : 0, table = q.c.table ? 0.25e-6 : 0;
  return hn_mma_seconds(&q.p, m, t, false) + sum + table;
}

hone_status hn_codes_mma_need(const hone_step *s, const hone_machine *m, const hn_mma_tile *t,
                              hone_tactic_need *need, hone_error *error) {
  problem q;
  hone_status st = describe_again(s, m, t, &q, error);
  if (st) return st;
  need->blob_bytes = blob_of(&q).bytes;
  need->packed = 1u << HN_QLINEAR_W;
  need->workspace_bytes = hn_product_workspace(&q.p, m, t->bm, t->bn);
  return HONE_OK;
}

hone_status hn_codes_mma_prepack(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, void *blob,
                                 hone_error *error) {
  problem q;
  hone_status st = describe_again(s, m, t, &q, error);
  if (st) return st;
  int8_t *weights = hn_codes_weights(s, &q.c);
  if (!weights)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const hn_codes_blob b = blob_of(&q);
  hn_product_pack(&q.c.inner, &q.p, false, HN_PRODUCT_I8, blob);
  hn_codes_vectors(s, &q.c, weights, &b, blob);
  hn_free(weights);
  return HONE_OK;
}

void hn_codes_mma_work(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, hone_work *work) {
  (void)s, (void)m, (void)t;
  work->arithmetic = HONE_ARITHMETIC_INT8;
}

hone_status hn_codes_mma_run(const hone_step_run *run, const hn_mma_tile *t, hone_error *error) {
  problem q;
  char more[128];
  hone_status st = describe_again(run->step, hn_cuda_machine(hn_cuda_queue_of(run)), t, &q, error);
  if (st) return st;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(run, &b, &q.c);
  return hn_mma_launch(run, &q.p, t, false, hn_codes_prefix(&q.c, !q.p.one_tap, more, sizeof more), error);
}
