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

static size_t steps_at(void) { return hn_round_up(sizeof(blob_head), 64); }
/* Weights begin a page: those of a panel of a frequency are pages then, which the hardware fetches ahead by.
 */
static size_t weights_at(const blob_head *h) {
  enum { PAGE = 4096 };
  const int64_t steps = h->plan.bf16_rows ? hn_winograd_row_steps(&h->plan) : 0;
  return hn_round_up(steps_at() + (size_t)steps * sizeof(int32_t), PAGE);
}

/* Where there are tiles, direct sums are done before the transforms would be. */
static const hn_bf16_ops *bf16_products(const hone_step *s, hn_isa isa, const hn_winograd_form *form,
                                        hone_reason *why) {
  const hn_bf16_ops *o = hn_bf16_find(isa);
  if (s->math < HONE_MATH_BF16) return hn_refuse(why, "the plan does not allow operands in bf16"), NULL;
  if (!o || !hn_winograd_bf16_find(isa, form))
    return hn_refuse(why, "no bf16 kernel for %s", hn_isa_name(isa)), NULL;
  if (o->x1_rate > 0) return hn_refuse(why, "the processor multiplies tiles"), NULL;
  return o;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                     blob_head *h, hone_reason *why) {
  const hn_isa isa = hn_isa_of(m->isa);
  const hn_winograd_form *form = hn_winograd_form_of(config->tile, config->stride);
  const hone_dtype narrow = config->bf16 ? HONE_DTYPE_BF16 : HONE_DTYPE_F32;
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the step wants direct sums");
  const hn_bf16_ops *bf16 = config->bf16 ? bf16_products(s, isa, form, why) : NULL;
  hn_conv_attr a;
  if (config->bf16 && !bf16) return false;
  if (!hn_step_is_float(s, narrow, why) || !hn_conv_attr_of(s, &a, why)) return false;
  for (uint32_t i = 1; i < s->n_anchor_inputs; i++)
    if (config->bf16 && s->input[i].desc.dtype == narrow)
      return hn_refuse(why, "input %u is %s, not f32", i, hone_dtype_name(narrow));
  if (!s->input[1].constant) return hn_refuse(why, "weights are not constant");
  if (a.groups != 1 && (config->bf16 || a.cin == 1)) return hn_refuse(why, "more than one group");
  if (a.kernel[1] != 3 || a.kernel[2] != 3) return hn_refuse(why, "the kernel is not 3x3");
  if (a.kernel[0] == 1 && (a.pad[0] || (a.y.size[0] - 1) * a.stride[0] >= a.x.size[0]))
    return hn_refuse(why, "there are slices of nothing but padding");
  if (a.kernel[0] > 1 && config->bf16) return hn_refuse(why, "several taps of depth");
  for (int i = 1; i < 3; i++)
    if (a.stride[i] != config->stride || a.dilation[i] != 1)
      return hn_refuse(why, "stride is not %d, or dilation not 1", (int)config->stride);
  memset(h, 0, sizeof *h);
  h->isa = isa;
  if (!hn_epilogue_takes(s, h->isa, false, narrow, why)) return false;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o || !hn_winograd_find(h->isa, form)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  h->plan =
      (hn_winograd){.m = config->tile,
                    .stride = config->stride,
                    .batch = a.x.batch,
                    .groups = a.groups,
                    .cin = a.cin,
                    .cout = a.cout,
                    .in = {a.x.size[1], a.x.size[2]},
                    .out = {a.y.size[1], a.y.size[2]},
                    .pad = {a.pad[1], a.pad[2]},
                    .depth = {a.x.size[0], a.y.size[0], a.kernel[0], a.stride[0], a.dilation[0], a.pad[0]},
                    .in_batch = a.x.view.batch,
                    .in_slice = a.x.view.slice,
                    .in_row = a.x.view.row,
                    .in_pixel = a.x.view.pixel,
                    .y = a.y.view};
  if (bf16)
    h->plan.bf16_rows = bf16->rows, h->plan.bf16_rate = hn_bf16_rate(bf16),
    h->plan.narrow_in = s->input[0].desc.dtype == narrow,
    h->plan.narrow_out = s->output[0].desc.dtype == narrow;
  hn_winograd_plan(&h->plan, o, m);
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return h->plan.seconds + hn_epilogue_seconds(s, m, true);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  n->packed = 1u << 1;
  n->blob_bytes =
      weights_at(h) + hn_winograd_packed_size(&h->plan, o) * (h->plan.bf16_rows ? 2 : sizeof(float));
  n->workspace_bytes = hn_winograd_scratch(&h->plan, o) * sizeof(float) * m->threads;
}

