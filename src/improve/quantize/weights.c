/* Weights as i8 with a scale an output channel, biases as i32 in units of both scales. */
#include "base/dims.h"
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/ir/bytes.h"

#include <float.h>
#include <math.h>
#include <string.h>

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "quantised weights"); }

bool hn_quantize_weights_of(const hone_node *n, hn_quantize_weights *out) {
  const hn_value *w = n->n_in > 1 ? n->in[1] : NULL;
  if (!hn_quantize_is_constant(w) || w->desc.dtype != HONE_DTYPE_F32 || w->constant->desc.rank < 2)
    return false;
  const hone_tensor_desc *d = &w->constant->desc;
  const bool filters = hn_is_op(n, "Conv") || hn_is_op(n, "ConvTranspose");
  const int64_t groups = filters ? hone_node_int(n, "group", 1) : 1;
  if (!filters && d->rank != 2) return false;
  if (groups < 1 || (groups > 1 && (!hn_is_op(n, "Conv") || d->dim[0] % groups))) return false;
  *out = (hn_quantize_weights){
      .v = w->constant->data, .n = hone_desc_count(d), .dim = {d->dim[0], d->dim[1], hn_dims(d, 2, d->rank)}};
  out->out_dim = hn_is_op(n, "Conv") || (hn_is_op(n, "Gemm") && hone_node_int(n, "transB", 0)) ? 0 : 1;
  out->outputs = out->dim[out->out_dim];
  out->inputs = out->dim[1 - out->out_dim] * groups;
  if (groups > 1) out->filters_of_group = d->dim[0] / groups;
  return out->n > 0;
}

/* [outer, channels, inner]; one scale: channels is 1. */
typedef struct slices {
  const void *v; /* hn_quantize_f32 */
  int64_t outer, channels, inner;
  int32_t axis; /* -1: one scale */
} slices;

static slices slices_of(const hone_node *n) {
  const hone_tensor_desc *d = &n->in[1]->constant->desc;
  hn_quantize_weights w;
  slices s = {.v = n->in[1]->constant->data, .outer = 1, .channels = 1, .inner = 1, .axis = -1};
  if (hn_quantize_weights_of(n, &w)) s.axis = w.out_dim;
  for (int32_t k = 0; k < d->rank; k++)
    *(s.axis < 0 || k > s.axis ? &s.inner : k == s.axis ? &s.channels : &s.outer) *= d->dim[k];
  return s;
}

/* The largest weight of a channel is 127. A bias has to fit into i32 in units of x scale times this one, with
 * a bit to spare. */
static void find_scales(const slices *p, const float *bias, double x_scale, float *scale) {
  for (int64_t c = 0; c < p->channels; c++) {
    double most = 0;
    for (int64_t o = 0; o < p->outer; o++)
      for (int64_t i = 0; i < p->inner; i++)
        most = fmax(most, fabs((double)hn_quantize_f32(p->v, (o * p->channels + c) * p->inner + i)));
    double s = most / 127;
    if (bias) s = fmax(s, fabs((double)bias[c]) / (x_scale * 0x1p30));
    scale[c] = s < (double)FLT_MIN ? 1 : (float)s;
  }
}

/* Codes, and what they stand for. */
static void round_weights(const slices *p, const float *scale, int8_t *code, float *rounded) {
  for (int64_t o = 0; o < p->outer; o++)
    for (int64_t c = 0; c < p->channels; c++)
      for (int64_t i = 0; i < p->inner; i++) {
        const int64_t at = (o * p->channels + c) * p->inner + i;
        const float v = rintf(hn_quantize_f32(p->v, at) / scale[c]);
        code[at] = (int8_t)(v < -127 ? -127 : v > 127 ? 127 : v);
        if (rounded) rounded[at] = (float)code[at] * scale[c];
      }
}

/* ---- biases */

