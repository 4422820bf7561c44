/* Depthwise QLinearConv (one filter a channel) of one or two dimensions on the depthwise_int8 kernels, exact
 * in i32. */
#include <string.h>

#include "backends/cpu/quantized/depthwise_int8_driver.h"
#include "backends/cpu/quantized/int8_step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct blob_head {
  hn_dw8 d;
  hn_qlinear_info q;
  int64_t bias_at, scale_at, weights_at, line_at, bytes;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  const hone_tensor_desc *w = s->n_anchor_inputs > HN_QLINEAR_W ? &s->input[HN_QLINEAR_W].desc : NULL;
  if (!w || w->rank < 3 || w->dim[0] < 1) return hn_refuse(why, "weights are not those of a convolution");
  hn_qlinear_inner inner;
  hn_conv_attr a;
  if (!hn_qlinear_read("Conv", hone_desc_count(w) / w->dim[0], s, m, &h->q, &inner, why) ||
      !hn_step_is_f32(&inner.step, why) || !hn_conv_attr_of(&inner.step, &a, why))
    return false;
  if (a.cin != 1 || a.cout != 1)
    return hn_refuse(why, "not depthwise: %lld inputs and %lld outputs a group", (long long)a.cin,
                     (long long)a.cout);
  if (!hn_conv_is_picture(&a)) return hn_refuse(why, "three spatial dimensions");
  if (a.kernel[1] > HN_DW8_KERNEL_ROWS) return hn_refuse(why, "more than %d kernel rows", HN_DW8_KERNEL_ROWS);
  const int64_t in = a.x.size[1] * a.x.size[2] * a.x.view.pixel,
                out = a.y.size[1] * a.y.size[2] * a.y.view.pixel;
  if (!a.y.even || a.y.view.batch != out || a.x.view.batch != in)
    return hn_refuse(why, "pixels are not evenly spaced over the images");
  if (!hn_dw8_find(h->q.isa)) return hn_refuse(why, "no int8 depthwise kernel for %s", hn_isa_name(h->q.isa));
  hn_dw8 *d = &h->d;
  d->batch = a.x.batch, d->channels = a.groups;
  for (int i = 0; i < 2; i++) {
    d->in[i] = a.x.size[i + 1], d->out[i] = a.y.size[i + 1], d->kernel[i] = a.kernel[i + 1];
    d->stride[i] = a.stride[i + 1], d->dilation[i] = a.dilation[i + 1], d->pad[i] = a.pad[i + 1];
    if (d->pad[i] < 0) return hn_refuse(why, "negative padding");
  }
  if (!hn_int8_sums_fit(s, &h->q, d->kernel[0] * d->kernel[1], why)) return false;
  const hn_weight_codes codes = hn_int8_codes(s);
  d->parts = hn_weight_offsets(&codes) ? HN_DW8_PARTS : 1;
  d->in_pitch = a.x.view.pixel, d->out_pitch = a.y.view.pixel;
  d->flip = h->q.x_signed, d->padding = (int64_t)h->q.x_zero + (h->q.x_signed ? 128 : 0);
  d->zero = (int64_t)h->q.y_zero, d->is_signed = h->q.y_signed;
  hn_dw8_plan(d, m->threads, m->l1);
  size_t at = hn_round_up(sizeof *h, 64);
  h->bias_at = (int64_t)at, at += hn_dw8_values(d) * sizeof(int32_t);
  h->scale_at = (int64_t)at, at += hn_dw8_values(d) * sizeof(float);
  h->weights_at = (int64_t)at, at += hn_dw8_weights(d);
  h->line_at = (int64_t)at, at += hn_dw8_line(d);
  h->bytes = (int64_t)at;
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  (void)s;
  return hn_dw8_seconds(&h->d, hn_dw8_find(h->q.isa), m->peak_flops > 0 ? m->peak_flops : 1e10,
                        m->cache_bytes > 0 ? m->cache_bytes : 1e10);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = hn_dw8_scratch(&h->d) * m->threads;
  n->packed = 1u << HN_QLINEAR_W;
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  unsigned char *base = blob;
  const hn_weight_codes codes = hn_int8_codes(s);
  if (h->d.parts > 1) hn_dw8_split(&h->d, hn_dw8_parts(&h->d, &codes));
  memcpy(base, h, sizeof *h);
  int32_t *bias = (int32_t *)(void *)(base + h->bias_at);
  float *scale = (float *)(void *)(base + h->scale_at),
        *scales = hn_malloc((size_t)h->q.channels * sizeof *scales);
  if (!scales) return hn_fail_memory(error, (size_t)h->q.channels * sizeof *scales, "packing weights");
  hn_qlinear_scales(s, &h->q, scales);
  hn_dw8_pack(&h->d, &codes, (int8_t *)(void *)(base + h->weights_at), bias);
  hn_dw8_fill_line(&h->d, base + h->line_at);
  for (int64_t i = 0; i < (int64_t)hn_dw8_values(&h->d); i++) {
    const int64_t c = hn_dw8_value_channel(&h->d, i);
    scale[i] = c < 0 ? 0 : scales[c];
    bias[i] = c < 0 ? 0 : hn_int8_bias(s, &h->q, c, bias[i]);
  }
  hn_free(scales);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const unsigned char *base = r->blob;
  hn_dw8_args a = {.d = &h->d,
                   .ops = hn_dw8_find(h->q.isa),
                   .x = r->in[HN_QLINEAR_X],
                   .line = base + h->line_at,
                   .w = (const int8_t *)(const void *)(base + h->weights_at),
                   .bias = (const int32_t *)(const void *)(base + h->bias_at),
                   .scale = (const float *)(const void *)(base + h->scale_at),
                   .table = hn_qlinear_table(r),
                   .tables = hn_code_table_find(h->q.isa),
                   .scratch = r->workspace,
                   .y = r->out[0]};
  hn_dw8_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *work) {
  (void)s, (void)m;
  work->arithmetic = HONE_ARITHMETIC_INT8_VECTORS;
}

#define int8_depthwise_tactic(NAME, ANCHOR)                                                                  \
  HN_TACTIC(cpu, NAME, ANCHOR, 5, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,        \
            .run = run, .work = work)
int8_depthwise_tactic(int8_depthwise, "QLinearConv");
int8_depthwise_tactic(int8_depthwise_table, "QLinearConvTable");
