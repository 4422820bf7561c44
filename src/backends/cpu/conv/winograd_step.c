#include "backends/cpu/step/step.h"
#include "backends/cpu/conv/winograd_step.h"

#include <string.h>

#include "backends/cpu/conv/winograd_driver.h"
#include "backends/cpu/kernels/features.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct blob_head {
  hn_winograd plan;
  hn_isa isa;
} blob_head;

static size_t weights_at(void) { return hn_round_up(sizeof(blob_head), 64); }

static bool describe(const hone_step *s, const hone_machine *m, int64_t tile, blob_head *h,
                     hone_reason *why) {
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the step wants direct sums");
  hn_conv_attr a;
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why)) return false;
  if (!s->input[1].constant) return hn_refuse(why, "weights are not constant");
  if (a.groups != 1) return hn_refuse(why, "more than one group");
  if (a.kernel[0] != 1 || a.kernel[1] != 3 || a.kernel[2] != 3)
    return hn_refuse(why, "the kernel is not 3x3");
  if (a.x.size[0] != 1 || a.y.size[0] != 1 || a.pad[0]) return hn_refuse(why, "not two-dimensional");
  for (int i = 1; i < 3; i++)
    if (a.stride[i] != 1 || a.dilation[i] != 1) return hn_refuse(why, "stride or dilation is not 1");
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o || !hn_winograd_find(h->isa, tile)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  h->plan = (hn_winograd){.m = tile,
                          .batch = a.x.batch,
                          .cin = a.cin,
                          .cout = a.cout,
                          .in = {a.x.size[1], a.x.size[2]},
                          .out = {a.y.size[1], a.y.size[2]},
                          .pad = {a.pad[1], a.pad[2]},
                          .in_batch = a.x.view.batch,
                          .in_row = a.x.view.row,
                          .in_pixel = a.x.view.pixel,
                          .y = a.y.view};
  hn_winograd_plan(&h->plan, o, m);
  return true;
}

bool hn_winograd_accepts(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                         hone_reason *why) {
  blob_head h;
  return describe(s, m, config->tile, &h, why);
}

double hn_winograd_cost(const hone_step *s, const hone_machine *m, const hn_winograd_config *config) {
  blob_head h;
  return describe(s, m, config->tile, &h, NULL) ? h.plan.seconds + hn_epilogue_seconds(s, m, true) : 1e9;
}

hone_status hn_winograd_need(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                             hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why;
  if (!describe(s, m, config->tile, &h, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "winograd: %s", why.text);
  const hn_gemm_ops *o = hn_gemm_find(h.isa);
  n->packed = 1u << 1;
  n->blob_bytes = weights_at() + hn_winograd_packed_size(&h.plan, o) * sizeof(float);
  n->workspace_bytes = hn_winograd_scratch(&h.plan, o) * sizeof(float) * m->threads;
  return HONE_OK;
}

size_t hn_winograd_shared(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                          uint64_t *key) {
  (void)s, (void)m, (void)config, (void)key;
  return weights_at();
}

hone_status hn_winograd_prepack(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                                void *blob, hone_error *error) {
  blob_head h;
  hone_reason why;
  if (!describe(s, m, config->tile, &h, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "winograd: %s", why.text);
  memcpy(blob, &h, sizeof h);
  float *to = (float *)(void *)((unsigned char *)blob + weights_at());
  for (int64_t i = 0; i < h.plan.n_panels && !s->own_only; i++)
    hn_winograd_pack_panel(&h.plan, hn_gemm_find(h.isa), s->input[1].constant, i, to);
  return HONE_OK;
}

/* Per tile: the products of all frequencies, the transform of its input and that back to its output
 * (kernels/winograd/winograd_body.h). What the formula counts beside products is the epilogue. */
void hn_winograd_work(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                      hone_work *work) {
  const int64_t tile = config->tile;
  blob_head h;
  if (!describe(s, m, tile, &h, NULL)) return;
  const double cin = (double)h.plan.cin, cout = (double)h.plan.cout, n = (double)tile + 2;
  work->flops += (double)h.plan.tiles * (2 * n * n * cin * cout + hn_winograd_input_flops(tile) * cin +
                                         hn_winograd_output_flops(tile) * cout) -
                 2 * s->cost.macs;
}

hone_status hn_winograd_run(const hone_step_run *r, const hn_winograd_config *config, hone_error *error) {
  (void)config, (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, hn_step_has(s, 2) && s->n_anchor_inputs > 2 ? r->in[2] : NULL, r->in,
                   &e);
  hn_winograd_args a = {.plan = &h->plan,
                        .gemm = hn_gemm_find(h->isa),
                        .ops = hn_winograd_find(h->isa, h->plan.m),
                        .x = r->in[0],
                        .w = hn_shared_at(r, (int64_t)weights_at()),
                        .y = r->out[0],
                        .epilogue = &e,
                        .scratch = r->workspace};
  hn_winograd_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}