hone_node *hn_quantize_bias_add(const hone_node *n) {
  hn_quantize_weights w;
  if (!hn_is_op(n, "MatMul") || !hn_quantize_weights_of(n, &w) || !hn_value_single_use(n->out[0]))
    return NULL;
  hone_node *add = n->out[0]->users.ptr[0].node;
  if (!hn_is_op(add, "Add") || add->graph != n->graph || add->n_in != 2) return NULL;
  const hn_value *b = add->in[add->in[0] == n->out[0]];
  return hn_quantize_is_constant(b) && b->desc.dtype == HONE_DTYPE_F32 && b->constant->desc.rank == 1 &&
                 b->constant->desc.dim[0] == w.outputs
             ? add
             : NULL;
}

/* Where a product's bias is, or goes. */
typedef struct bias_place {
  hone_node *node;
  uint32_t input;
} bias_place;

static bias_place place_of(hone_node *n) {
  hone_node *add = hn_quantize_bias_add(n);
  return add ? (bias_place){add, add->in[0] == n->out[0]} : (bias_place){n, 2};
}

/* The bias as one number an output channel; false: there is one that is none, and it stays as it is. */
static bool bias_of(const hone_node *n, bias_place at, int64_t channels, const void **bias) {
  const hn_value *b = at.node->n_in > at.input ? at.node->in[at.input] : NULL;
  *bias = NULL;
  if (hn_is_op(n, "MatMul") && at.node == n) return false;
  if (!b) return true;
  if (!hn_quantize_is_constant(b) || b->desc.dtype != HONE_DTYPE_F32) return false;
  const hone_tensor_desc *d = &b->constant->desc;
  if (d->rank < 1 || d->dim[d->rank - 1] != channels || hone_desc_count(d) != channels) return false;
  *bias = b->constant->data;
  return true;
}

static bool put_bias(bias_place at, hn_value *v) {
  while (v && at.node->n_in < at.input)
    if (!hn_node_set_input(at.node, at.node->n_in, NULL)) return false;
  return v && hn_node_set_input(at.node, at.input, v);
}

static hone_status float_bias(hn_quantizing *q, const hone_node *n, bias_place at, const float *bias,
                              int64_t channels, hone_error *error) {
  hn_value *v = hn_quantize_constant(q->model->graph, n->name, "bias", HONE_DTYPE_F32, 1, &channels, bias);
  return put_bias(at, v) ? HONE_OK : no_memory(error);
}

/* TensorRT reads biases in f32; the others want what their integer kernels add. */
static hone_status integer_bias(hn_quantizing *q, hone_node *n, bias_place at, const float *bias,
                                const float *scale, int64_t channels, float x_scale, hone_error *error) {
  float *units = HN_NEW_ARRAY(&q->arena, float, channels);
  int32_t *codes = HN_NEW_ARRAY(&q->arena, int32_t, channels),
          *zero = HN_NEW_ARRAY(&q->arena, int32_t, channels);
  if (!units || !codes || !zero) return no_memory(error);
  for (int64_t i = 0; i < channels; i++) {
    units[i] = x_scale * scale[i];
    const double u = units[i] > 0 ? nearbyint((double)bias[i] / (double)units[i]) : 0;
    codes[i] = (int32_t)fmax(-0x1p31, fmin(0x1p31 - 1, u));
  }
  hn_graph *g = q->model->graph;
  const char *stem =
      at.node->n_in > at.input && at.node->in[at.input] ? at.node->in[at.input]->name : n->name;
  hn_value *c = hn_quantize_constant(g, stem, "bias_codes", HONE_DTYPE_I32, 1, &channels, codes);
  hn_value *s = hn_quantize_constant(g, stem, "bias_scale", HONE_DTYPE_F32, 1, &channels, units);
  hn_value *z = hn_quantize_constant(g, stem, "bias_zero_point", HONE_DTYPE_I32, 1, &channels, zero);
  hn_value *dq =
      c && s && z ? hn_quantize_node(g, n, "DequantizeLinear", c, s, z, stem, HONE_DTYPE_F32, NULL) : NULL;
  return dq && hn_node_set_int(dq->producer, "axis", 0) && put_bias(at, dq) ? HONE_OK : no_memory(error);
}

