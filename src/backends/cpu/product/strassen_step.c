#include "backends/cpu/product/strassen_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "base/error.h"

/* The usual product's blob, behind whose head the plan is. */
typedef struct head {
  hn_matmul_step usual;
  hn_strassen plan;
} head;

static bool describe(const hone_step *s, const hone_machine *m, const hn_strassen_config *config, head *h,
                     hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (s->math < HONE_MATH_FAST) return hn_refuse(why, "Strassen's method takes level 3");
  if (!config->describe(s, m, &h->usual, why)) return false;
  const hn_matmul *p = &h->usual.p;
  if (!hn_strassen_find(p->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(p->isa));
  if (!p->packed) return hn_refuse(why, "B is no constant");
  if (p->a_col != 1) return hn_refuse(why, "A is transposed");
  const hone_tensor_desc *a = &s->input[0].desc;
  /* Rows of one matrix alone meet. */
  const int64_t apart = a->rank > 2 ? a->dim[a->rank - 2] : p->m;
  h->plan = (hn_strassen){
      .isa = p->isa, .m = p->m, .n = p->n, .k = p->k, .x_row = p->a_row, .y_row = p->n, .apart = apart};
  if (apart < 1 || p->m % apart || !hn_strassen_plan(&h->plan, m->threads, m->l1, m->l2))
    return hn_refuse(why, "too small for halves, or an odd inner dimension");
  const size_t more = sizeof *h - sizeof h->usual, moved = (more + 63) / 64 * 64;
  if (h->usual.bias_at) h->usual.bias_at += (int64_t)moved;
  h->usual.weights_at += (int64_t)moved;
  h->usual.bytes += (int64_t)(moved + hn_strassen_marks(&h->plan) * sizeof(float));
  return true;
}

static double cost_of(const head *h, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(h->plan.isa);
  return hn_matmul_step_seconds(&h->usual, s, m, s->cost.flops * hn_strassen_products(&h->plan)) +
         hn_strassen_cycles(&h->plan, m->threads) / hn_core_hertz(o, m);
}

static void need_of(const head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->usual.bytes;
  n->packed = n->bytewise = 1u << 1;
  n->workspace_bytes = hn_strassen_workspace(&h->plan, m->threads) * 4;
}

static hone_status fill(head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  hn_matmul_step_fill(&h->usual, s, blob);
  if (s->own_only) return HONE_OK;
  float *b = (float *)(void *)((unsigned char *)blob + h->usual.weights_at);
  hn_strassen_mark(&h->plan, b, b + hn_matmul_packed(&h->usual.p));
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_strassen, head, fill)

size_t hn_strassen_shared(const hone_step *s, const hone_machine *m, const hn_strassen_config *config,
                          uint64_t *key) {
  (void)key;
  head h;
  return describe(s, m, config, &h, NULL) ? (size_t)h.usual.weights_at : 0;
}

void hn_strassen_work(const hone_step *s, const hone_machine *m, const hn_strassen_config *config,
                      hone_work *work) {
  head h;
  if (describe(s, m, config, &h, NULL)) work->flops -= 2 * s->cost.macs * (1 - hn_strassen_products(&h.plan));
}

hone_status hn_strassen_run(const hone_step_run *r, const hn_strassen_config *config, hone_error *error) {
  (void)config, (void)error;
  const head *h = r->blob;
  hn_epilogue e;
  hn_matmul_step_bind(&h->usual, r, &e);
  hn_strassen_exec(&h->plan, r->in[0], hn_shared_at(r, h->usual.weights_at), r->out[0], &e, r->workspace,
                   r->parallel, r->pool);
  return HONE_OK;
}
