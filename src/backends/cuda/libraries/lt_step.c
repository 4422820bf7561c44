#include "backends/cuda/libraries/lt_step.h"

#include <stdint.h>
#include <string.h>

#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"
#include "optimize/step/anchor.h"

enum { BLOB_ALIGN = 256 };

/* ---------------------------------------------------------------- operands */

static void in_blob(hn_lt_step *l, hn_lt_source *x, uint32_t input, int64_t elements) {
  *x = (hn_lt_source){.there = true, .in_blob = true, .input = input, .at = l->blob_bytes};
  l->blob_bytes += hn_round_up((size_t)elements * hone_dtype_size(l->spec.dtype), BLOB_ALIGN);
  l->packed |= 1u << input;
}

static hn_lt_source in_place(uint32_t input) { return (hn_lt_source){.there = true, .input = input}; }

/* An operand that is read where it is: of the storage type. */
static bool lies_ready(const hone_step *s, uint32_t input, const hn_lt_step *l, hone_reason *why) {
  const hone_tensor_desc *d = &s->input[input].desc;
  if (d->dtype == l->spec.dtype) return true;
  return hn_refuse(why, "input %u is %s, not %s", input, hone_dtype_name(d->dtype),
                   hone_dtype_name(l->spec.dtype));
}

/* B of batches that share it: packed with k contiguous where it is constant, else as it lies. */
static bool place_b(const hone_step *s, hn_lt_step *l, int64_t b_k, int64_t b_n, int64_t padded_n,
                    int64_t padded_k, hone_reason *why) {
  hn_lt_spec *p = &l->spec;
  l->b_k = b_k, l->b_n = b_n, l->columns = p->n, l->depth = p->k;
  if (s->input[1].constant && p->b.batch == 0) {
    if (!hn_cuda_type(s->input[1].desc.dtype)) return hn_refuse(why, "weights are not of a floating type");
    p->n = padded_n, p->k = padded_k;
    p->b = (hn_lt_matrix){padded_k, 0, true};
    in_blob(l, &l->b, 1, padded_n * padded_k);
    return true;
  }
  l->b = in_place(1);
  p->b.turned = b_k == 1 && b_n != 1;
  p->b.row = p->b.turned ? b_n : b_k > p->n ? b_k : p->n; /* the latter where k is 1 */
  return lies_ready(s, 1, l, why);
}

static bool place_bias(const hone_step *s, hn_lt_step *l, uint32_t input, float scale, hone_reason *why) {
  const hone_step_tensor *t = &s->input[input];
  if (l->bias.there) return hn_refuse(why, "two biases");
  if (hone_desc_count(&t->desc) != l->columns) return hn_refuse(why, "the bias has not one value a column");
  l->spec.bias = true, l->bias_scale = scale;
  if (t->constant) {
    if (!hn_cuda_type(t->desc.dtype)) return hn_refuse(why, "the bias is not of a floating type");
    in_blob(l, &l->bias, input, l->spec.n);
    return true;
  }
  if (scale != 1 || l->columns != l->spec.n) return hn_refuse(why, "the bias is not constant");
  l->bias = in_place(input);
  return lies_ready(s, input, l, why);
}

/* A tensor like the output, added. */
static bool place_c(const hone_step *s, hn_lt_step *l, uint32_t input, float beta, hone_reason *why) {
  if (l->c.there) return hn_refuse(why, "two tensors to add");
  l->c = in_place(input);
  l->spec.c = l->spec.d, l->spec.beta = beta;
  return lies_ready(s, input, l, why);
}

/* alpha A B + beta C + bias, then one activation: biases and residuals in any order before it. */
static bool describe_epilogue(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  if (!hn_cuda_epilogue_accepts(s, why)) return false;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if (e->kind == HONE_EPI_CAST) continue;
    if (l->spec.act) return hn_refuse(why, "epilogue %u follows the activation", i);
    if (e->kind == HONE_EPI_BIAS) {
      if (!place_bias(s, l, e->input, 1, why)) return false;
    } else if (e->kind == HONE_EPI_ADD) {
      if (!place_c(s, l, e->input, 1, why)) return false;
    } else if (e->kind == HONE_EPI_ACT && e->act == HONE_PW_RELU) {
      l->spec.act = HN_LT_RELU;
    } else if (e->kind == HONE_EPI_ACT && e->act == HONE_PW_GELU_TANH && l->spec.dtype != HONE_DTYPE_F32) {
      l->spec.act = HN_LT_GELU_TANH; /* its tanh is approximate: good enough for 16 bits */
    } else {
      return hn_refuse(why, "epilogue %u is not bias, residual, ReLU or GELU (tanh)", i);
    }
  }
  return true;
}

