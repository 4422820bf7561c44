#include "backends/cpu/quantized/int8_step.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"
#include "optimize/step/shared.h"

hn_weight_codes hn_int8_codes(const hone_step *s) {
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  hn_weight_codes c = {.w = w->constant, .is_u8 = w->desc.dtype == HONE_DTYPE_U8};
  if (!hn_step_has(s, HN_QLINEAR_W_ZERO)) return c;
  c.zero = s->input[HN_QLINEAR_W_ZERO].constant;
  c.zeros = hone_desc_count(&s->input[HN_QLINEAR_W_ZERO].desc);
  return c;
}

/* Whether even the largest bias and scale together stay within 32 bits, which spares looking at channels one
 * by one: this is asked several times of each step. */
static bool all_fit(const hn_qlinear_info *q, double sum, const int32_t *bias, const float *w_scale,
                    double rest) {
  double most = 0;
  for (int64_t c = 0; bias && c < q->channels; c++) {
    const double b = bias[c] < 0 ? -(double)bias[c] : bias[c];
    most = b > most ? b : most;
  }
  const double limit = 2147483000.0 * 0.999 / ((sum + most) * fabs(rest));
  bool within = sum + most < 2147483648.0 && limit > 0;
  for (int64_t c = 0; c < (q->vectors ? q->channels : 1); c++)
    within &= fabsf(w_scale[c]) < limit; /* no NaN */
  return within;
}

bool hn_int8_sums_fit(const hone_step *s, const hn_qlinear_info *q, int64_t products, hone_reason *why) {
  if (hn_step_has(s, HN_QLINEAR_W_ZERO) &&
      s->input[HN_QLINEAR_W_ZERO].desc.dtype != s->input[HN_QLINEAR_W].desc.dtype)
    return hn_refuse(why, "the weights' zero point is not of their type");
  const hn_weight_codes codes = hn_int8_codes(s);
  const double weight = hn_weight_offsets(&codes) ? 255 : 128;
  const int32_t *bias = q->biased ? s->input[HN_QLINEAR_BIAS].constant : NULL;
  const float *w_scale = s->input[HN_QLINEAR_W_SCALE].constant;
  const double x_scale = (double)*(const float *)s->input[HN_QLINEAR_X_SCALE].constant,
               y_scale = (double)*(const float *)s->input[HN_QLINEAR_Y_SCALE].constant;
  if (all_fit(q, (double)products * 255 * weight, bias, w_scale, x_scale / y_scale)) return true;
  for (int64_t c = 0; c < q->channels; c++) {
    const double most = (double)products * 255 * weight + (bias ? fabs((double)bias[c]) : 0);
    if (most >= 2147483648.0) return hn_refuse(why, "sums may reach %.3g, beyond 32 bits", most);
    const double result = most * x_scale * (double)w_scale[q->vectors ? c : 0] / y_scale;
    if (!(result < 2147483000.0 && result > -2147483000.0))
      return hn_refuse(why, "results before saturation may reach %.3g, beyond 32 bits", result);
  }
  return true;
}

static uint32_t zero_of(const hn_qlinear_info *q) { return (uint32_t)(q->x_zero + (q->x_signed ? 128 : 0)); }

int32_t hn_int8_bias(const hone_step *s, const hn_qlinear_info *q, int64_t channel, int32_t sum) {
  const uint32_t bias =
      q->biased ? (uint32_t)((const int32_t *)s->input[HN_QLINEAR_BIAS].constant)[channel] : 0;
  return (int32_t)(bias - zero_of(q) * (uint32_t)sum);
}

/* ---------------------------------------------------------------- reading steps */

