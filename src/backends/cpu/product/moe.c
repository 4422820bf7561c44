/* MoE of f32: the weights of each expert packed as the gemm kernels read them. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/product/experts_step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/microsoft/experts/moe.h"

enum { DEPTH = 1024 }; /* of a panel, which then stays in L2 while rows go over it */

typedef struct blob_head {
  hn_isa isa;
  hn_experts of;
  int64_t columns[3], depth[3]; /* of fc1, fc2 and fc3: what they make and what they read */
  int64_t at[3], each[3];       /* bytes into the blob; floats of an expert */
  int64_t bytes;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!hn_experts_read(s, &h->of, why)) return false;
  h->of.third = hn_step_has(s, HN_MOE_FC3);
  h->of.inter = s->input[HN_MOE_FC2].desc.dim[2];
  size_t at = hn_round_up(sizeof *h, 64);
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t weights = HN_MOE_FC1 + 2 * i;
    if (!hn_step_has(s, weights)) continue;
    const hone_step_tensor *w = &s->input[weights];
    if (!hn_step_plain_f32(&w->desc) || !w->constant || hone_desc_count(&w->desc) < 1)
      return hn_refuse(why, "weights are no constants of f32");
    if (hn_step_has(s, weights + 1) && !hn_step_plain_f32(&s->input[weights + 1].desc))
      return hn_refuse(why, "a bias is not f32");
    h->columns[i] = w->desc.dim[1], h->depth[i] = w->desc.dim[2];
    h->each[i] = (int64_t)hn_round_up(hn_gemm_packed_size(o, (size_t)h->columns[i], (size_t)h->depth[i]), 16);
    h->at[i] = (int64_t)at;
    at += (size_t)(h->each[i] * h->of.experts) * sizeof(float);
  }
  h->bytes = (int64_t)at;
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_experts_cost(s, m, &h->of, 4, 0.7);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)m;
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = hn_experts_workspace(&h->of);
  n->packed = n->bytewise =
      1u << HN_MOE_FC1 | 1u << HN_MOE_FC2 | (hn_step_has(s, HN_MOE_FC3) ? 1u << HN_MOE_FC3 : 0);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  for (uint32_t i = 0; i < 3; i++) {
    const char *w = s->input[HN_MOE_FC1 + 2 * i].constant;
    float *to = (float *)(void *)((char *)blob + h->at[i]);
    const int64_t k = h->depth[i], n = h->columns[i];
    for (int64_t e = 0; e < h->of.experts && k; e++)
      hn_gemm_pack_b(hn_gemm_find(h->isa), (const float *)(const void *)(w + (size_t)(e * n * k) * 4), 1, k,
                     (size_t)k, (size_t)n, 0, (size_t)n, to + e * h->each[i]);
  }
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

static void product(const void *context, int which, int64_t expert, const float *x, int64_t rows,
                    int64_t from, int64_t end, float *y, uint32_t thread) {
  const hone_step_run *r = context;
  const blob_head *h = r->blob;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  const uint32_t bias_at = HN_MOE_B1 + 2 * (uint32_t)which;
  const int64_t n = h->columns[which], k = h->depth[which];
  const float *packed = (const float *)(const void *)((const char *)r->blob + h->at[which]) +
                        (HN_FAULT("moe_expert") ? 0 : expert) * h->each[which],
              *bias = hn_step_has(r->step, bias_at) ? (const float *)r->in[bias_at] + expert * n : NULL;
  (void)thread;
  for (int64_t c = from; c < end; c += o->nr) {
    const int64_t width = (int64_t)hn_gemm_panel_width(o, (size_t)n, (size_t)c);
    for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
      const int64_t depth = k - k0 < DEPTH ? k - k0 : DEPTH;
      const bool last = k0 + depth == k;
      for (int64_t i = 0; i < rows; i += o->mr) {
        const hn_gemm_tile t = {.a = x + i * k + k0,
                                .lda = k,
                                .b = packed + c * k + k0 * width,
                                .c = y + i * n + c,
                                .ldc = n,
                                .k = (size_t)depth,
                                .segment = (size_t)depth,
                                .m = (uint32_t)(rows - i < o->mr ? rows - i : o->mr),
                                .n = (uint32_t)(end - c < o->nr ? end - c : o->nr),
                                .accumulate = k0 > 0,
                                .flags = last && bias ? HN_EPI_BIAS : 0,
                                .bias = bias ? bias + c : NULL};
        o->tile(&t);
      }
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hn_experts_job j = {.of = &h->of,
                            .run = r,
                            .product = product,
                            .context = r,
                            .isa = h->isa,
                            .grain = hn_gemm_find(h->isa)->nr};
  (void)error;
  hn_experts_exec(&j, r->in[HN_MOE_X], r->in[HN_MOE_ROUTER], NULL, r->out[0]);
  return HONE_OK;
}

HN_TACTIC(cpu, moe, "com.microsoft.MoE", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