static bool begin(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  memset(l, 0, sizeof *l);
  if (!hn_cuda_stored(s, why)) return false;
  if (s->n_inputs > 32) return hn_refuse(why, "more than 32 inputs");
  if (hone_desc_count(&s->output[0].desc) == 0 || hone_desc_count(&s->input[0].desc) == 0)
    return hn_refuse(why, "an empty tensor");
  l->spec.dtype = s->input[0].desc.dtype;
  l->spec.math = l->spec.dtype == HONE_DTYPE_F32 ? s->math : HONE_MATH_TF32; /* of f32 operands alone */
  l->spec.alpha = 1, l->spec.batches = 1, l->spec.workspace = hn_library_workspace(s);
  return true;
}

static bool finish(hn_lt_step *l, hone_reason *why) {
  const hn_lt_spec *p = &l->spec;
  const int64_t most = INT32_MAX;
  if (p->m > most || p->n > most || p->k > most || p->batches > most || p->a.row > most || p->b.row > most ||
      p->d.row > most)
    return hn_refuse(why, "a dimension beyond 2^31");
  return true;
}

/* ---------------------------------------------------------------- MatMul */

/* Batch dimensions, from the last: sizes, and elements from one matrix to the next (0: broadcast). */
typedef struct batches {
  int32_t n;
  int64_t size[HONE_MAX_RANK], a[HONE_MAX_RANK], b[HONE_MAX_RANK];
} batches;

static bool batches_of(const hone_tensor_desc *a, const hone_tensor_desc *b, int64_t sa, int64_t sb,
                       batches *out, hone_reason *why) {
  const int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
  out->n = 0;
  for (int32_t i = 0; i < (ra > rb ? ra : rb); i++) {
    const int64_t da = i < ra ? a->dim[ra - 1 - i] : 1, db = i < rb ? b->dim[rb - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) return hn_refuse(why, "batch dimensions do not broadcast");
    const int64_t size = da == 1 ? db : da, at_a = da == 1 ? 0 : sa, at_b = db == 1 ? 0 : sb;
    sa *= da, sb *= db;
    if (size == 1) continue;
    /* One dimension with the one before it (which is the inner one) when both operands go on evenly. */
    const int32_t k = out->n - 1;
    if (k >= 0 && at_a == out->a[k] * out->size[k] && at_b == out->b[k] * out->size[k]) {
      out->size[k] *= size;
      continue;
    }
    out->size[out->n] = size, out->a[out->n] = at_a, out->b[out->n] = at_b;
    out->n++;
  }
  return true;
}

