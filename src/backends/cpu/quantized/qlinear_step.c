#include "backends/cpu/quantized/qlinear_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/anchor.h"

/* Behind the head: channels scales (x * w / y), channels zero points of y, channels biases, then the inner
 * blob. */
typedef struct blob_head {
  hn_qlinear_info q;
  int32_t tactic;                      /* index into hn_qlinear.inner */
  int64_t inner_at, bytes;             /* of the blob */
  int64_t y_at, inner_work, workspace; /* of the workspace: f32 x, f32 y, the inner step's */
} blob_head;

static bool is_8bit(hone_dtype t) { return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8; }

static float code_at(const hone_step_tensor *t, int64_t i) {
  return t->desc.dtype == HONE_DTYPE_I8 ? (float)((const int8_t *)t->constant)[i]
                                        : (float)((const uint8_t *)t->constant)[i];
}

static float *scales_of(void *blob) {
  return (float *)(void *)((char *)blob + hn_round_up(sizeof(blob_head), 64));
}

bool hn_qlinear_codes(const hone_tensor_desc *d, hone_reason *why) {
  if (!is_8bit(d->dtype)) return hn_refuse(why, "a tensor is %s, not 8 bits", hone_dtype_name(d->dtype));
  if (!hone_desc_known(d)) return hn_refuse(why, "dimensions are not known");
  if (hone_desc_count(d) == 0) return hn_refuse(why, "an empty tensor");
  if (d->layout != HONE_LAYOUT_ROW_MAJOR &&
      !(d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch == d->dim[1]))
    return hn_refuse(why, "a tensor is not dense");
  return true;
}