/* ---- */

static hone_status replace(hn_quantizing *q, hn_quantize_layer *l, const slices *p, const int8_t *code,
                           const float *scale, hone_error *error) {
  hn_graph *g = q->model->graph;
  hn_value *w = l->node->in[1];
  int8_t *zero = HN_NEW_ARRAY(&q->arena, int8_t, p->channels + 1);
  const int32_t rank = p->axis < 0 ? 0 : 1;
  hn_value *c =
      hn_quantize_constant(g, w->name, "codes", HONE_DTYPE_I8, w->desc.rank, w->constant->desc.dim, code);
  hn_value *s = hn_quantize_constant(g, w->name, "scale", HONE_DTYPE_F32, rank, &p->channels, scale);
  hn_value *z =
      zero ? hn_quantize_constant(g, w->name, "zero_point", HONE_DTYPE_I8, rank, &p->channels, zero) : NULL;
  hn_value *dq =
      c && s && z ? hn_quantize_node(g, l->node, "DequantizeLinear", c, s, z, w->name, HONE_DTYPE_F32, NULL)
                  : NULL;
  if (!dq || (p->axis >= 0 && !hn_node_set_int(dq->producer, "axis", p->axis)) ||
      !hn_node_set_input(l->node, 1, dq))
    return no_memory(error);
  l->channels = (uint32_t)p->channels;
  l->scale_low = l->scale_high = (double)scale[0];
  for (int64_t i = 1; i < p->channels; i++) {
    l->scale_low = fmin(l->scale_low, (double)scale[i]);
    l->scale_high = fmax(l->scale_high, (double)scale[i]);
  }
  return HONE_OK;
}

hone_status hn_quantize_narrow_weights(hn_quantizing *q, hn_quantize_layer *l, hone_error *error) {
  hone_node *n = l->node;
  hn_quantize_weights w;
  const slices p = slices_of(n);
  const bool plain = hn_quantize_weights_of(n, &w), f32_bias = q->o->target == HONE_QUANTIZE_TENSORRT;
  const float x_scale = q->of[n->in[0]->id]->scale;
  const bias_place at = place_of(n); /* while the weights are in f32 */
  const void *given = NULL;
  const size_t count = (size_t)(p.outer * p.channels * p.inner);
  const bool free_bias = plain && bias_of(n, at, p.channels, &given), correct = free_bias && l->means;
  float *scale = HN_NEW_ARRAY(&q->arena, float, p.channels + 1), *rounded = NULL;
  const float *bias = given ? hn_arena_memdup(&q->arena, given, (size_t)p.channels * sizeof *bias) : NULL;
  int8_t *code = hn_malloc(count + 1);
  if (correct) rounded = hn_malloc(count * sizeof *rounded + 1);
  hone_status status =
      scale && code && (rounded || !correct) && (bias || !given) ? HONE_OK : no_memory(error);
  if (status == HONE_OK) {
    find_scales(&p, f32_bias ? NULL : bias, (double)x_scale, scale);
    round_weights(&p, scale, code, rounded);
    status = replace(q, l, &p, code, scale, error);
  }
  if (status == HONE_OK && correct && !(bias = hn_quantize_corrected_bias(q, l, &w, rounded, bias)))
    status = no_memory(error);
  if (status == HONE_OK && bias && !f32_bias)
    status = integer_bias(q, n, at, bias, scale, p.channels, x_scale, error);
  else if (status == HONE_OK && correct)
    status = float_bias(q, n, at, bias, p.channels, error);
  hn_model_drop_pages(q->model, p.v, count * sizeof(float));
  hn_free(rounded);
  hn_free(code);
  return status;
}