static bool matmul_anchor(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  hn_lt_spec *p = &l->spec;
  batches x;
  if (!begin(s, l, why)) return false;
  if (a->layout != HONE_LAYOUT_ROW_MAJOR || b->layout != HONE_LAYOUT_ROW_MAJOR ||
      y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major");
  if (a->rank < 1 || b->rank < 1) return hn_refuse(why, "an operand is a scalar");
  if ((a->rank == 1 || b->rank == 1) && s->n_epilogue)
    return hn_refuse(why, "a vector operand with an epilogue");
  p->k = a->dim[a->rank - 1];
  p->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
  p->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  if ((b->rank > 1 ? b->dim[b->rank - 2] : b->dim[0]) != p->k)
    return hn_refuse(why, "inner dimensions differ");
  if (!batches_of(a, b, p->m * p->k, p->k * p->n, &x, why)) return false;
  /* One B for all: the rows of all matrices of A are rows of one product. */
  if (x.n == 1 && x.b[0] == 0 && x.a[0] == p->m * p->k) p->m *= x.size[0], x.n = 0;
  if (x.n > 1) return hn_refuse(why, "batches at no fixed distance");
  if (x.n == 1) p->batches = x.size[0];
  p->a = (hn_lt_matrix){p->k, x.n ? x.a[0] : 0, false};
  p->b.batch = x.n ? x.b[0] : 0;
  p->d = (hn_lt_matrix){p->n, x.n ? p->m * p->n : 0, false};
  l->a = in_place(0);
  return place_b(s, l, p->n, 1, p->n, p->k, why);
}

bool hn_lt_matmul_of(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  return matmul_anchor(s, l, why) && describe_epilogue(s, l, why) && finish(l, why);
}

/* ---------------------------------------------------------------- Gemm */

/* beta C: a row becomes the bias, a whole matrix is added. */
static bool describe_gemm_c(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  const float beta = hone_node_float(s->node, "beta", 1.0f);
  if (!hn_cuda_has(s, 2) || beta == 0) return true;
  const hone_tensor_desc *c = &s->input[2].desc;
  const int64_t rows = c->rank > 1 ? c->dim[c->rank - 2] : 1, count = hone_desc_count(c);
  if (c->layout != HONE_LAYOUT_ROW_MAJOR || c->rank > 2) return hn_refuse(why, "C is not row-major");
  if (rows == 1 && count == l->columns) return place_bias(s, l, 2, beta, why);
  if (rows != l->spec.m || count != l->spec.m * l->columns) return hn_refuse(why, "C is broadcast");
  if (s->input[2].constant && s->input[2].desc.dtype != l->spec.dtype)
    return hn_refuse(why, "C is a constant matrix of another type");
  return place_c(s, l, 2, beta, why);
}

static bool gemm_anchor(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc;
  hn_lt_spec *p = &l->spec;
  if (!begin(s, l, why)) return false;
  if (a->rank != 2 || b->rank != 2 || a->layout != HONE_LAYOUT_ROW_MAJOR ||
      b->layout != HONE_LAYOUT_ROW_MAJOR || s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major matrices");
  const bool ta = hone_node_int(s->node, "transA", 0) != 0, tb = hone_node_int(s->node, "transB", 0) != 0;
  p->m = a->dim[ta], p->k = a->dim[!ta], p->n = b->dim[!tb];
  if (b->dim[tb] != p->k) return hn_refuse(why, "inner dimensions differ");
  p->alpha = hone_node_float(s->node, "alpha", 1.0f);
  p->a = (hn_lt_matrix){a->dim[1], 0, ta};
  p->d = (hn_lt_matrix){p->n, 0, false};
  l->a = in_place(0);
  return place_b(s, l, tb ? 1 : p->n, tb ? p->k : 1, p->n, p->k, why) && describe_gemm_c(s, l, why);
}

bool hn_lt_gemm_of(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  return gemm_anchor(s, l, why) && describe_epilogue(s, l, why) && finish(l, why);
}

bool hn_lt_product_of(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  return (hn_anchor_of_step(s).product == HONE_PRODUCT_GEMM ? gemm_anchor(s, l, why)
                                                            : matmul_anchor(s, l, why)) &&
         finish(l, why);
}

/* ---------------------------------------------------------------- Conv */

/* Pixels are rows; channels go up to their padding, whose weights are zeros. */
bool hn_lt_conv_of(const hone_step *s, hn_lt_step *l, hone_reason *why) {
  hn_conv_attr a;
  hn_lt_spec *p = &l->spec;
  if (!begin(s, l, why) || !hn_conv_attr_of(s, &a, why)) return false;
  for (int i = 0; i < 3; i++)
    if (a.kernel[i] != 1 || a.stride[i] != 1 || a.pad[i] || a.x.size[i] != a.y.size[i])
      return hn_refuse(why, "not a convolution of 1x1 at stride 1");
  if (a.groups != 1) return hn_refuse(why, "more than one group");
  if (!s->input[1].constant) return hn_refuse(why, "weights are not constant");
  if (!a.y.even) return hn_refuse(why, "output pixels are not evenly spaced");
  const int64_t pixels = a.x.size[0] * a.x.size[1] * a.x.size[2];
  const int64_t x = hn_library_padded(a.x.channels, p->dtype), y = hn_library_padded(a.y.channels, p->dtype);
  const int64_t vector = 16 / (int64_t)hone_dtype_size(p->dtype);
  if (a.x.view.pixel < x || a.y.view.pixel < y || a.x.view.pixel % vector || a.y.view.pixel % vector)
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  const bool whole = a.x.batch == 1 ||
                     (a.x.view.batch == pixels * a.x.view.pixel && a.y.view.batch == pixels * a.y.view.pixel);
  p->m = whole ? a.x.batch * pixels : pixels;
  p->batches = whole ? 1 : a.x.batch;
  p->n = a.y.channels, p->k = a.x.channels;
  p->a = (hn_lt_matrix){a.x.view.pixel, whole ? 0 : a.x.view.batch, false};
  p->d = (hn_lt_matrix){a.y.view.pixel, whole ? 0 : a.y.view.batch, false};
  l->a = in_place(0);
  if (!place_b(s, l, 1, p->k, y, x, why)) return false;
  if (hn_cuda_has(s, 2) && !place_bias(s, l, 2, 1, why)) return false;
  return describe_epilogue(s, l, why) && finish(l, why);
}

/* ---------------------------------------------------------------- the blob */

void hn_lt_pack_weights(const hone_step *s, const hn_lt_step *l, void *to) {
  const hn_cuda_weights all = {.from = &s->input[1],
                               .by_column = l->b_n,
                               .by_channel = l->b_k,
                               .columns = (uint32_t)l->columns,
                               .taps = 1,
                               .channels = (uint32_t)l->depth};
  for (hn_cuda_weights_tile t = {.all = all}; hn_cuda_weights_next(&t);)
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t c = 0; c < t.channels; c++)
        hn_library_put(to, (int64_t)(t.column + n) * l->spec.k + t.channel + c, l->spec.dtype, t.w[n][c]);
}

void hn_lt_pack(const hone_step *s, const hn_lt_step *l, void *blob) {
  unsigned char *base = blob;
  if (l->b.in_blob) hn_lt_pack_weights(s, l, base + l->b.at);
  for (int64_t n = 0; l->bias.in_blob && n < l->columns; n++) {
    float v = 0;
    hn_cuda_constant_f32(&s->input[l->bias.input], n, 1, &v);
    hn_library_put(base + l->bias.at, n, l->spec.dtype, v * l->bias_scale);
  }
}