bool hn_qlinear_ends_of(const hone_step *s, hn_qlinear_ends *e, hone_reason *why) {
  if (s->n_anchor_inputs < 8 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *y = &s->output[0].desc;
  if (!hn_qlinear_codes(x, why) || !hn_qlinear_codes(y, why)) return false;
  e->x_signed = x->dtype == HONE_DTYPE_I8, e->y_signed = y->dtype == HONE_DTYPE_I8;
  const bool known = hn_qlinear_param(s, HN_QLINEAR_X_SCALE, &e->x_scale, why) &&
                     hn_qlinear_param(s, HN_QLINEAR_X_ZERO, &e->x_zero, why) &&
                     hn_qlinear_param(s, HN_QLINEAR_Y_SCALE, &e->y_scale, why) &&
                     hn_qlinear_param(s, HN_QLINEAR_Y_ZERO, &e->y_zero, why);
  if (HN_FAULT("qlinear_next_zero")) e->y_zero++;
  return known;
}

/* Parameters of the input: constants, one value or `channels` of them. */
static bool param_fits(const hone_step *s, uint32_t k, int64_t channels, bool scale, hone_reason *why) {
  if (!scale && !hn_step_has(s, k)) return true;
  if (!hn_step_has(s, k) || !s->input[k].constant) return hn_refuse(why, "input %u is not constant", k);
  const hone_tensor_desc *d = &s->input[k].desc;
  const int64_t n = hone_desc_count(d);
  if (scale ? d->dtype != HONE_DTYPE_F32 : !is_8bit(d->dtype))
    return hn_refuse(why, "input %u is %s", k, hone_dtype_name(d->dtype));
  if (n != 1 && (n != channels || d->rank != 1))
    return hn_refuse(why, "input %u has not one value, nor one a channel", k);
  return true;
}

bool hn_qlinear_param(const hone_step *s, uint32_t k, float *out, hone_reason *why) {
  const bool scale = k == HN_QLINEAR_X_SCALE || k == HN_QLINEAR_W_SCALE || k == HN_QLINEAR_Y_SCALE;
  if (!param_fits(s, k, 1, scale, why)) return false;
  *out = !hn_step_has(s, k) ? 0 : scale ? *(const float *)s->input[k].constant : code_at(&s->input[k], 0);
  return true;
}

/* The weights' zero point of a channel. */
static float w_zero(const hone_step *s, int64_t channel) {
  if (!hn_step_has(s, HN_QLINEAR_W_ZERO)) return 0;
  const hone_step_tensor *z = &s->input[HN_QLINEAR_W_ZERO];
  return code_at(z, hone_desc_count(&z->desc) == 1 ? 0 : channel);
}

enum { TOGETHER = 64 }; /* codes less a zero point whose sum fits 16 bits, of which compilers make vectors */

/* Sum of the distances of TOGETHER codes from one: processors have an instruction for it, which compilers
 * take where they do not know the one. */
static __attribute__((noinline)) uint32_t distance(const uint8_t *code, uint8_t flip, uint8_t from) {
  uint32_t sum = 0;
  for (int i = 0; i < TOGETHER; i++) {
    const uint8_t v = code[i] ^ flip;
    sum += (uint32_t)abs(v - from);
  }
  return sum;
}

/* Adds n weights less a zero point, and their magnitudes. flip: 128 where codes are signed. A zero point of
 * the other type may lie beyond all codes. */
static void add_signs(const uint8_t *from, int64_t n, uint8_t flip, int16_t less, int64_t *sum,
                      int64_t *all) {
  const bool among = less >= 0 && less <= 255;
  for (; n >= TOGETHER; n -= TOGETHER, from += TOGETHER) {
    const int64_t part = (int64_t)distance(from, flip, 0) - TOGETHER * less;
    *sum += part;
    *all += among ? (int64_t)distance(from, flip, (uint8_t)less) : part < 0 ? -part : part;
  }
  for (int64_t i = 0; i < n; i++) {
    const int32_t v = (uint8_t)(from[i] ^ flip) - less;
    *sum += v, *all += v < 0 ? -v : v;
  }
}

enum { WIDE = 1024 }; /* channels that are counted at once */

static inline int16_t magnitude(int16_t v) {
  const int16_t sign = (int16_t)(v >> 15);
  return (int16_t)((v ^ sign) - sign);
}

/* Four rows, a pitch apart, of TOGETHER channels whose weights lie side by side. */
static void add_block(const uint8_t *a, int64_t pitch, uint8_t flip, const int16_t *restrict less,
                      int16_t *restrict sum, int16_t *restrict all) {
  const uint8_t *b = a + pitch, *c = b + pitch, *d = c + pitch;
  for (int i = 0; i < TOGETHER; i++) {
    const int16_t p = (int16_t)((uint8_t)(a[i] ^ flip) - less[i]),
                  q = (int16_t)((uint8_t)(b[i] ^ flip) - less[i]),
                  r = (int16_t)((uint8_t)(c[i] ^ flip) - less[i]),
                  s = (int16_t)((uint8_t)(d[i] ^ flip) - less[i]);
    sum[i] = (int16_t)(sum[i] + p + q + r + s);
    all[i] = (int16_t)(all[i] + magnitude(p) + magnitude(q) + magnitude(r) + magnitude(s));
  }
}

/* One row of n channels. */
static void add_row(const uint8_t *from, int64_t n, uint8_t flip, const int16_t *less, int16_t *sum,
                    int16_t *all) {
  for (int64_t i = 0; i < n; i++) {
    const int16_t v = (int16_t)((uint8_t)(from[i] ^ flip) - less[i]);
    sum[i] = (int16_t)(sum[i] + v), all[i] = (int16_t)(all[i] + magnitude(v));
  }
}

/* The same of up to WIDE channels whose weights lie side by side, in rows a pitch apart. Memory is read from
 * end to end: a few channels of all rows at a time would wait for each line. */
static void add_matrix(const uint8_t *from, int64_t rows, int64_t pitch, uint8_t flip, const int16_t *less,
                       int64_t channels, int64_t *sum, int64_t *all) {
  int16_t part[WIDE], part_all[WIDE];
  const int64_t blocks = channels / TOGETHER * TOGETHER;
  while (rows > 0) {
    int64_t left = hn_min(rows, TOGETHER);
    rows -= left;
    memset(part, 0, sizeof part), memset(part_all, 0, sizeof part_all);
    for (; left >= 4; left -= 4, from += 4 * pitch) {
      for (int64_t i = 0; i < blocks; i += TOGETHER)
        add_block(from + i, pitch, flip, less + i, part + i, part_all + i);
      for (int r = 0; r < 4; r++)
        add_row(from + r * pitch + blocks, channels - blocks, flip, less + blocks, part + blocks,
                part_all + blocks);
    }
    for (; left > 0; left--, from += pitch) add_row(from, channels, flip, less, part, part_all);
    for (int64_t i = 0; i < channels; i++) sum[i] += part[i], all[i] += part_all[i];
  }
}

/* Of up to WIDE channels: every plan reads all of a model's weights here. */
static void count_signs(const hn_qlinear *q, const hone_step *s, const hn_qlinear_info *h, int64_t first,
                        int64_t channels, int64_t sum[WIDE], int64_t all[WIDE]) {
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const int64_t per = q->per_channel(s), stride = per * h->channels, n = hone_desc_count(&w->desc);
  const uint8_t flip = w->desc.dtype == HONE_DTYPE_I8 ? 128 : 0; /* i8 as u8 with another zero point */
  const uint8_t *from = (const uint8_t *)w->constant + first * per;
  int16_t less[WIDE];
  for (int64_t c = 0; c < channels; c++) {
    sum[c] = all[c] = 0;
    less[c] = (int16_t)(w_zero(s, first + c) + (float)flip);
  }
  if (per == 1) {
    add_matrix(from, n / stride, stride, flip, less, channels, sum, all);
    return;
  }
  for (int64_t at = 0; at < n / stride; at++)
    for (int64_t c = 0; c < channels; c++)
      add_signs(from + at * stride + c * per, per, flip, less[c], &sum[c], &all[c]);
}

/* Whether no partial sum, in whatever order, reaches 2^24: the largest are those of one sign. What the types
 * alone show need not be counted. */
static bool sums_fit(const hn_qlinear *q, const hone_step *s, const blob_head *h, hone_reason *why) {
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const bool is_signed = w->desc.dtype == HONE_DTYPE_I8;
  const double lo = (h->q.x_signed ? -128 : 0) - (double)h->q.x_zero,
               hi = (h->q.x_signed ? 127 : 255) - (double)h->q.x_zero;
  const int64_t products = hone_desc_count(&w->desc) / h->q.channels;
  /* A zero point may be of the other type of 8 bits: -128 - 255. */
  const double widest = hn_step_has(s, HN_QLINEAR_W_ZERO) ? 383 : is_signed ? 128 : 255;
  const int32_t *biases = h->q.biased ? s->input[HN_QLINEAR_BIAS].constant : NULL;
  int64_t sum[WIDE], all[WIDE];
  for (int64_t first = 0; first < h->q.channels; first += WIDE) {
    const int64_t channels = hn_min(h->q.channels - first, WIDE);
    bool counted = false;
    for (int64_t c = 0; c < channels; c++) {
      const double bias = biases ? fabs((double)biases[first + c]) : 0;
      if ((double)products * widest * fmax(hi, -lo) + bias < 16777216) continue;
      if (!counted) count_signs(q, s, &h->q, first, channels, sum, all);
      counted = true;
      const int64_t more = (all[c] + sum[c]) / 2, less = (all[c] - sum[c]) / 2;
      const double plus = (double)more, minus = (double)less;
      /* lo <= 0 <= hi: codes on both sides of their zero point. */
      const double up = plus * hi - minus * lo + bias, down = minus * hi - plus * lo + bias;
      if (up >= 16777216 || down >= 16777216)
        return hn_refuse(why, "sums may reach %.3g, beyond the integers of f32", up > down ? up : down);
    }
  }
  return true;
}

/* The f32 step inside. w, bias: constants, of which tactics look only at whether they are there until
 * prepack. */
static void make_inner(const char *anchor, const hone_step *s, const void *w, const void *bias,
                       hn_qlinear_inner *t) {
  memset(t, 0, sizeof *t);
  if (!strcmp(anchor, "MatMul")) bias = NULL; /* it has none */
  t->in[0].desc = s->input[HN_QLINEAR_X].desc;
  t->in[1] = (hone_step_tensor){s->input[HN_QLINEAR_W].desc, w};
  t->out.desc = s->output[0].desc;
  t->in[0].desc.dtype = t->in[1].desc.dtype = t->out.desc.dtype = HONE_DTYPE_F32;
  if (bias) {
    t->in[2] = (hone_step_tensor){s->input[HN_QLINEAR_BIAS].desc, bias};
    t->in[2].desc.dtype = HONE_DTYPE_F32;
  }
  t->step = (hone_step){HONE_DESC_HEAD(hone_step),
                        .anchor = anchor,
                        .name = s->name,
                        .node = s->node,
                        .math = HONE_MATH_BF16, /* exact here */
                        .n_inputs = bias ? 3 : 2,
                        .n_anchor_inputs = bias ? 3 : 2,
                        .input = t->in,
                        .n_outputs = 1,
                        .output = &t->out,
                        .cost = s->cost};
  t->step.cost.bytes *= 4; /* codes as floats */
}

static bool has_table(const hone_step *s) { return strcmp(s->anchor, "QLinearConvTable") == 0; }

const uint8_t *hn_qlinear_table(const hone_step_run *r) {
  return has_table(r->step) ? r->in[HN_QLINEAR_TABLE] : NULL;
}

/* The type of the convolution's codes: in front of a table the zero point says it. */
static bool read_table(const hone_step *s, hn_qlinear_info *h, hone_reason *why) {
  if (!has_table(s)) return true;
  if (s->n_anchor_inputs <= HN_QLINEAR_TABLE || !hn_step_has(s, HN_QLINEAR_Y_ZERO) ||
      !hn_step_has(s, HN_QLINEAR_TABLE))
    return hn_refuse(why, "inputs are missing");
  const hone_tensor_desc *t = &s->input[HN_QLINEAR_TABLE].desc, *codes = &s->input[HN_QLINEAR_Y_ZERO].desc;
  if (t->dtype != s->output[0].desc.dtype || hone_desc_count(t) != 256)
    return hn_refuse(why, "the table has not one code of the output for each of 256");
  h->y_signed = codes->dtype == HONE_DTYPE_I8;
  return hn_qlinear_codes(codes, why);
}

bool hn_qlinear_read(const char *anchor, int64_t per, const hone_step *s, const hone_machine *m,
                     hn_qlinear_info *h, hn_qlinear_inner *t, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (s->n_anchor_inputs < 8 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *y = &s->output[0].desc;
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  if (!hn_qlinear_codes(x, why) || !hn_qlinear_codes(y, why) || !hn_qlinear_codes(&w->desc, why))
    return false;
  if (!w->constant) return hn_refuse(why, "weights are not constant");
  h->isa = hn_isa_of(m->isa);
  h->x_signed = x->dtype == HONE_DTYPE_I8, h->y_signed = y->dtype == HONE_DTYPE_I8;
  h->x_count = hone_desc_count(x), h->y_count = hone_desc_count(y);
  if (!read_table(s, h, why)) return false;
  const int64_t w_count = hone_desc_count(&w->desc);
  if (per < 1) return hn_refuse(why, "the operator's attributes or ranks are not supported");
  /* Channels of the memory's rows: of Conv (channels-last) dimension 1, of matrices the last one. */
  const bool conv = hn_anchor_named(anchor, s->node).channels;
  h->channels = conv ? y->dim[1] : y->rank ? y->dim[y->rank - 1] : 1;
  if (w_count % per || h->channels < 1 || w_count / per % h->channels)
    return hn_refuse(why, "weights do not fit the output's channels");
  float one;
  for (uint32_t k = HN_QLINEAR_X_SCALE; k <= HN_QLINEAR_Y_ZERO; k++)
    if (k != HN_QLINEAR_W && k != HN_QLINEAR_W_SCALE && k != HN_QLINEAR_W_ZERO &&
        !hn_qlinear_param(s, k,
                          k == HN_QLINEAR_X_ZERO   ? &h->x_zero
                          : k == HN_QLINEAR_Y_ZERO ? &h->y_zero
                                                   : &one,
                          why))
      return false;
  if (!param_fits(s, HN_QLINEAR_W_SCALE, h->channels, true, why) ||
      !param_fits(s, HN_QLINEAR_W_ZERO, h->channels, false, why))
    return false;
  h->vectors = hone_desc_count(&s->input[HN_QLINEAR_W_SCALE].desc) != 1;
  h->biased = s->n_anchor_inputs > HN_QLINEAR_BIAS && hn_step_has(s, HN_QLINEAR_BIAS);
  const hone_step_tensor *bias = h->biased ? &s->input[HN_QLINEAR_BIAS] : NULL;
  if (bias &&
      (!bias->constant || bias->desc.dtype != HONE_DTYPE_I32 || hone_desc_count(&bias->desc) != h->channels))
    return hn_refuse(why, "the bias is no constant i32 with one value a channel");
  make_inner(anchor, s, w->constant, bias ? bias->constant : NULL, t);
  return true;
}

void hn_qlinear_scales(const hone_step *s, const hn_qlinear_info *h, float *scale) {
  const float x_scale = *(const float *)s->input[HN_QLINEAR_X_SCALE].constant,
              y_scale = *(const float *)s->input[HN_QLINEAR_Y_SCALE].constant;
  const float *w_scale = s->input[HN_QLINEAR_W_SCALE].constant;
  for (int64_t c = 0; c < h->channels; c++)
    scale[c] = x_scale * w_scale[h->vectors && !HN_FAULT("qlinear_scale") ? c : 0] / y_scale;
}

/* Whether the inner tactic has the weights in its blob: it is run without them. */
static bool packs_weights(const struct hone_tactic_desc *inner, const hn_qlinear_inner *t,
                          const hone_machine *m, hone_reason *why) {
  hone_tactic_need need = {0};
  if (inner->need && inner->need(&t->step, m, &need, NULL) == HONE_OK && need.packed >> 1 & 1) return true;
  return hn_refuse(why, "%s does not pack such weights", inner->name);
}

static bool describe(const hn_qlinear *q, const hone_step *s, const hone_machine *m, blob_head *h,
                     hn_qlinear_inner *t, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (!hn_qlinear_read(q->anchor, q->per_channel(s), s, m, &h->q, t, why)) return false;
  if (!hn_quantize_find(h->q.isa))
    return hn_refuse(why, "no quantisation kernel for %s", hn_isa_name(h->q.isa));
  if (h->q.biased && t->step.n_inputs < 3) return hn_refuse(why, "a product of f32 that takes no bias");
  double best = 0;
  h->tactic = -1;
  for (int32_t i = 0; q->inner[i]; i++) {
    if (!q->inner[i]->accepts(&t->step, m, why) || !packs_weights(q->inner[i], t, m, why)) continue;
    const double seconds = q->inner[i]->cost(&t->step, m);
    if (h->tactic < 0 || seconds < best) best = seconds, h->tactic = i;
  }
  return h->tactic >= 0;
}

bool hn_qlinear_accepts(const hone_step *s, const hone_machine *m, const hn_qlinear_config *config,
                        hone_reason *why) {
  const hn_qlinear *q = config->kind;
  blob_head h;
  hn_qlinear_inner t;
  return describe(q, s, m, &h, &t, why) && sums_fit(q, s, &h, why);
}

double hn_qlinear_cost(const hone_step *s, const hone_machine *m, const hn_qlinear_config *config) {
  const hn_qlinear *q = config->kind;
  blob_head h;
  hn_qlinear_inner t;
  if (!describe(q, s, m, &h, &t, NULL)) return HN_REFUSED_SECONDS;
  const double n = (double)h.q.x_count + (double)h.q.y_count;
  return q->inner[h.tactic]->cost(&t.step, m) + hn_step_seconds(m, 8 * n, 5 * n, 0.5);
}

static hone_status place(const hn_qlinear *q, const hone_step *s, const hone_machine *m, blob_head *h,
                         hn_qlinear_inner *t, hone_error *error) {
  hone_reason why = {""};
  hone_tactic_need need = {0};
  if (!describe(q, s, m, h, t, &why)) return hn_not_described(s, &why, error);
  hone_status status = q->inner[h->tactic]->need(&t->step, m, &need, error);
  if (status != HONE_OK) return status;
  h->inner_at =
      (int64_t)hn_round_up(hn_round_up(sizeof *h, 64) + (size_t)h->q.channels * 3 * sizeof(float), 64);
  h->bytes = h->inner_at + (int64_t)need.blob_bytes;
  h->y_at = (int64_t)hn_round_up((size_t)h->q.x_count * sizeof(float), 64);
  h->inner_work = h->y_at + (int64_t)hn_round_up((size_t)h->q.y_count * sizeof(float), 64);
  h->workspace = h->inner_work + (int64_t)need.workspace_bytes;
  return HONE_OK;
}

hone_status hn_qlinear_need(const hone_step *s, const hone_machine *m, const hn_qlinear_config *config,
                            hone_tactic_need *need, hone_error *error) {
  blob_head h;
  hn_qlinear_inner t;
  hone_status status = place(config->kind, s, m, &h, &t, error);
  if (status != HONE_OK) return status;
  need->blob_bytes = (size_t)h.bytes;
  need->packed = 1u << HN_QLINEAR_W;
  need->workspace_bytes = (size_t)h.workspace;
  return HONE_OK;
}

hone_status hn_qlinear_prepack(const hone_step *s, const hone_machine *m, const hn_qlinear_config *config,
                               void *blob, hone_error *error) {
  const hn_qlinear *q = config->kind;
  blob_head *h = blob;
  hn_qlinear_inner t;
  hone_status status = place(q, s, m, h, &t, error);
  if (status != HONE_OK) return status;
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const int64_t n = hone_desc_count(&w->desc), per = q->per_channel(s);
  float *real = hn_malloc((size_t)n * sizeof *real), *scale = scales_of(blob), *zero = scale + h->q.channels,
        *bias = zero + h->q.channels;
  if (!real) return hn_fail_memory(error, (size_t)n * sizeof *real, "quantised weights");
  hn_qlinear_scales(s, &h->q, scale);
  for (int64_t c = 0; c < h->q.channels; c++) {
    zero[c] = h->q.y_zero + (HN_FAULT("qlinear_next_zero") ? 1 : 0);
    bias[c] = h->q.biased ? (float)((const int32_t *)s->input[HN_QLINEAR_BIAS].constant)[c] : 0;
  }
  for (int64_t i = 0; i < n; i++) real[i] = code_at(w, i) - w_zero(s, i / per % h->q.channels);
  make_inner(q->anchor, s, real, h->q.biased ? bias : NULL, &t);
  const struct hone_tactic_desc *inner = q->inner[h->tactic];
  if (inner->prepack) status = inner->prepack(&t.step, m, (char *)blob + h->inner_at, error);
  hn_free(real);
  return status;
}

/* ------------------------------------------------------------------ running */

typedef struct job {
  const blob_head *h;
  const struct hn_quantize_ops *ops;
  const void *from;
  void *to;
  const float *scale; /* channels scales, channels zero points */
  int64_t count, chunk, row;
} job;

static void decode(void *arg, int64_t i, uint32_t thread) {
  static const float one = 1;
  const job *j = arg;
  const int64_t at = i * j->chunk, n = j->count - at < j->chunk ? j->count - at : j->chunk;
  (void)thread;
  j->ops->dequantize((float *)j->to + at, (const char *)j->from + at, (size_t)n, &one, &j->h->q.x_zero, false,
                     j->h->q.x_signed);
}

static void encode(void *arg, int64_t i, uint32_t thread) {
  const job *j = arg;
  int64_t at = i * j->chunk, end = at + j->chunk < j->count ? at + j->chunk : j->count;
  (void)thread;
  for (; at < end; at += j->row)
    j->ops->requantize((char *)j->to + at, (const float *)j->from + at,
                       (size_t)(end - at < j->row ? end - at : j->row), j->scale,
                       j->scale + (HN_FAULT("qlinear_zero") ? 0 : j->h->q.channels), j->h->q.vectors,
                       j->h->q.y_signed);
}

static void split(const hone_step_run *r, job *j, void (*fn)(void *, int64_t, uint32_t)) {
  const int64_t tasks = hn_div_up(j->count, j->chunk);
  if (tasks == 1)
    fn(j, 0, 0);
  else
    r->parallel(r->pool, tasks, fn, j);
}

hone_status hn_qlinear_run(const hone_step_run *r, const hn_qlinear_config *config, hone_error *error) {
  enum { TASK = 16384 };
  const hn_qlinear *q = config->kind;
  const blob_head *h = r->blob;
  const float *scale = scales_of((void *)(uintptr_t)r->blob);
  char *work = r->workspace;
  hn_qlinear_inner t;
  job j = {h, hn_quantize_find(h->q.isa), r->in[HN_QLINEAR_X], work, NULL, h->q.x_count, TASK, TASK};
  split(r, &j, decode);
  make_inner(q->anchor, r->step, r->step->input[HN_QLINEAR_W].constant,
             h->q.biased ? scale + 2 * h->q.channels : NULL, &t);
  const void *in[] = {work, NULL, h->q.biased ? scale + 2 * h->q.channels : NULL};
  void *out[] = {work + h->y_at};
  hone_step_run inner = {.step = &t.step,
                         .in = in,
                         .out = out,
                         .blob = (const char *)r->blob + h->inner_at,
                         .workspace = work + h->inner_work,
                         .threads = r->threads,
                         .parallel = r->parallel,
                         .pool = r->pool};
  hone_status status = q->inner[h->tactic]->run(&inner, error);
  if (status != HONE_OK) return status;
  j = (job){h, j.ops, work + h->y_at, r->out[0], scale, h->q.y_count, TASK, TASK};
  if (h->q.vectors) {
    j.row = h->q.channels;
    j.chunk = h->q.channels > TASK ? h->q.channels : TASK / h->q.channels * h->q.channels;
  }
  split(r, &j, encode);
  return HONE_OK;
}

/* What the f32 step inside does: it is floats that are multiplied. */
void hn_qlinear_work(const hone_step *s, const hone_machine *m, const hn_qlinear_config *config,
                     hone_work *work) {
  const hn_qlinear *q = config->kind;
  blob_head h;
  hn_qlinear_inner t;
  if (!describe(q, s, m, &h, &t, NULL)) return;
  if (q->inner[h.tactic]->work) q->inner[h.tactic]->work(&t.step, m, work);
  if (work->arithmetic == HONE_ARITHMETIC_OF_DTYPE) work->arithmetic = HONE_ARITHMETIC_F32;
}
