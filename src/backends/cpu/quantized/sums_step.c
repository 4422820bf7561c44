#include "backends/cpu/quantized/sums_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"
#include "optimize/step/shared.h"

/* ---------------------------------------------------------------- reading steps */

static bool is_8bit(hone_dtype d) { return d == HONE_DTYPE_U8 || d == HONE_DTYPE_I8; }
static bool is_16bit(hone_dtype d) { return d == HONE_DTYPE_U16 || d == HONE_DTYPE_I16; }

static const hone_tensor_desc *desc_of(const hone_step *s, uint32_t role) {
  return &s->input[hn_sums_at(s, role)].desc;
}

static bool has(const hone_step *s, uint32_t role) {
  return hn_sums_at(s, role) < s->n_anchor_inputs && hn_step_has(s, hn_sums_at(s, role));
}

static const hone_tensor_desc *bias_of(const hone_step *s) {
  return has(s, HN_SUMS_BIAS) ? desc_of(s, HN_SUMS_BIAS) : NULL;
}

/* The step's weights: codes and zero points. False with a reason. */
static bool codes_of(const hone_step *s, int64_t channels, hn_weight_codes *c, hone_reason *why) {
  const hone_step_tensor *w = &s->input[hn_sums_at(s, HN_SUMS_W)],
                         *z = &s->input[hn_sums_at(s, HN_SUMS_W_ZERO)];
  if (!is_8bit(w->desc.dtype) || !w->constant)
    return hn_refuse(why, "weights are not constant codes of 8 bits");
  *c = (hn_weight_codes){.w = w->constant, .is_u8 = w->desc.dtype == HONE_DTYPE_U8};
  if (!has(s, HN_SUMS_W_ZERO)) return true;
  if (z->desc.dtype != w->desc.dtype || !z->constant)
    return hn_refuse(why, "the weights' zero point is not constant");
  c->zero = z->constant, c->zeros = hone_desc_count(&z->desc);
  if (c->zeros != 1 && c->zeros != channels)
    return hn_refuse(why, "the weights' zero point has not one value, nor one a channel");
  return true;
}

static bool codes_fit(const hone_tensor_desc *x, bool or_wide, hone_reason *why) {
  if (!is_8bit(x->dtype) && !(or_wide && is_16bit(x->dtype)))
    return hn_refuse(why, "the input is %s, not 8%s bits", hone_dtype_name(x->dtype),
                     or_wide ? " or 16" : "");
  if (!hone_desc_known(x)) return hn_refuse(why, "dimensions are not known");
  if (x->layout == HONE_LAYOUT_CHANNELS_LAST && x->channel_pitch != x->dim[1])
    return hn_refuse(why, "channels have gaps");
  return true;
}

static const hone_step_tensor *y_zero_of(const hone_step *s) {
  return has(s, HN_SUMS_Y_ZERO) ? &s->input[HN_SUMS_Y_ZERO] : NULL;
}

/* Scales and zero points of the codes that the epilogue's results become. */
static bool result_of(const hone_step *s, hn_sums_step *d, hone_reason *why) {
  const hone_step_tensor *scale = &s->input[HN_SUMS_Y_SCALE], *zero = y_zero_of(s);
  const hone_dtype type = s->output[0].desc.dtype;
  const int64_t count = hone_desc_count(&scale->desc);
  if (!is_8bit(type)) return hn_refuse(why, "the output is %s, not 8 bits", hone_dtype_name(type));
  if (!scale->constant || scale->desc.dtype != HONE_DTYPE_F32 || (count != 1 && count != d->channels))
    return hn_refuse(why, "the output's scale is no constant f32, nor one a channel");
  if (zero && (!zero->constant || zero->desc.dtype != type || hone_desc_count(&zero->desc) != count))
    return hn_refuse(why, "the output has not as many zero points of its type as scales");
  d->y_vectors = count != 1;
  d->coded = d->conv.coded = d->dw.coded = 1;
  return true;
}

static int64_t out_bytes(const hn_sums_step *d) { return d->coded ? 1 : (int64_t)sizeof(float); }

