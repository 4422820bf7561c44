/* QuantizeLinear and DequantizeLinear into the graph: around activations, before weights and biases. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/operators.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a quantised model"); }

/* "stem_tail", with a number where that is taken. */
static const char *fresh(const hn_graph *g, const char *stem, const char *tail, char *buf, size_t size) {
  snprintf(buf, size, "%.200s_%s", stem, tail);
  for (unsigned i = 2; hn_value_find(g, buf); i++) snprintf(buf, size, "%.200s_%s_%u", stem, tail, i);
  return buf;
}

static hn_value *constant(hn_graph *g, const char *stem, const char *tail, hone_dtype dtype, int32_t rank,
                          const int64_t *dims, const void *data) {
  char name[256];
  const hone_tensor_desc d = hone_desc(dtype, rank, dims);
  return hn_value_constant(g, fresh(g, stem, tail, name, sizeof name), &d, data, true);
}

static hn_value *node(hn_graph *g, hone_node *before, const char *op, hn_value *x, hn_value *scale,
                      hn_value *zero, const char *stem, hone_dtype dtype, const hone_node *from) {
  char name[256];
  hn_value *out = hn_value_create(
      g, fresh(g, stem, strcmp(op, "QuantizeLinear") == 0 ? "quantized" : "dequantized", name, sizeof name));
  if (!out) return NULL;
  out->desc = hone_desc(dtype, x->desc.rank, x->desc.dim);
  hone_node *n = hn_node_create(g, before, op, "", name, (hn_value *[]){x, scale, zero}, 3, &out, 1);
  if (!n || (from && !hn_node_inherit(n, from))) return NULL;
  return out;
}

/* ---- activations */

static bool make_parameters(const hn_quantizing *q, hn_qz_range *r) {
  hn_graph *g = q->model->graph;
  if (r->scale_value) return true;
  const uint8_t zero = (uint8_t)r->zero_point;
  r->scale_value = constant(g, r->name, "scale", HONE_DTYPE_F32, 0, NULL, &r->scale);
  r->zero_value =
      constant(g, r->name, "zero_point", q->symmetric ? HONE_DTYPE_I8 : HONE_DTYPE_U8, 0, NULL, &zero);
  return r->scale_value && r->zero_value;
}

/* The quantised operators alone read what DequantizeLinear makes; others keep the float value. */
static bool rewire(const hn_quantizing *q, hn_value *v, hn_value *dq) {
  for (size_t i = 0; i < q->layers.len; i++) {
    const hn_qz_layer *l = &q->layers.ptr[i];
    if (!l->chosen) continue;
    for (uint32_t k = 0; k < l->node->n_in; k++)
      if (l->node->in[k] == v && !hn_node_set_input(l->node, k, dq)) return false;
  }
  return true;
}

/* Of the operands of a TensorRT sum only the shortcut is quantised: the other one may be quantised for
 * another reader. */
static bool around(const hn_quantizing *q, hn_value *v, hn_qz_range *r) {
  hn_graph *g = q->model->graph;
  hone_node *before = v->producer ? v->producer->next : g->first;
  if (!make_parameters(q, r)) return false;
  hn_value *codes = node(g, before, "QuantizeLinear", v, r->scale_value, r->zero_value, v->name,
                         q->symmetric ? HONE_DTYPE_I8 : HONE_DTYPE_U8, v->producer);
  hn_value *dq = codes ? node(g, before, "DequantizeLinear", codes, r->scale_value, r->zero_value, v->name,
                              HONE_DTYPE_F32, v->producer)
                       : NULL;
  if (!dq) return false;
  if (!q->ends[v->id]) return rewire(q, v, dq);
  return hn_value_replace(v, dq) && hn_node_set_input(codes->producer, 0, v);
}

/* ---- weights */

typedef struct weights {
  const float *v;
  int64_t outer, channels, inner; /* [outer, channels, inner]; one scale: channels is 1 */
} weights;

static weights weights_of(const hn_value *w, int32_t axis) {
  weights p = {.v = w->constant->data, .outer = 1, .channels = 1, .inner = 1};
  for (int32_t k = 0; k < w->desc.rank; k++)
    *(axis < 0 || k > axis ? &p.inner : k == axis ? &p.channels : &p.outer) *= w->constant->desc.dim[k];
  return p;
}

/* A scale a channel: the largest weight is 127. A bias has to fit into i32 in units of x scale times it, with
 * a bit to spare. */
static void weight_scales(const weights *p, const float *bias, double x_scale, float *scale) {
  for (int64_t c = 0; c < p->channels; c++) {
    double most = 0;
    for (int64_t o = 0; o < p->outer; o++)
      for (int64_t i = 0; i < p->inner; i++)
        most = fmax(most, fabs((double)p->v[(o * p->channels + c) * p->inner + i]));
    double s = most / 127;
    if (bias) s = fmax(s, fabs((double)bias[c]) / (x_scale * 0x1p30));
    scale[c] = s < (double)FLT_MIN ? 1 : (float)s;
  }
}

static void weight_codes(const weights *p, const float *scale, int8_t *code) {
  for (int64_t o = 0; o < p->outer; o++)
    for (int64_t c = 0; c < p->channels; c++)
      for (int64_t i = 0; i < p->inner; i++) {
        const int64_t at = (o * p->channels + c) * p->inner + i;
        const float v = rintf(p->v[at] / scale[c]);
        code[at] = (int8_t)(v < -127 ? -127 : v > 127 ? 127 : v);
      }
}