static const hn_int8_ops *begin(const char *anchor, int64_t per, const hone_step *s, const hone_machine *m,
                                hn_int8_step *d, hn_qlinear_inner *inner, hone_reason *why) {
  memset(d, 0, sizeof *d);
  if (!hn_qlinear_read(anchor, per, s, m, &d->q, inner, why)) return NULL;
  const hn_int8_ops *o = hn_int8_find(d->q.isa);
  if (!o) hn_refuse(why, "no int8 kernel for %s", hn_isa_name(d->q.isa));
  const hn_weight_codes codes = hn_int8_codes(s);
  d->conv.offsets = hn_weight_offsets(&codes);
  d->conv.flip = d->q.x_signed;
  d->conv.padding = (int64_t)d->q.x_zero + (d->q.x_signed ? 128 : 0);
  d->conv.zero = (int64_t)d->q.y_zero;
  d->conv.is_signed = d->q.y_signed;
  d->conv.in_bytes = d->q.x_count;
  return o;
}

/* Plans the product and lays out the blob. */
static bool finish(const hone_step *s, const hone_machine *m, const hn_int8_ops *o, hn_int8_step *d,
                   hone_reason *why) {
  const char *reason = "";
  hn_int8_conv *c = &d->conv;
  if (!hn_int8_plan(c, o, m->threads, m->l2, &reason)) return hn_refuse(why, "%s", reason);
  if (!hn_int8_sums_fit(s, &d->q, c->k / c->joined, why)) return false;
  const size_t columns = hn_int8_columns(c) * (size_t)c->groups;
  size_t at = hn_round_up(sizeof *d, 64);
  d->bias_at = (int64_t)at;
  at += columns * sizeof(int32_t);
  d->scale_at = (int64_t)at;
  at = hn_round_up(at + columns * sizeof(float), 64);
  d->sums_at = (int64_t)at;
  at += columns * sizeof(int32_t);
  d->offset_at = (int64_t)at;
  at = hn_round_up(at + columns * sizeof(int32_t), 64);
  d->weights_at = (int64_t)at;
  d->bytes = (int64_t)(at + hn_int8_weights(c) * (size_t)c->groups);
  return true;
}

bool hn_int8_describe_conv(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why) {
  const hone_tensor_desc *w = s->n_anchor_inputs > HN_QLINEAR_W ? &s->input[HN_QLINEAR_W].desc : NULL;
  if (!w || w->rank < 3 || w->dim[0] < 1) return hn_refuse(why, "weights are not those of a convolution");
  hn_qlinear_inner inner;
  hn_conv_attr a;
  const hn_int8_ops *o = begin("Conv", hone_desc_count(w) / w->dim[0], s, m, d, &inner, why);
  if (!o || !hn_step_is_f32(&inner.step, why) || !hn_conv_attr_of(&inner.step, &a, why)) return false;
  const int64_t pixels = a.y.size[0] * a.y.size[1] * a.y.size[2];
  if (!a.y.even || a.y.view.batch != pixels * a.y.view.pixel ||
      a.x.view.batch != a.x.size[0] * a.x.size[1] * a.x.size[2] * a.x.view.pixel)
    return hn_refuse(why, "pixels are not evenly spaced over the images");
  hn_int8_conv *c = &d->conv;
  c->batch = a.x.batch, c->groups = a.groups, c->cin = a.cin, c->cout = a.cout;
  c->in_pitch = a.x.view.pixel, c->out_pitch = a.y.view.pixel;
  for (int i = 0; i < 3; i++) {
    c->in[i] = a.x.size[i], c->out[i] = a.y.size[i];
    c->kernel[i] = a.kernel[i], c->stride[i] = a.stride[i], c->dilation[i] = a.dilation[i],
    c->pad[i] = a.pad[i];
    if (a.pad[i] < 0) return hn_refuse(why, "negative padding");
  }
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  d->w_column = a.cin * taps, d->w_channel = taps, d->w_tap = 1;
  return finish(s, m, o, d, why);
}

/* rows x k times k x n. */
static void matrix(hn_int8_step *d, int64_t rows, int64_t n, int64_t k, bool transposed) {
  hn_int8_conv *c = &d->conv;
  c->batch = c->groups = 1, c->cin = c->in_pitch = k, c->cout = c->out_pitch = n;
  for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
  c->in[2] = c->out[2] = rows;
  d->w_channel = transposed ? 1 : n, d->w_column = transposed ? k : 1;
}