/* What all kinds of steps need. channels: of the output. */
static bool begin(const hone_step *s, const hone_machine *m, int64_t channels, bool matrix, hn_sums_step *d,
                  hone_reason *why) {
  d->isa = hn_isa_of(m->isa);
  d->channels = channels;
  d->matrix = matrix;
  hn_weight_codes codes;
  if (!codes_of(s, channels, &codes, why) ||
      !codes_fit(desc_of(s, HN_SUMS_X), !d->depthwise && !hn_sums_whole(s), why))
    return false;
  d->conv.halves = is_16bit(desc_of(s, HN_SUMS_X)->dtype);
  d->conv.offsets = hn_weight_offsets(&codes);
  d->dw.parts = d->conv.offsets ? HN_DW8_PARTS : 1;
  if (s->n_anchor_inputs > HN_SUMS_Y_SCALE) {
    if (!result_of(s, d, why)) return false;
  } else if (s->output[0].desc.dtype != (hn_sums_whole(s) ? HONE_DTYPE_I32 : HONE_DTYPE_F32))
    return hn_refuse(why, "the output is %s", hone_dtype_name(s->output[0].desc.dtype));
  d->conv.whole = d->dw.whole = hn_sums_whole(s);
  if (has(s, HN_SUMS_X_ZERO) && (desc_of(s, HN_SUMS_X_ZERO)->dtype != desc_of(s, HN_SUMS_X)->dtype ||
                                 hone_desc_count(desc_of(s, HN_SUMS_X_ZERO)) != 1))
    return hn_refuse(why, "the input's zero point is not one value of its type");
  if (hn_sums_whole(s)) return hn_epilogue_accepts(s, d->isa, matrix, why);
  const hone_tensor_desc *scale = desc_of(s, HN_SUMS_SCALE);
  d->vectors = hone_desc_count(scale) != 1;
  if (scale->dtype != HONE_DTYPE_F32 || (d->vectors && hone_desc_count(scale) != channels))
    return hn_refuse(why, "the scale has not one f32, nor one a channel");
  const hone_tensor_desc *bias = bias_of(s);
  if (bias && (bias->dtype != HONE_DTYPE_F32 || hone_desc_count(bias) != channels))
    return hn_refuse(why, "the bias has not one f32 a channel");
  return hn_epilogue_accepts(s, d->isa, matrix, why);
}

/* Of a convolution: the f32 step that it would be says where pixels lie. */
static bool conv_attr(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  hone_step_tensor in[2] = {{*desc_of(s, HN_SUMS_X), NULL},
                            {*desc_of(s, HN_SUMS_W), s->input[hn_sums_at(s, HN_SUMS_W)].constant}},
                   out = s->output[0];
  in[0].desc.dtype = in[1].desc.dtype = out.desc.dtype = HONE_DTYPE_F32;
  const hone_step inner = {
      HONE_DESC_HEAD(hone_step), .anchor = "Conv", .name = s->name, .node = s->node, .n_inputs = 2,
      .n_anchor_inputs = 2,      .input = in,      .n_outputs = 1,  .output = &out};
  if (desc_of(s, HN_SUMS_W)->rank < 3) return hn_refuse(why, "weights are not those of a convolution");
  if (!hn_conv_attr_of(&inner, a, why)) return false;
  if (!a->y.even || a->y.view.batch != a->y.size[0] * a->y.size[1] * a->y.size[2] * a->y.view.pixel ||
      a->x.view.batch != a->x.size[0] * a->x.size[1] * a->x.size[2] * a->x.view.pixel)
    return hn_refuse(why, "pixels are not evenly spaced over the images");
  for (int i = 0; i < 3; i++)
    if (a->pad[i] < 0) return hn_refuse(why, "negative padding");
  return true;
}

static int64_t plane_bytes(const hn_sums_step *d) {
  return (int64_t)hn_round_up((size_t)d->conv.in_bytes, 64);
}

