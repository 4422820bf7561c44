#include "backends/cpu/product/matmul_step.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

void hn_matmul_step_plan(hn_matmul_step *d, const hone_machine *m, bool bias) {
  hn_matmul_plan(&d->p, m->threads, m->l1, m->l2);
  size_t at = hn_round_up(sizeof *d, 64);
  d->bias_at = bias ? (int64_t)at : 0;
  if (bias) at = hn_round_up(at + (size_t)d->p.n * 4, 64);
  d->weights_at = (int64_t)at;
  d->bytes = (int64_t)(at + hn_matmul_packed(&d->p) * 4);
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_matmul_step_config *config,
                     hn_matmul_step *d, hone_reason *why) {
  return config->describe(s, m, d, why);
}

double hn_matmul_step_seconds(const hn_matmul_step *d, const hone_step *s, const hone_machine *m,
                              double flops) {
  double columns = (double)hn_gemm_packed_size(hn_gemm_find(d->p.isa), (size_t)d->p.n, 1);
  double waste = columns > 0 ? (double)d->p.n / columns : 1;
  const double products = hn_step_seconds(m, flops, s->cost.bytes, 0.85 * waste * (d->p.packed ? 1 : 0.9));
  /* Few rows wait for their weights, of which each thread reads its part. */
  const hn_gemm_ops *o = hn_gemm_find(d->p.isa);
  const double bytes = d->p.packed ? (double)d->p.n * (double)d->p.k * 4 : 0;
  const double weights =
      hn_weights_cycles(bytes / (m->threads ? m->threads : 1), bytes, o, m) / hn_core_hertz(o, m);
  /* What every matrix of a batch takes beside its products. */
  double matrices = 0.15e-6 / (m->threads ? m->threads : 1);
  for (int32_t i = 0; i < d->p.n_batch_dims; i++) matrices *= (double)d->p.batch[i];
  if (!d->p.n_batch_dims) matrices = 0;
  return (products > weights ? products : weights) + matrices + hn_epilogue_seconds(s, m, true);
}

static double cost_of(const hn_matmul_step *d, const hone_step *s, const hone_machine *m) {
  return hn_matmul_step_seconds(d, s, m, s->cost.flops);
}

static void need_of(const hn_matmul_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)d->bytes;
  n->packed = n->bytewise = d->p.packed ? 1u << 1 : 0;
  n->workspace_bytes = hn_matmul_workspace(&d->p, m->threads) * 4;
}

size_t hn_matmul_step_shared(const hone_step *s, const hone_machine *m, const hn_matmul_step_config *config,
                             uint64_t *key) {
  (void)key;
  hn_matmul_step d;
  return config->describe(s, m, &d, NULL) && d.p.packed ? (size_t)d.weights_at : 0;
}

void hn_matmul_step_fill(const hn_matmul_step *d, const hone_step *s, void *blob) {
  unsigned char *base = blob;
  if (d->p.packed && !s->own_only)
    hn_matmul_pack(&d->p, s->input[1].constant, (float *)(void *)(base + d->weights_at));
  if (d->bias_at) {
    float *bias = (float *)(void *)(base + d->bias_at);
    const float *c = s->input[2].constant;
    bool one = hone_desc_count(&s->input[2].desc) == 1;
    for (int64_t i = 0; i < d->p.n; i++) bias[i] = c[one ? 0 : i] * d->bias_scale;
  }
}

static hone_status fill(hn_matmul_step *d, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, d, sizeof *d);
  hn_matmul_step_fill(d, s, blob);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_matmul_step, hn_matmul_step, fill)

void hn_matmul_step_bind(const hn_matmul_step *d, const hone_step_run *r, hn_epilogue *e) {
  const unsigned char *base = r->blob;
  const float *bias = d->bias_at      ? (const float *)(const void *)(base + d->bias_at)
                      : d->bias_input ? r->in[d->bias_input]
                                      : NULL;
  hn_epilogue_bind(r->step, d->p.isa, true, bias, r->in, e);
  if (d->residual_input) { /* accepted only with an epilogue that leaves the place free */
    e->flags |= HN_EPI_RESIDUAL;
    e->residual = r->in[d->residual_input];
    e->residual_view = (hn_view){0, 0, 0, d->p.n};
  }
}

hone_status hn_matmul_step_run(const hone_step_run *r, const hn_matmul_step_config *config,
                               hone_error *error) {
  (void)config, (void)error;
  const hn_matmul_step *d = r->blob;
  hn_epilogue e;
  hn_matmul_step_bind(d, r, &e);
  const float *b = d->p.packed ? hn_shared_at(r, d->weights_at) : r->in[1];
  hn_matmul_exec(&d->p, r->in[0], b, r->out[0], &e, r->workspace, r->parallel, r->pool);
  return HONE_OK;
}
