#include "backends/cpu/product/strassen_step.h"

#include <string.h>

#include "backends/cpu/product/strassen_driver.h"
#include "base/error.h"
#include "base/integers.h"

typedef struct blob_head {
  hn_matmul_step m; /* what the step says; its products and places are not used */
  hn_strassen p;
  int64_t bias_at, weights_at;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, const hn_strassen_step_config *config,
                     blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the step wants direct sums");
  if (!config->describe(s, m, &h->m, why)) return false;
  const hn_matmul *d = &h->m.p;
  if (!d->packed || !s->input[1].constant) return hn_refuse(why, "the weights are no constant");
  if (d->a_col != 1) return hn_refuse(why, "A lies transposed");
  h->p = (hn_strassen){.isa = d->isa, .m = d->m, .n = d->n, .k = d->k, .a_row = d->a_row};
  if (!hn_strassen_plan(&h->p, m->threads, m->l1, m->l2))
    return hn_refuse(why, "%lld x %lld weights have no even quarters", (long long)d->k, (long long)d->n);
  int64_t at = hn_fill_up(sizeof *h, 64);
  h->bias_at = h->m.bias_at ? at : 0;
  if (h->bias_at) at = hn_fill_up(at + d->n * (int64_t)sizeof(float), 64);
  h->weights_at = at;
  return true;
}

/* Multiply-adds of the seven products. */
static double macs_of(const hn_strassen *p) {
  return 7.0 * (double)hn_div_up(p->m, 2) * (double)p->half_k * (double)p->half_n;
}

/* Numbers that are added: the sums of A's quarters, the joined results, and the parts of C that products are
 * added to. */
static double added(const hn_strassen *p) {
  return (double)p->upper * (4.0 * (double)p->half_k + (4.0 + 3.0 * (double)p->k_blocks) * (double)p->half_n);
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const hn_strassen *p = &h->p;
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  const int64_t threads = m->threads ? m->threads : 1;
  const double rounds = (double)hn_div_up(p->groups, threads) / (double)p->groups;
  /* A tile begins and ends, and takes its part in joining the products: 28 cycles a row, fitted to weights of
   * 64 x 64 to 3072 x 768. */
  const double tiles = 7.0 * (double)(p->blocks * p->tiles * p->panels * p->k_blocks);
  const double products = (macs_of(p) / (2.0 * o->vw) / 0.9 + tiles * 28 * (double)p->tile_rows) * rounds;
  /* Sums of A are written to L2, a vector in four cycles. */
  const double sums = 4.0 * HN_STRASSEN_SUMS * (double)p->m / 2 * (double)p->half_k / o->vw / (double)threads;
  const double bytes = (double)hn_strassen_packed(p) * sizeof(float);
  const double weights = hn_weights_cycles(bytes / (double)threads, bytes, o, m) +
                         (double)(p->blocks - 1) * bytes / HN_STREAM_BYTES_PER_CYCLE / (double)threads;
  /* 3 % for weights that are 1.75 times as many: a gain that is none is not worth them. */
  const double work = 1.03 * (products + sums);
  return (work > weights ? work : weights) / hn_core_hertz(o, m) + 2e-6 + hn_epilogue_seconds(s, m, true);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->packed = 1u << 1;
  n->blob_bytes = (size_t)h->weights_at + hn_strassen_packed(&h->p) * sizeof(float);
  n->workspace_bytes = hn_strassen_workspace(&h->p, m->threads) * sizeof(float);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  unsigned char *base = blob;
  const hn_matmul *d = &h->m.p;
  if (!hn_strassen_pack(&h->p, s->input[1].constant, d->b_row, d->b_col, d->alpha,
                        (float *)(void *)(base + h->weights_at)))
    return hn_fail_memory(error, (size_t)(d->k * d->n) * sizeof(float), "packing weights");
  memcpy(base, h, sizeof *h);
  float *bias = (float *)(void *)(base + h->bias_at);
  const float *c = h->bias_at ? s->input[2].constant : NULL;
  const bool one = c && hone_desc_count(&s->input[2].desc) == 1;
  for (int64_t i = 0; c && i < d->n; i++) bias[i] = c[one ? 0 : i] * h->m.bias_scale;
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_strassen_step, blob_head)

void hn_strassen_step_work(const hone_step *s, const hone_machine *m, const hn_strassen_step_config *config,
                           hone_work *work) {
  blob_head h;
  if (describe(s, m, config, &h, NULL)) work->flops += 2 * macs_of(&h.p) + added(&h.p) - 2 * s->cost.macs;
}

hone_status hn_strassen_step_run(const hone_step_run *r, const hn_strassen_step_config *config,
                                 hone_error *error) {
  (void)config, (void)error;
  const blob_head *h = r->blob;
  const unsigned char *base = r->blob;
  const float *bias = h->bias_at        ? (const float *)(const void *)(base + h->bias_at)
                      : h->m.bias_input ? r->in[h->m.bias_input]
                                        : NULL;
  hn_epilogue e;
  hn_epilogue_bind(r->step, h->p.isa, true, bias, r->in, &e);
  if (h->m.residual_input) { /* accepted only with an epilogue that leaves the place free */
    e.flags |= HN_EPI_RESIDUAL;
    e.residual = r->in[h->m.residual_input];
    e.residual_view = (hn_view){0, 0, 0, h->p.n};
  }
  hn_strassen_exec(&h->p, r->in[0], (const float *)(const void *)(base + h->weights_at), r->out[0], &e,
                   r->workspace, r->parallel, r->pool);
  return HONE_OK;
}