/* Lays out the blob, with so many bytes of weights, and the workspace. */
static void lay_out(hn_sums_step *d, size_t weights) {
  size_t at = hn_round_up(sizeof *d, 64);
  d->sums_at = (int64_t)at;
  at += (size_t)d->values * sizeof(int32_t);
  d->offset_at = (int64_t)at;
  at = hn_round_up(at + (size_t)d->values * sizeof(int32_t), 64);
  d->weights_at = (int64_t)at;
  d->bytes = (int64_t)(at + weights);
  d->bias_at = 0;
  d->scale_at = (int64_t)hn_round_up((size_t)d->values * sizeof(int32_t), 64);
  d->low_at = 2 * d->scale_at;
  d->y_at = (d->conv.halves ? 3 : 2) * d->scale_at;
  d->planes_at =
      d->y_at + (int64_t)hn_round_up(2 * (size_t)(d->y_vectors ? d->channels : d->coded) * sizeof(float), 64);
  d->scratch_at = d->planes_at + (d->conv.halves ? 2 * plane_bytes(d) : 0);
}

static bool finish(const hone_machine *m, hn_sums_step *d, hone_reason *why) {
  const hn_int8_ops *o = hn_int8_find(d->isa);
  const char *reason = "";
  if (!o) return hn_refuse(why, "no int8 kernel for %s", hn_isa_name(d->isa));
  if (!hn_int8_plan(&d->conv, o, m->threads, m->l2, &reason)) return hn_refuse(why, "%s", reason);
  d->values = (int64_t)hn_int8_columns(&d->conv) * d->conv.groups;
  lay_out(d, hn_int8_weights(&d->conv) * (size_t)d->conv.groups);
  return true;
}

bool hn_sums_describe_conv(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why) {
  hn_conv_attr a;
  memset(d, 0, sizeof *d);
  if (!conv_attr(s, &a, why) || !begin(s, m, a.groups * a.cout, false, d, why)) return false;
  hn_int8_conv *c = &d->conv;
  if (c->halves && a.cin == 1 && a.groups > 1)
    return hn_refuse(why, "one filter a channel on codes of 16 bits");
  c->batch = a.x.batch, c->groups = a.groups, c->cin = a.cin, c->cout = a.cout;
  c->in_pitch = a.x.view.pixel, c->out_pitch = a.y.view.pixel * out_bytes(d);
  c->in_bytes = hone_desc_count(desc_of(s, HN_SUMS_X));
  c->wide = 1, c->flip = desc_of(s, HN_SUMS_X)->dtype == HONE_DTYPE_I8;
  for (int i = 0; i < 3; i++) {
    c->in[i] = a.x.size[i], c->out[i] = a.y.size[i], c->kernel[i] = a.kernel[i], c->stride[i] = a.stride[i];
    c->dilation[i] = a.dilation[i], c->pad[i] = a.pad[i];
  }
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  d->w_column = a.cin * taps, d->w_channel = taps, d->w_tap = 1;
  return finish(m, d, why);
}

bool hn_sums_describe_depthwise(const hone_step *s, const hone_machine *m, hn_sums_step *d,
                                hone_reason *why) {
  hn_conv_attr a;
  memset(d, 0, sizeof *d);
  d->depthwise = 1;
  if (!conv_attr(s, &a, why) || !begin(s, m, a.groups * a.cout, false, d, why)) return false;
  if (a.cin != 1 || a.cout != 1)
    return hn_refuse(why, "not depthwise: %lld inputs and %lld outputs a group", (long long)a.cin,
                     (long long)a.cout);
  if (!hn_conv_is_picture(&a)) return hn_refuse(why, "three spatial dimensions");
  if (a.kernel[1] > HN_DW8_KERNEL_ROWS) return hn_refuse(why, "more than %d kernel rows", HN_DW8_KERNEL_ROWS);
  if (!hn_dw8_find(d->isa)) return hn_refuse(why, "no int8 depthwise kernel for %s", hn_isa_name(d->isa));
  hn_dw8 *w = &d->dw;
  w->batch = a.x.batch, w->channels = a.groups;
  for (int i = 0; i < 2; i++) {
    w->in[i] = a.x.size[i + 1], w->out[i] = a.y.size[i + 1], w->kernel[i] = a.kernel[i + 1];
    w->stride[i] = a.stride[i + 1], w->dilation[i] = a.dilation[i + 1], w->pad[i] = a.pad[i + 1];
  }
  w->in_pitch = a.x.view.pixel, w->out_pitch = a.y.view.pixel * out_bytes(d);
  w->wide = 1, w->flip = desc_of(s, HN_SUMS_X)->dtype == HONE_DTYPE_I8;
  hn_dw8_plan(w, m->threads, m->l1);
  d->values = (int64_t)hn_dw8_values(w);
  lay_out(d, hn_dw8_weights(w));
  return true;
}