size_t hn_winograd_shared(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                          uint64_t *key) {
  blob_head h;
  (void)key;
  return describe(s, m, config, &h, NULL) ? weights_at(&h) : 0;
}

static hone_status prepack_bf16(const hone_step *s, const blob_head *h, int32_t *step, uint16_t *to,
                                hone_error *error) {
  hn_winograd_fill_steps(&h->plan, step);
  if (s->own_only) return HONE_OK;
  const size_t places = (size_t)hn_winograd_steps(&h->plan) * HN_BF16_STEP * sizeof(int64_t),
               bytes = places + hn_winograd_panel(&h->plan) * sizeof(float);
  int64_t *at = hn_malloc(bytes);
  if (!at) return hn_fail_memory(error, bytes, "packing weights");
  float *wide = (float *)(void *)((unsigned char *)at + places);
  for (int64_t i = 0; i < h->plan.n_panels; i++)
    hn_winograd_pack_bf16(&h->plan, hn_bf16_find(h->isa), s->input[1].constant, i, wide, at, to);
  hn_free(at);
  return HONE_OK;
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  memcpy(blob, h, sizeof *h);
  ((blob_head *)blob)->plan.seconds = 0; /* a guess about this very processor, which no run reads */
  unsigned char *base = blob;
  void *to = base + weights_at(h);
  if (h->plan.bf16_rows) return prepack_bf16(s, h, (int32_t *)(void *)(base + steps_at()), to, error);
  for (int64_t i = 0; i < h->plan.n_panels && !s->own_only; i++)
    hn_winograd_pack_panel(&h->plan, hn_gemm_find(h->isa), s->input[1].constant, i, to);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_winograd, blob_head, fill)

/* Per tile: the products of all frequencies, the transform of its input and that back to its output
 * (kernels/winograd/winograd_body.h). What the formula counts beside products is the epilogue. */
void hn_winograd_work(const hone_step *s, const hone_machine *m, const hn_winograd_config *config,
                      hone_work *work) {
  const hn_winograd_form *f = hn_winograd_form_of(config->tile, config->stride);
  blob_head h;
  if (!describe(s, m, config, &h, NULL)) return;
  const double cin = (double)h.plan.cin, cout = (double)h.plan.cout, n = (double)f->pieces,
               groups = (double)h.plan.groups;
  const hn_winograd_reach r = hn_winograd_reach_of(&h.plan);
  const double planes = groups * (double)(h.plan.batch * h.plan.tiles_y * h.plan.tiles_x);
  work->flops += planes * (2 * n * n * (double)r.taps * cin * cout + (double)r.slices * f->input_flops * cin +
                           (double)h.plan.depth.out * f->output_flops * cout) -
                 2 * s->cost.macs;
  if (config->bf16) work->arithmetic = HONE_ARITHMETIC_BF16;
}

hone_status hn_winograd_run(const hone_step_run *r, const hn_winograd_config *config, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  const hn_winograd_form *form = hn_winograd_form_of(h->plan.m, h->plan.stride);
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, hn_step_bias(s, r->in), r->in, &e);
  hn_winograd_args a = {.plan = &h->plan,
                        .gemm = hn_gemm_find(h->isa),
                        .ops = config->bf16 ? hn_winograd_bf16_find(h->isa, form)
                                            : hn_winograd_find(h->isa, form),
                        .bf16 = config->bf16 ? hn_bf16_find(h->isa) : NULL,
                        .step = (const int32_t *)(const void *)((const char *)r->blob + steps_at()),
                        .x = r->in[0],
                        .w = hn_shared_at(r, (int64_t)weights_at(h)),
                        .y = r->out[0],
                        .epilogue = &e,
                        .scratch = r->workspace};
  hn_winograd_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}
