#include "backends/cuda/quantized/codes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/quantized/sum_constants.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

bool hn_codes_type(hone_dtype t) { return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8; }

static int32_t code_at(const hone_step_tensor *t, int64_t i) {
  return t->desc.dtype == HONE_DTYPE_I8 ? ((const int8_t *)t->constant)[i]
                                        : ((const uint8_t *)t->constant)[i];
}

static bool is_scale(uint32_t k) {
  return k == HN_QLINEAR_X_SCALE || k == HN_QLINEAR_W_SCALE || k == HN_QLINEAR_Y_SCALE ||
         k == HN_QLINEAR_ADDED_SCALE || k == HN_QLINEAR_SUM_SCALE || k == HN_QLINEAR_SUM_TABLE_SCALE;
}

/* A parameter: a constant of one value, or of `channels`. */
static bool parameter(const hone_step *s, uint32_t k, int64_t channels, hone_reason *why) {
  const bool scale = is_scale(k);
  if (!hn_cuda_has(s, k)) return !scale || hn_refuse(why, "input %u is left out", k);
  const hone_tensor_desc *d = &s->input[k].desc;
  if (!s->input[k].constant) return hn_refuse(why, "input %u is not constant", k);
  if (scale ? d->dtype != HONE_DTYPE_F32 : !hn_codes_type(d->dtype))
    return hn_refuse(why, "input %u is %s", k, hone_dtype_name(d->dtype));
  const int64_t n = hone_desc_count(d);
  if (n != 1 && (n != channels || d->rank != 1))
    return hn_refuse(why, "input %u has not one value, nor one a channel", k);
  return true;
}

bool hn_codes_number(const hone_step *s, uint32_t k, float *out, hone_reason *why) {
  *out = 0;
  if (!parameter(s, k, 1, why)) return false;
  if (hn_cuda_has(s, k))
    *out = is_scale(k) ? *(const float *)s->input[k].constant : (float)code_at(&s->input[k], 0);
  return true;
}

/* Scales that neither overflow nor vanish in products of two. */
static bool ordinary(float f) { return f > 0x1p-100f && f < 0x1p100f; }

bool hn_codes_sum_of(hn_codes_sum *q, hone_reason *why) {
  if (!ordinary(q->a_scale) || !ordinary(q->b_scale) || !ordinary(q->y_scale))
    return hn_refuse(why, "a scale is not positive, or far from 1");
  const double ka = (double)q->a_scale / (double)q->y_scale, kb = (double)q->b_scale / (double)q->y_scale;
  /* Rounding wants results below 2^22. */
  if (ka + kb >= 1024) return hn_refuse(why, "the operands' scales are %.3g of the sum's", ka + kb);
  q->inverse = (float)(1.0 / (double)q->y_scale);
  return true;
}

static bool is_sum(const hone_step *s) {
  return !strcmp(s->anchor, "QLinearConvAdd") || !strcmp(s->anchor, "QLinearMatMulAdd");
}

static bool is_table(const hone_step *s) {
  return !strcmp(s->anchor, "QLinearConvTable") || !strcmp(s->anchor, "QLinearMatMulTable");
}