static bool row_major(const hone_step *s, hone_reason *why) {
  if (s->input[HN_QLINEAR_X].desc.layout == HONE_LAYOUT_ROW_MAJOR &&
      s->input[HN_QLINEAR_W].desc.layout == HONE_LAYOUT_ROW_MAJOR &&
      s->output[0].desc.layout == HONE_LAYOUT_ROW_MAJOR)
    return true;
  return hn_refuse(why, "operands are not row-major");
}

bool hn_int8_describe_gemm(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why) {
  if (s->n_anchor_inputs <= HN_QLINEAR_W || !row_major(s, why)) return false;
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *w = &s->input[HN_QLINEAR_W].desc;
  if (x->rank != 2 || w->rank != 2) return hn_refuse(why, "operands are not matrices");
  if (hone_node_int(s->node, "transA", 0)) return hn_refuse(why, "A is transposed");
  if (hone_node_float(s->node, "alpha", 1) != 1 || hone_node_float(s->node, "beta", 1) != 1)
    return hn_refuse(why, "alpha or beta is not 1");
  const bool tb = hone_node_int(s->node, "transB", 0) != 0;
  const int64_t k = x->dim[1], n = w->dim[!tb];
  if (w->dim[tb] != k) return hn_refuse(why, "inner dimensions differ");
  hn_qlinear_inner inner;
  const hn_int8_ops *o = begin("Gemm", tb ? k : 1, s, m, d, &inner, why);
  if (!o) return false;
  matrix(d, x->dim[0], n, k, tb);
  return finish(s, m, o, d, why);
}

bool hn_int8_describe_matmul(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why) {
  if (s->n_anchor_inputs <= HN_QLINEAR_W || !row_major(s, why)) return false;
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *w = &s->input[HN_QLINEAR_W].desc;
  if (x->rank < 2 || w->rank < 2) return hn_refuse(why, "an operand is a vector");
  const int64_t k = w->dim[w->rank - 2], n = w->dim[w->rank - 1];
  if (k < 1 || hone_desc_count(w) != k * n) return hn_refuse(why, "a batch of weights");
  if (x->dim[x->rank - 1] != k) return hn_refuse(why, "inner dimensions differ");
  hn_qlinear_inner inner;
  const hn_int8_ops *o = begin("MatMul", 1, s, m, d, &inner, why);
  if (!o) return false;
  /* One B for all: the rows of all matrices of A are rows of one product. */
  matrix(d, hone_desc_count(x) / k, n, k, false);
  return finish(s, m, o, d, why);
}

/* ---------------------------------------------------------------- the tactic's functions */

static bool describe(const hone_step *s, const hone_machine *m, const hn_int8_step_config *config,
                     hn_int8_step *d, hone_reason *why) {
  return config->describe(s, m, d, why);
}

static double cost_of(const hn_int8_step *d, const hone_step *s, const hone_machine *m) {
  (void)s;
  return hn_int8_seconds(&d->conv, hn_int8_find(d->q.isa), m->peak_flops > 0 ? m->peak_flops : 1e10,
                         m->cache_bytes > 0 ? m->cache_bytes : 1e10);
}

static size_t values(const hn_int8_step *d) { return hn_int8_columns(&d->conv) * (size_t)d->conv.groups; }

/* Of the workspace's beginning: biases less the sums of weights times the zero point of the input. */
static size_t less_bytes(const hn_int8_step *d) { return hn_round_up(values(d) * sizeof(int32_t), 64); }

static void need_of(const hn_int8_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)d->bytes;
  n->packed = 1u << HN_QLINEAR_W;
  n->workspace_bytes = less_bytes(d) + hn_int8_workspace(&d->conv, hn_int8_find(d->q.isa), m->threads);
}

/* What follows from the weights alone: each step of an unrolled recurrence has scales of its own. Those that
 * may need offsets are not shared: whether they do, packing finds out. */