static hone_status quantise_bias(hn_quantizing *q, hn_qz_layer *l, const float *scale, int64_t channels,
                                 float x_scale, hone_error *error) {
  hn_value *b = l->node->in[2];
  const int64_t n = hone_desc_count(&b->constant->desc);
  const float *v = b->constant->data;
  float *units = HN_NEW_ARRAY(&q->arena, float, n);
  int32_t *codes = HN_NEW_ARRAY(&q->arena, int32_t, n), *zero = HN_NEW_ARRAY(&q->arena, int32_t, n);
  if (!units || !codes || !zero) return no_memory(error);
  for (int64_t i = 0; i < n; i++) {
    units[i] = x_scale * scale[channels == 1 ? 0 : i];
    const double u = units[i] > 0 ? nearbyint((double)v[i] / (double)units[i]) : 0;
    codes[i] = (int32_t)fmax(-0x1p31, fmin(0x1p31 - 1, u));
  }
  hn_graph *g = q->model->graph;
  const hone_tensor_desc *d = &b->constant->desc;
  hn_value *c = constant(g, b->name, "codes", HONE_DTYPE_I32, d->rank, d->dim, codes);
  hn_value *s = constant(g, b->name, "scale", HONE_DTYPE_F32, 1, &n, units);
  hn_value *z = constant(g, b->name, "zero_point", HONE_DTYPE_I32, 1, &n, zero);
  hn_value *dq =
      c && s && z ? node(g, l->node, "DequantizeLinear", c, s, z, b->name, HONE_DTYPE_F32, NULL) : NULL;
  if (!dq || !hn_node_set_int(dq->producer, "axis", d->rank - 1) || !hn_node_set_input(l->node, 2, dq))
    return no_memory(error);
  return HONE_OK;
}

/* The bias as one number an output channel, or NULL: then it stays f32. */
static const float *bias_of(const hn_quantizing *q, const hone_node *n, int64_t channels) {
  const hn_value *b = n->n_in > 2 ? n->in[2] : NULL;
  if (q->o->target == HONE_QUANTIZE_TENSORRT || !b || !b->constant || b->producer ||
      b->desc.dtype != HONE_DTYPE_F32)
    return NULL;
  const hone_tensor_desc *d = &b->constant->desc;
  return d->rank > 0 && d->dim[d->rank - 1] == channels && hone_desc_count(d) == channels ? b->constant->data
                                                                                          : NULL;
}

static hone_status quantise_weights(hn_quantizing *q, hn_qz_layer *l, hn_value *x, hone_error *error) {
  hone_node *n = l->node;
  hn_value *w = n->in[1];
  const int32_t axis = hn_qz_weight_axis(n);
  const weights p = weights_of(w, axis);
  const hn_qz_range *r = q->of[x->id];
  const float *bias = bias_of(q, n, p.channels);
  float *scale = HN_NEW_ARRAY(&q->arena, float, p.channels + 1);
  int8_t *code = hn_malloc((size_t)(p.outer * p.channels * p.inner) + 1), *zero = NULL;
  hone_status status = HONE_OK;
  if (!scale || !code || !(zero = HN_NEW_ARRAY(&q->arena, int8_t, p.channels + 1))) {
    status = no_memory(error);
    goto done;
  }
  weight_scales(&p, bias, (double)r->scale, scale);
  weight_codes(&p, scale, code);
  hn_graph *g = q->model->graph;
  const int32_t rank = axis < 0 ? 0 : 1;
  hn_value *c = constant(g, w->name, "codes", HONE_DTYPE_I8, w->desc.rank, w->constant->desc.dim, code);
  hn_value *s = constant(g, w->name, "scale", HONE_DTYPE_F32, rank, &p.channels, scale);
  hn_value *z = constant(g, w->name, "zero_point", HONE_DTYPE_I8, rank, &p.channels, zero);
  hn_value *dq = c && s && z ? node(g, n, "DequantizeLinear", c, s, z, w->name, HONE_DTYPE_F32, NULL) : NULL;
  if (!dq || (axis >= 0 && !hn_node_set_int(dq->producer, "axis", axis)) || !hn_node_set_input(n, 1, dq)) {
    status = no_memory(error);
    goto done;
  }
  l->channels = (uint32_t)p.channels;
  l->scale_low = l->scale_high = (double)scale[0];
  for (int64_t i = 1; i < p.channels; i++) {
    l->scale_low = fmin(l->scale_low, (double)scale[i]);
    l->scale_high = fmax(l->scale_high, (double)scale[i]);
  }
  if (bias) status = quantise_bias(q, l, scale, p.channels, r->scale, error);
done:
  hn_free(code);
  return status;
}

hone_status hn_qz_rewrite(hn_quantizing *q, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < q->layers.len && status == HONE_OK; i++) { /* while inputs are the values marked */
    hn_qz_layer *l = &q->layers.ptr[i];
    if (!l->chosen || l->kind != HN_QZ_PRODUCT || !l->node->in[1]->constant) continue;
    status = quantise_weights(q, l, l->node->in[0], error);
  }
  const size_t n = q->model->graph->values.len;
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    hn_value *v = q->model->graph->values.ptr[i];
    if (v->id < q->n_values && q->of[v->id] && !around(q, v, q->of[v->id])) status = no_memory(error);
  }
  return status;
}