static const char *anchor_within(const char *anchor) {
  static const char *const names[][2] = {{"QLinearConv", "Conv"},         {"QLinearConvAdd", "Conv"},
                                         {"QLinearConvTable", "Conv"},    {"QLinearGemm", "Gemm"},
                                         {"QLinearMatMul", "MatMul"},     {"QLinearMatMulAdd", "MatMul"},
                                         {"QLinearMatMulTable", "MatMul"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(anchor, names[i][0]) == 0) return names[i][1];
  return NULL;
}

static int64_t weights_a_channel(const hone_step *s, const char *anchor) {
  const hone_tensor_desc *w = &s->input[HN_QLINEAR_W].desc;
  if (strcmp(anchor, "Conv") == 0) return w->rank >= 3 && w->dim[0] > 0 ? hone_desc_count(w) / w->dim[0] : 0;
  if (w->rank < 2) return 0;
  return strcmp(anchor, "Gemm") == 0 && hone_node_int(s->node, "transB", 0) ? w->dim[1] : 1;
}

static int32_t w_zero(const hone_step *s, int64_t channel) {
  if (!hn_cuda_has(s, HN_QLINEAR_W_ZERO)) return 0;
  const hone_step_tensor *z = &s->input[HN_QLINEAR_W_ZERO];
  return code_at(z, hone_desc_count(&z->desc) == 1 ? 0 : channel);
}

/* Whether all weights less their zero points are i8. */
static bool weights_fit(const hone_step *s, const hn_codes *c, hone_reason *why) {
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const int32_t plain = w->desc.dtype == HONE_DTYPE_U8 ? 128 : 0;
  bool all = true;
  for (int64_t i = 0; i < c->channels && all; i++) all = w_zero(s, i) == plain;
  for (int64_t i = 0, n = all ? 0 : hone_desc_count(&w->desc); i < n; i++) {
    const int32_t v = code_at(w, i) - w_zero(s, i / c->per % c->channels);
    if (v < -128 || v > 127) return hn_refuse(why, "a weight less its zero point is %d, beyond i8", v);
  }
  return true;
}

static float y_scale_of(const hone_step *s, const hn_codes *c, int64_t channel) {
  return ((const float *)s->input[HN_QLINEAR_Y_SCALE].constant)[c->stepped ? channel : 0];
}

static bool sums_fit(const hone_step *s, const hn_codes *c, hone_reason *why) {
  const int64_t products = hone_desc_count(&s->input[HN_QLINEAR_W].desc) / c->channels;
  const int32_t *bias = c->biased ? s->input[HN_QLINEAR_BIAS].constant : NULL;
  const float *scale = s->input[HN_QLINEAR_W_SCALE].constant;
  for (int64_t i = 0; i < c->channels; i++) {
    const double most = (double)products * 255 * 128 + (bias ? fabs((double)bias[i]) : 0);
    if (most >= 2147483648.0) return hn_refuse(why, "sums may reach %.3g, beyond 32 bits", most);
    const double result =
        most * (double)c->x_scale * (double)scale[c->vectors ? i : 0] / (double)y_scale_of(s, c, i);
    if (!(fabs(result) < 2147483000.0))
      return hn_refuse(why, "results before saturation may reach %.3g, beyond 32 bits", result);
  }
  return true;
}

static bool table_fits(const hone_step *s, uint32_t k, hone_reason *why) {
  if (s->n_anchor_inputs <= k || !hn_cuda_has(s, HN_QLINEAR_Y_ZERO) || !hn_cuda_has(s, k))
    return hn_refuse(why, "inputs are missing");
  const hone_tensor_desc *t = &s->input[k].desc;
  return (hn_codes_type(t->dtype) && hone_desc_count(t) == 256) ||
         hn_refuse(why, "the table has not one code for each of 256");
}

/* What the other operand is added to: the product's own codes, or those of a table. */
static bool read_summed(const hone_step *s, hn_codes *c, hone_reason *why) {
  hn_codes_sum *q = &c->args.sum;
  c->middle = c->summed = s->input[HN_QLINEAR_Y_ZERO].desc.dtype;
  q->a_scale = c->y_scale, q->a_zero = (float)c->args.zero;
  if (s->n_anchor_inputs <= HN_QLINEAR_SUM_TABLE) return true;
  if (!table_fits(s, HN_QLINEAR_SUM_TABLE, why) || s->n_anchor_inputs < HN_QLINEAR_TABLE_ADD_INPUTS)
    return false;
  c->table = true, c->summed = s->input[HN_QLINEAR_SUM_TABLE].desc.dtype;
  return hn_codes_number(s, HN_QLINEAR_SUM_TABLE_SCALE, &q->a_scale, why) &&
         hn_codes_number(s, HN_QLINEAR_SUM_TABLE_ZERO, &q->a_zero, why);
}

static bool read_sum(const hone_step *s, hn_codes *c, hone_reason *why) {
  hn_codes_sum *q = &c->args.sum;
  if (s->n_anchor_inputs < HN_QLINEAR_ADD_INPUTS || !hn_cuda_has(s, HN_QLINEAR_Y_ZERO) ||
      !hn_cuda_has(s, HN_QLINEAR_ADDED))
    return hn_refuse(why, "inputs are missing");
  const hone_tensor_desc *b = &s->input[HN_QLINEAR_ADDED].desc, *y = &s->output[0].desc;
  if (!hn_codes_type(b->dtype) || !hone_desc_same_dims(b, y) || b->layout != y->layout ||
      memcmp(b->stride, y->stride, (size_t)y->rank * sizeof *y->stride) != 0)
    return hn_refuse(why, "what is added does not lie as the output does");
  c->added = b->dtype;
  return read_summed(s, c, why) && hn_codes_number(s, HN_QLINEAR_ADDED_SCALE, &q->b_scale, why) &&
         hn_codes_number(s, HN_QLINEAR_ADDED_ZERO, &q->b_zero, why) &&
         hn_codes_number(s, HN_QLINEAR_SUM_SCALE, &q->y_scale, why) &&
         hn_codes_number(s, HN_QLINEAR_SUM_ZERO, &q->y_zero, why) && hn_codes_sum_of(q, why);
}

static bool read_table(const hone_step *s, hn_codes *c, hone_reason *why) {
  if (!table_fits(s, HN_QLINEAR_TABLE, why)) return false;
  if (s->input[HN_QLINEAR_TABLE].desc.dtype != s->output[0].desc.dtype)
    return hn_refuse(why, "the table has codes of another type than the output");
  c->middle = s->input[HN_QLINEAR_Y_ZERO].desc.dtype;
  return c->table = true;
}

/* The result's scale and zero point, of all or, of matrices alone, of each column. */
static bool read_result(const hone_step *s, hn_codes *c, hone_reason *why) {
  float zero;
  c->stepped = !strcmp(s->anchor, "QLinearMatMul") && hone_desc_count(&s->input[HN_QLINEAR_Y_SCALE].desc) > 1;
  if (!c->stepped) {
    if (!hn_codes_number(s, HN_QLINEAR_Y_SCALE, &c->y_scale, why) ||
        !hn_codes_number(s, HN_QLINEAR_Y_ZERO, &zero, why))
      return false;
    c->args.zero = (int32_t)zero;
    return true;
  }
  if (!parameter(s, HN_QLINEAR_Y_SCALE, c->channels, why) ||
      !parameter(s, HN_QLINEAR_Y_ZERO, c->channels, why))
    return false;
  c->y_scale = INFINITY;
  for (int64_t i = 0; i < c->channels; i++) c->y_scale = fminf(c->y_scale, y_scale_of(s, c, i));
  return true;
}

static bool read_parameters(const hone_step *s, hn_codes *c, hone_reason *why) {
  float x_zero;
  if (!hn_codes_number(s, HN_QLINEAR_X_SCALE, &c->x_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_X_ZERO, &x_zero, why) || !read_result(s, c, why) ||
      !parameter(s, HN_QLINEAR_W_SCALE, c->channels, why) ||
      !parameter(s, HN_QLINEAR_W_ZERO, c->channels, why))
    return false;
  c->x_zero = (int32_t)x_zero;
  c->vectors = hone_desc_count(&s->input[HN_QLINEAR_W_SCALE].desc) != 1;
  c->biased = hn_cuda_has(s, HN_QLINEAR_BIAS);
  const hone_step_tensor *bias = c->biased ? &s->input[HN_QLINEAR_BIAS] : NULL;
  if (bias &&
      (!bias->constant || bias->desc.dtype != HONE_DTYPE_I32 || hone_desc_count(&bias->desc) != c->channels))
    return hn_refuse(why, "the bias is no constant i32 with one value a channel");
  return true;
}

static void make_inner(const hone_step *s, const char *anchor, hn_codes *c) {
  c->in[0] = s->input[HN_QLINEAR_X], c->in[1] = s->input[HN_QLINEAR_W], c->out = s->output[0];
  c->inner = (hone_step){HONE_DESC_HEAD(hone_step),
                         .anchor = anchor,
                         .name = s->name,
                         .node = s->node,
                         .n_inputs = 2,
                         .n_anchor_inputs = 2,
                         .input = c->in,
                         .n_outputs = 1,
                         .output = &c->out,
                         .cost = s->cost,
                         .math = s->math};
}

bool hn_codes_read(const hone_step *s, hn_codes *c, hone_reason *why) {
  memset(c, 0, sizeof *c);
  const char *anchor = anchor_within(s->anchor);
  if (!anchor || s->n_anchor_inputs < HN_QLINEAR_Y_ZERO + 1 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  if (!hn_cuda_known(s, why)) return false;
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const hone_tensor_desc *y = &s->output[0].desc;
  if (!hn_codes_type(s->input[HN_QLINEAR_X].desc.dtype) || !hn_codes_type(w->desc.dtype) ||
      !hn_codes_type(y->dtype))
    return hn_refuse(why, "a tensor has no codes of 8 bits");
  if (!w->constant) return hn_refuse(why, "weights are not constant");
  if (hone_desc_count(&s->input[HN_QLINEAR_X].desc) == 0 || hone_desc_count(y) == 0)
    return hn_refuse(why, "an empty tensor");
  c->per = weights_a_channel(s, anchor);
  const bool conv = strcmp(anchor, "Conv") == 0;
  c->channels = y->rank < (conv ? 2 : 1) ? 1 : y->dim[conv ? 1 : y->rank - 1];
  const int64_t n = hone_desc_count(&w->desc);
  if (c->per < 1 || c->channels < 1 || n % c->per || n / c->per % c->channels)
    return hn_refuse(why, "weights do not fit the output's channels");
  if (strcmp(anchor, "Gemm") == 0 &&
      (hone_node_float(s->node, "alpha", 1) != 1 || hone_node_float(s->node, "beta", 1) != 1))
    return hn_refuse(why, "alpha or beta is not 1");
  if (strcmp(anchor, "MatMul") == 0 && (w->desc.rank < 2 || n != w->desc.dim[w->desc.rank - 2] * c->channels))
    return hn_refuse(why, "a batch of weights, or a vector");
  c->middle = y->dtype;
  if (!read_parameters(s, c, why)) return false;
  if (is_sum(s) && !read_sum(s, c, why)) return false;
  if (is_table(s) && !read_table(s, c, why)) return false;
  make_inner(s, anchor, c);
  return sums_fit(s, c, why) && weights_fit(s, c, why);
}

/* Bytes that the addition reads. */
static double added_bytes(const hone_step *s) {
  return is_sum(s) ? (double)hone_desc_bytes(&s->input[HN_QLINEAR_ADDED].desc) : 0;
}

bool hn_codes_product(const hone_step *s, hn_codes *c, hn_product *p, hone_reason *why) {
  if (!hn_codes_read(s, c, why) || !hn_product_of_codes(&c->inner, &c->args, p, why)) return false;
  p->bytes += added_bytes(s);
  return true;
}

/* ------------------------------------------------------------------ the blob */

/* Kernels read whole tiles of up to 256 columns. */
static size_t columns_of(const hn_codes *c) { return hn_round_up((size_t)c->channels, 16) + 256; }

hn_codes_blob hn_codes_blob_of(const hn_codes *c, size_t weights) {
  hn_codes_blob b;
  b.bias = hn_round_up(weights, 256);
  b.scale = b.bias + columns_of(c) * sizeof(int32_t);
  b.zeros = b.scale + columns_of(c) * sizeof(float);
  b.outside = b.zeros + (c->stepped ? columns_of(c) * sizeof(int32_t) : 0);
  b.bytes = b.outside + 16 + sizeof(hn_codes_short);
  return b;
}

int8_t *hn_codes_weights(const hone_step *s, hn_codes *c) {
  const hone_step_tensor *w = &s->input[HN_QLINEAR_W];
  const int64_t n = hone_desc_count(&w->desc);
  int8_t *to = hn_malloc((size_t)n);
  if (!to) return NULL;
  for (int64_t i = 0; i < n; i += c->per) {
    const int32_t zero = w_zero(s, i / c->per % c->channels);
    for (int64_t k = i; k < i + c->per; k++) to[k] = (int8_t)(code_at(w, k) - zero);
  }
  c->in[1].desc.dtype = HONE_DTYPE_I8;
  c->in[1].constant = to;
  return to;
}

static int32_t low_code(const hone_step *s) {
  return s->input[HN_QLINEAR_X].desc.dtype == HONE_DTYPE_I8 ? -128 : 0;
}

static uint32_t table_of(const hn_codes *c) {
  return c->added != HONE_DTYPE_NONE ? HN_QLINEAR_SUM_TABLE : HN_QLINEAR_TABLE;
}

void hn_codes_vectors(const hone_step *s, const hn_codes *c, const int8_t *weights, const hn_codes_blob *b,
                      void *blob) {
  int32_t *bias = (int32_t *)(void *)((char *)blob + b->bias);
  float *scale = (float *)(void *)((char *)blob + b->scale);
  int32_t *zeros = (int32_t *)(void *)((char *)blob + b->zeros);
  const float *w_scale = s->input[HN_QLINEAR_W_SCALE].constant;
  const int64_t n = hone_desc_count(&s->input[HN_QLINEAR_W].desc);
  memset((char *)blob + b->outside, c->x_zero & 0xff, 16);
  /* Sums modulo 2^32: they end within 32 bits. What of weights and codes is largest bounds them. */
  double all = 0, result = 0;
  const double far = fmax(fabs((double)low_code(s) - c->x_zero), fabs((double)low_code(s) + 255 - c->x_zero));
  for (int64_t i = 0; i < c->channels; i++) {
    int64_t sum = 0, size = 0;
    for (int64_t k = i * c->per; k < n; k += c->per * c->channels)
      for (int64_t j = k; j < k + c->per; j++)
        sum += weights[j], size += weights[j] < 0 ? -weights[j] : weights[j];
    const int32_t own = c->biased ? ((const int32_t *)s->input[HN_QLINEAR_BIAS].constant)[i] : 0;
    bias[i] = (int32_t)((uint32_t)own - (uint32_t)(c->x_zero - c->taken) * (uint32_t)sum);
    scale[i] = c->x_scale * w_scale[c->vectors ? i : 0] / y_scale_of(s, c, i);
    if (c->stepped && hn_cuda_has(s, HN_QLINEAR_Y_ZERO)) {
      const hone_step_tensor *z = &s->input[HN_QLINEAR_Y_ZERO];
      zeros[i] = code_at(z, hone_desc_count(&z->desc) == 1 ? 0 : i);
    }
    const double bound = (double)size * far + fabs((double)own);
    all = fmax(all, bound), result = fmax(result, bound * fabs((double)scale[i]));
  }
  hn_codes_short way = {.way = all < 4194304 && result < 4194304 - 1024 ? HN_CODES_SHORT : HN_CODES_LONG};
  if (c->added != HONE_DTYPE_NONE)
    way = hn_codes_sum_constants(&c->args.sum, c->summed, c->added, s->output[0].desc.dtype, !c->table);
  memcpy((char *)blob + b->outside + 16, &way, sizeof way);
}

/* ------------------------------------------------------------------ a run */

void hn_codes_bind(const hone_step_run *run, const hn_codes_blob *b, hn_codes *c) {
  const char *blob = run->blob;
  c->args.bias = blob + b->bias, c->args.scale = blob + b->scale, c->args.zeros = blob + b->zeros,
  c->args.outside = blob + b->outside;
  c->args.added = c->added != HONE_DTYPE_NONE ? run->in[HN_QLINEAR_ADDED] : NULL;
  c->args.table = c->table ? run->in[table_of(c)] : NULL;
}

const char *hn_codes_prefix(const hn_codes *c, bool padded, char *text, size_t size) {
  char added[96] = "";
  const bool sum = c->added != HONE_DTYPE_NONE;
  if (sum || c->table)
    snprintf(added, sizeof added, "%s%s%s#define HN_MIDDLE %s\n%s", sum ? "#define HN_ADDED " : "",
             sum ? hone_dtype_name(c->added) : "", sum ? "\n" : "", hone_dtype_name(c->middle),
             c->table ? "#define HN_TABLE 1\n" : "");
  if (sum && c->table)
    snprintf(added + strlen(added), sizeof added - strlen(added), "#define HN_SUMMED %s\n",
             hone_dtype_name(c->summed));
  snprintf(text, size, "%s%s%s", added, c->stepped ? "#define HN_ZEROS 1\n" : "",
           padded && c->x_zero ? "#define HN_OUTSIDE 1\n" : "");
  return text;
}