bool hn_sums_describe_matmul(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why) {
  const hone_tensor_desc *x = desc_of(s, HN_SUMS_X), *w = desc_of(s, HN_SUMS_W), *y = &s->output[0].desc;
  memset(d, 0, sizeof *d);
  if (x->rank < 2 || w->rank < 2) return hn_refuse(why, "an operand is a vector");
  const bool turned = hone_node_int(s->node, "transB", 0) != 0;
  const int64_t k = w->dim[w->rank - 2 + turned], n = w->dim[w->rank - 1 - turned];
  if (!begin(s, m, n, true, d, why)) return false;
  if (x->layout != HONE_LAYOUT_ROW_MAJOR || y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major");
  if (k < 1 || hone_desc_count(w) != k * n) return hn_refuse(why, "a batch of weights");
  if (x->dim[x->rank - 1] != k) return hn_refuse(why, "inner dimensions differ");
  hn_int8_conv *c = &d->conv;
  c->batch = c->groups = 1, c->cin = c->in_pitch = k, c->cout = n, c->out_pitch = n * out_bytes(d);
  c->in_bytes = hone_desc_count(x);
  for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
  c->in[2] = c->out[2] = hone_desc_count(x) / k;
  c->wide = 1, c->flip = x->dtype == HONE_DTYPE_I8;
  d->w_channel = turned ? 1 : n, d->w_column = turned ? k : 1;
  return finish(m, d, why);
}

/* ---------------------------------------------------------------- the tactic's functions */

static bool describe(const hone_step *s, const hone_machine *m, const hn_sums_step_config *config,
                     hn_sums_step *d, hone_reason *why) {
  return config->describe(s, m, d, why);
}

static double cost_of(const hn_sums_step *d, const hone_step *s, const hone_machine *m) {
  const double peak = m->peak_flops > 0 ? m->peak_flops : 1e10,
               cache = m->cache_bytes > 0 ? m->cache_bytes : 1e10;
  const double count = (double)hone_desc_count(&s->output[0].desc);
  const double out = d->coded ? 16 * count / peak : 3.0 * count / cache; /* f32 instead of a byte */
  return out + hn_epilogue_seconds(s, m, true) +
         (d->depthwise ? hn_dw8_seconds(&d->dw, hn_dw8_find(d->isa), peak, cache)
                       : hn_int8_seconds(&d->conv, hn_int8_find(d->isa), peak, cache));
}

static void need_of(const hn_sums_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  n->blob_bytes = (size_t)d->bytes;
  n->packed = 1u << hn_sums_at(s, HN_SUMS_W);
  n->workspace_bytes =
      (size_t)d->scratch_at +
      (d->depthwise ? hn_round_up(hn_dw8_line(&d->dw), 64) + hn_dw8_scratch(&d->dw) * m->threads
                    : hn_int8_workspace(&d->conv, hn_int8_find(d->isa), m->threads));
}

/* Weights that may need offsets are not shared: whether they do, packing finds out. */
size_t hn_sums_step_shared(const hone_step *s, const hone_machine *m, const hn_sums_step_config *config,
                           uint64_t *key) {
  hn_sums_step d;
  hone_reason why = {""};
  if (!config->describe(s, m, &d, &why) || d.depthwise || d.conv.offsets) return 0;
  *key = hn_int8_order(&d.conv);
  return (size_t)d.sums_at | HN_SHARED_PACKED;
}

static hone_status fill(hn_sums_step *d, const hone_step *s, void *blob, hone_error *error) {
  hn_weight_codes codes;
  hone_reason why = {""};
  if (!codes_of(s, d->channels, &codes, &why)) return hn_not_described(s, &why, error);
  unsigned char *base = blob;
  if (s->own_only) {
    memcpy(base, d, sizeof *d);
    return HONE_OK;
  }
  int32_t *sums = (int32_t *)(void *)(base + d->sums_at), *offsets = (int32_t *)(void *)(base + d->offset_at);
  int8_t *weights = (int8_t *)(void *)(base + d->weights_at);
  memset(sums, 0, (size_t)d->values * sizeof *sums);
  memset(offsets, 0, (size_t)d->values * sizeof *offsets);
  if (d->depthwise) {
    if (d->dw.parts > 1) hn_dw8_split(&d->dw, hn_dw8_parts(&d->dw, &codes));
    hn_dw8_pack(&d->dw, &codes, weights, sums);
    memcpy(base, d, sizeof *d);
    return HONE_OK;
  }
  const hn_int8_conv *c = &d->conv;
  const size_t columns = hn_int8_columns(c);
  bool any = false;
  for (size_t g = 0; g < (size_t)c->groups; g++)
    any |= hn_int8_pack(c, hn_int8_find(d->isa), &codes, (int64_t)g, d->w_column, d->w_tap, d->w_channel,
                        weights + g * hn_int8_weights(c), sums + g * columns, offsets + g * columns);
  d->conv.offsets = any; /* or all weights fit without */
  memcpy(base, d, sizeof *d);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_sums_step, hn_sums_step, fill)

/* The output channel of value i in the kernels' order; -1: none. */
static int64_t channel_of(const hn_sums_step *d, int64_t i) {
  if (d->depthwise) return hn_dw8_value_channel(&d->dw, i);
  const int64_t columns = (int64_t)hn_int8_columns(&d->conv), j = i % columns;
  return j < d->conv.cout ? i / columns * d->conv.cout + j : -1;
}

/* This run's zero point taken off the sums, and its scales where there are some. */
static void set_values(const hn_sums_step *d, int32_t zero, const float *scale, int32_t *bias, float *scales,
                       const int32_t *sums) {
  for (int64_t i = 0; i < d->values; i++) {
    const int64_t c = channel_of(d, i);
    bias[i] = c < 0 ? 0 : (int32_t)(0u - (uint32_t)zero * (uint32_t)sums[i]);
    if (scale) scales[i] = c < 0 ? 0 : scale[d->vectors && !HN_FAULT("sums_scale") ? c : 0];
  }
}

/* The zero points as floats, and what the scales are divided into, in the workspace. The epilogue goes along
 * where it can. */
static hn_code_rows result_codes(const hn_sums_step *d, const hone_step_run *r, hn_epilogue *e) {
  const hone_step_tensor *zero = y_zero_of(r->step);
  float *zeros = (float *)(void *)((unsigned char *)r->workspace + d->y_at);
  const bool is_signed = r->step->output[0].desc.dtype == HONE_DTYPE_I8;
  const void *from = zero ? r->in[HN_SUMS_Y_ZERO] : NULL;
  const int64_t count = d->y_vectors ? d->channels : 1;
  for (int64_t i = 0; i < count; i++)
    zeros[i] = !from ? 0 : is_signed ? (float)((const int8_t *)from)[i] : (float)((const uint8_t *)from)[i];
  hn_code_rows c = {.ops = hn_quantize_find(d->isa),
                    .scale = r->in[HN_SUMS_Y_SCALE],
                    .zero = zeros,
                    .vectors = d->y_vectors != 0,
                    .is_signed = is_signed};
  hn_code_rows_join(&c, e, d->isa, zeros + count, count);
  return c;
}

/* The input's zero point, as codes without a sign have it. */
static int32_t input_zero(const hone_step_run *r) {
  const void *z = has(r->step, HN_SUMS_X_ZERO) ? r->in[hn_sums_at(r->step, HN_SUMS_X_ZERO)] : NULL;
  switch (desc_of(r->step, HN_SUMS_X)->dtype) {
  case HONE_DTYPE_I8: return (z ? *(const int8_t *)z : 0) + 128;
  case HONE_DTYPE_I16: return (z ? *(const int16_t *)z : 0) + 32768;
  case HONE_DTYPE_U16: return z ? *(const uint16_t *)z : 0;
  default: return z ? *(const uint8_t *)z : 0;
  }
}

enum { SPLIT = 16384 }; /* codes of a task */

static void split_some(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const hn_sums_step *d = r->blob;
  uint8_t *high = (uint8_t *)r->workspace + d->planes_at;
  const int64_t at = i * SPLIT, left = d->conv.in_bytes - at;
  (void)thread;
  hn_quantize_find(d->isa)->split(
      high + at, high + plane_bytes(d) + at, (const uint16_t *)r->in[HN_SUMS_X] + at,
      (size_t)(left < SPLIT ? left : SPLIT), desc_of(r->step, HN_SUMS_X)->dtype == HONE_DTYPE_I16);
}

/* Codes of 16 bits as two inputs of bytes. */
static void split_codes(const hn_sums_step *d, const hone_step_run *r) {
  const int64_t tasks = (d->conv.in_bytes + SPLIT - 1) / SPLIT;
  if (tasks == 1)
    split_some((void *)(uintptr_t)r, 0, 0);
  else
    r->parallel(r->pool, tasks, split_some, (void *)(uintptr_t)r);
}

hone_status hn_sums_step_run(const hone_step_run *r, const hn_sums_step_config *config, hone_error *error) {
  (void)config, (void)error;
  const hn_sums_step *d = r->blob;
  const unsigned char *shared = hn_shared_at(r, d->sums_at);
  unsigned char *work = r->workspace;
  const int32_t zero = input_zero(r);
  int32_t *bias = (int32_t *)(void *)(work + d->bias_at);
  float *scale = (float *)(void *)(work + d->scale_at);
  const int8_t *weights = (const int8_t *)(const void *)(shared + (d->weights_at - d->sums_at));
  hn_epilogue e;
  const int32_t *sums = (const int32_t *)(const void *)shared;
  int32_t *bias_low = d->conv.halves ? (int32_t *)(void *)(work + d->low_at) : NULL;
  set_values(d,
             HN_FAULT("sums_zero") ? 0
             : d->conv.halves      ? zero >> 8
                                   : zero,
             d->conv.whole ? NULL : r->in[HN_SUMS_SCALE], bias, scale, sums);
  if (bias_low) set_values(d, HN_FAULT("sums_zero_low") ? 0 : zero & 255, NULL, bias_low, NULL, sums);
  hn_epilogue_bind_rows(r->step, d->isa, d->matrix != 0, bias_of(r->step) ? r->in[HN_SUMS_BIAS] : NULL, r->in,
                        &e);
  const hn_code_rows codes = d->coded ? result_codes(d, r, &e) : (hn_code_rows){0};
  if (d->depthwise) {
    hn_dw8 w = d->dw;
    uint8_t *line = work + d->scratch_at;
    w.padding = zero;
    memset(line, zero ^ (w.flip ? 0x80 : 0), hn_dw8_line(&w));
    const hn_dw8_args a = {.d = &w,
                           .ops = hn_dw8_find(d->isa),
                           .x = r->in[HN_SUMS_X],
                           .line = line,
                           .w = weights,
                           .bias = bias,
                           .scale = scale,
                           .epilogue = &e,
                           .codes = &codes,
                           .scratch = line + hn_round_up(hn_dw8_line(&w), 64),
                           .y = r->out[0]};
    hn_dw8_exec(&a, r->parallel, r->pool);
    return HONE_OK;
  }
  hn_int8_conv c = d->conv;
  c.padding = zero;
  const uint8_t *x = r->in[HN_SUMS_X], *low = NULL;
  if (c.halves) {
    c.padding = zero >> 8, c.padding_low = zero & 255;
    split_codes(d, r);
    x = work + d->planes_at, low = x + plane_bytes(d);
  }
  const hn_int8_args a = {.conv = &c,
                          .ops = hn_int8_find(d->isa),
                          .x = x,
                          .x_low = low,
                          .halves = c.halves ? hn_quantize_find(d->isa) : NULL,
                          .w = weights,
                          .bias = bias,
                          .bias_low = bias_low,
                          .offset = (const int32_t *)(const void *)(shared + (d->offset_at - d->sums_at)),
                          .scale = scale,
                          .epilogue = &e,
                          .codes = &codes,
                          .y = r->out[0],
                          .scratch = work + d->scratch_at};
  hn_int8_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

void hn_sums_step_work(const hone_step *s, const hone_machine *m, const hn_sums_step_config *config,
                       hone_work *work) {
  (void)s, (void)m;
  work->arithmetic =
      config->describe == hn_sums_describe_depthwise ? HONE_ARITHMETIC_INT8_VECTORS : HONE_ARITHMETIC_INT8;
}