size_t hn_int8_step_shared(const hone_step *s, const hone_machine *m, const hn_int8_step_config *config,
                           uint64_t *key) {
  hn_int8_step d;
  hone_reason why = {""};
  if (!config->describe(s, m, &d, &why) || d.conv.offsets) return 0;
  *key = hn_int8_order(&d.conv);
  return (size_t)d.sums_at | HN_SHARED_PACKED;
}

static hone_status fill(hn_int8_step *d, const hone_step *s, void *blob, hone_error *error) {
  const hn_int8_conv *c = &d->conv;
  unsigned char *base = blob;
  const size_t columns = hn_int8_columns(c), all = values(d);
  int32_t *bias = (int32_t *)(void *)(base + d->bias_at), *sums = (int32_t *)(void *)(base + d->sums_at),
          *offset = (int32_t *)(void *)(base + d->offset_at);
  float *scale = (float *)(void *)(base + d->scale_at),
        *scales = hn_malloc((size_t)d->q.channels * sizeof *scales);
  if (!scales) return hn_fail_memory(error, (size_t)d->q.channels * sizeof *scales, "packing weights");
  memset(bias, 0, all * sizeof *bias);
  memset(scale, 0, all * sizeof *scale);
  hn_qlinear_scales(s, &d->q, scales);
  const bool biased = d->q.biased && !(s->own_only && HN_FAULT("int8_own_bias"));
  const int32_t *own = biased ? s->input[HN_QLINEAR_BIAS].constant : NULL;
  for (int64_t g = 0; g < c->groups; g++, bias += columns, scale += columns)
    for (int64_t j = 0; j < c->cout; j++) {
      bias[j] = own ? own[g * c->cout + j] : 0;
      scale[j] = scales[g * c->cout + j];
    }
  hn_free(scales);
  if (!s->own_only) {
    const hn_weight_codes codes = hn_int8_codes(s);
    bool offsets = false;
    memset(sums, 0, all * sizeof *sums);
    memset(offset, 0, all * sizeof *offset);
    for (int64_t g = 0; g < c->groups; g++)
      offsets |= hn_int8_pack(c, hn_int8_find(d->q.isa), &codes, g, d->w_column, d->w_tap, d->w_channel,
                              (int8_t *)(void *)(base + d->weights_at) + (size_t)g * hn_int8_weights(c),
                              sums + (size_t)g * columns, offset + (size_t)g * columns);
    d->conv.offsets = offsets; /* or all weights fit without */
  }
  memcpy(base, d, sizeof *d);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_int8_step, hn_int8_step, fill)

hone_status hn_int8_step_run(const hone_step_run *r, const hn_int8_step_config *config, hone_error *error) {
  (void)config, (void)error;
  const hn_int8_step *d = r->blob;
  const unsigned char *blob = r->blob, *shared = hn_shared_at(r, d->sums_at);
  const int32_t *bias = (const int32_t *)(const void *)(blob + d->bias_at);
  const uint32_t zero = zero_of(&d->q);
  if (zero) {
    const int32_t *sums = (const int32_t *)(const void *)shared;
    int32_t *less = r->workspace;
    for (size_t i = 0, n = values(d); i < n; i++)
      less[i] = (int32_t)((uint32_t)bias[i] - zero * (uint32_t)sums[i]);
    bias = less;
  }
  hn_int8_args a = {.conv = &d->conv,
                    .ops = hn_int8_find(d->q.isa),
                    .x = r->in[HN_QLINEAR_X],
                    .w = (const int8_t *)(const void *)(shared + (d->weights_at - d->sums_at)),
                    .bias = bias,
                    .offset = (const int32_t *)(const void *)(shared + (d->offset_at - d->sums_at)),
                    .scale = (const float *)(const void *)(blob + d->scale_at),
                    .table = hn_qlinear_table(r),
                    .tables = hn_code_table_find(d->q.isa),
                    .y = r->out[0],
                    .scratch = (unsigned char *)r->workspace + less_bytes(d)};
  hn_int8_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}
