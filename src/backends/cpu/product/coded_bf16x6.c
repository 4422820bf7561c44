/* Products of many rows by coded weights, f32 as three bf16 parts (bf16_driver.h): codes are widened a panel
 * at a time, on their way to parts. */
#include <string.h>

#include "backends/cpu/kernels/features.h"

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/product/coded_step.h"
#include "base/integers.h"
#include "base/mem.h"

typedef struct blob_head {
  hn_coded_step d; /* first: the blob's form */
  hn_bf16_conv conv;
} blob_head;

_Static_assert(sizeof(blob_head) <= HN_CODED_HEAD, "panels begin behind the head");

static bool describe(const hone_step *s, const hone_machine *m, const hn_coded_bf16x6_config *config,
                     blob_head *h, hone_reason *why) {
  hn_bf16_conv *c = &h->conv;
  const char *reason = "";
  memset(h, 0, sizeof *h);
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the step wants f32 products of its own formula");
  if (!config->describe(s, m, &h->d, why)) return false;
  const hn_coded_step *d = &h->d;
  const hn_bf16_ops *o = hn_bf16_find(d->isa);
  if (!o || o->parts < 3) return hn_refuse(why, "no split bf16 kernel for %s", hn_isa_name(d->isa));
  c->parts = 3;
  c->batch = c->groups = 1, c->cin = d->k, c->cout = d->n, c->in_pitch = d->k, c->in_batch = d->m * d->k;
  c->view = (hn_view){d->m * d->n, d->m * d->n, d->m * d->n, d->n};
  for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
  c->in[2] = c->out[2] = d->m;
  c->coded = hn_div_up((int64_t)(hn_coded_bytes(d) * 8), d->n * d->k);
  return hn_bf16_plan(c, o, m->threads, m->l1, m->l2, &reason) || hn_refuse(why, "%s", reason);
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_bf16_seconds(&h->conv, hn_bf16_find(h->d.isa), m) + hn_epilogue_seconds(s, m, true);
}

static size_t steps_bytes(const blob_head *h) {
  return hn_round_up((size_t)h->conv.steps * sizeof(int32_t), 64);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  hn_coded_need(&h->d, n);
  n->workspace_bytes = steps_bytes(h) + hn_bf16_workspace(&h->conv, m->threads);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  hn_coded_pack(&h->d, s, blob);
  return HONE_OK;
}

void hn_coded_bf16x6_work(const hone_step *s, const hone_machine *m, const hn_coded_bf16x6_config *config,
                          hone_work *w) {
  (void)m, (void)config;
  hn_bf16_work(s->cost.macs, 3, w);
}

typedef struct codes {
  const hn_coded_ops *ops;
  hn_coded w;
  int64_t n;
} codes;

static void widen(const void *arg, int64_t n, int64_t from, int64_t to, float *dst) {
  const codes *c = arg;
  const size_t step = (c->n - n > HN_CODED_PANEL ? 2 : 1) * HN_BF16_TILE;
  for (int64_t p = n; p < c->n && p < n + HN_BF16_PANEL; p += HN_CODED_PANEL, dst += HN_BF16_TILE)
    c->ops->widen_pairs(&c->w, (size_t)p, (size_t)from * HN_BF16_STEP, (size_t)to * HN_BF16_STEP, dst, step);
}

hone_status hn_coded_bf16x6_run(const hone_step_run *r, const hn_coded_bf16x6_config *config,
                                hone_error *error) {
  const blob_head *h = r->blob;
  hn_epilogue e;
  (void)config, (void)error;
  hn_epilogue_bind(r->step, h->d.isa, true, hn_coded_bias(&h->d, r), r->in, &e);
  int32_t *step = r->workspace;
  hn_bf16_steps(&h->conv, step);
  const codes c = {hn_coded_find(h->d.isa), hn_coded_matrix(&h->d, r), h->d.n};
  const hn_bf16_args a = {.conv = &h->conv,
                          .ops = hn_bf16_find(h->d.isa),
                          .step = step,
                          .x = r->in[0],
                          .y = r->out[0],
                          .epilogue = &e,
                          .workspace = (uint16_t *)(void *)((char *)r->workspace + steps_bytes(h)),
                          .threads = r->threads,
                          .widen = widen,
                          .codes = &c};
  hn_bf16_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_coded_bf16x6, blob_head, fill)
