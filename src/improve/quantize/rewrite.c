/* QuantizeLinear and DequantizeLinear into the graph: around activations, before weights and biases. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/operators.h"

#include <stdio.h>
#include <string.h>

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a quantised model"); }

const char *hn_quantize_name(const hn_graph *g, const char *stem, const char *tail, char *buf, size_t size) {
  snprintf(buf, size, "%.200s_%s", stem, tail);
  for (unsigned i = 2; hn_value_find(g, buf); i++) snprintf(buf, size, "%.200s_%s_%u", stem, tail, i);
  return buf;
}

hn_value *hn_quantize_constant(hn_graph *g, const char *stem, const char *tail, hone_dtype dtype,
                               int32_t rank, const int64_t *dims, const void *data) {
  char name[256];
  const hone_tensor_desc d = hone_desc(dtype, rank, dims);
  return hn_value_constant(g, hn_quantize_name(g, stem, tail, name, sizeof name), &d, data, true);
}

hn_value *hn_quantize_node(hn_graph *g, hone_node *before, const char *op, hn_value *x, hn_value *scale,
                           hn_value *zero, const char *stem, hone_dtype dtype, const hone_node *from) {
  char name[256];
  hn_value *out = hn_value_create(
      g, hn_quantize_name(g, stem, strcmp(op, "QuantizeLinear") == 0 ? "quantized" : "dequantized", name,
                          sizeof name));
  if (!out) return NULL;
  out->desc = hone_desc(dtype, x->desc.rank, x->desc.dim);
  hone_node *n = hn_node_create(g, before, op, "", name, (hn_value *[]){x, scale, zero}, 3, &out, 1);
  if (!n || (from && !hn_node_inherit(n, from))) return NULL;
  return out;
}

/* ---- activations */

static bool make_parameters(const hn_quantizing *q, hn_quantize_range *r) {
  hn_graph *g = q->model->graph;
  if (r->scale_value) return true;
  const uint8_t zero = (uint8_t)r->zero_point;
  r->scale_value = hn_quantize_constant(g, r->name, "scale", HONE_DTYPE_F32, 0, NULL, &r->scale);
  r->zero_value = hn_quantize_constant(g, r->name, "zero_point", q->symmetric ? HONE_DTYPE_I8 : HONE_DTYPE_U8,
                                       0, NULL, &zero);
  return r->scale_value && r->zero_value;
}

/* The quantised operators alone read what DequantizeLinear makes; others keep the float value. */
static bool rewire(const hn_quantizing *q, hn_value *v, hn_value *dq) {
  for (size_t i = 0; i < q->layers.len; i++) {
    const hn_quantize_layer *l = &q->layers.ptr[i];
    if (!l->chosen) continue;
    for (uint32_t k = 0; k < l->node->n_in; k++)
      if (l->node->in[k] == v && !hn_node_set_input(l->node, k, dq)) return false;
  }
  return true;
}

/* Of the operands of a TensorRT sum only the shortcut is quantised: the other one may be quantised for
 * another reader. */
static bool around(const hn_quantizing *q, hn_value *v, hn_quantize_range *r) {
  hn_graph *g = q->model->graph;
  hone_node *before = v->producer ? v->producer->next : g->first;
  if (!make_parameters(q, r)) return false;
  hn_value *codes = hn_quantize_node(g, before, "QuantizeLinear", v, r->scale_value, r->zero_value, v->name,
                                     q->symmetric ? HONE_DTYPE_I8 : HONE_DTYPE_U8, v->producer);
  hn_value *dq = codes ? hn_quantize_node(g, before, "DequantizeLinear", codes, r->scale_value, r->zero_value,
                                          v->name, HONE_DTYPE_F32, v->producer)
                       : NULL;
  if (!dq) return false;
  if (!q->ends[v->id]) return rewire(q, v, dq);
  return hn_value_replace(v, dq) && hn_node_set_input(codes->producer, 0, v);
}

hone_status hn_quantize_rewrite(hn_quantizing *q, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < q->layers.len && status == HONE_OK; i++) { /* while inputs are the values marked */
    hn_quantize_layer *l = &q->layers.ptr[i];
    if (!l->chosen || l->kind != HN_QUANTIZE_PRODUCT || !hn_quantize_is_constant(l->node->in[1])) continue;
    status = hn_quantize_narrow_weights(q, l, error);
  }
  const size_t n = q->model->graph->values.len;
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    hn_value *v = q->model->graph->values.ptr[i];
    if (v->id < q->n_values && q->of[v->id] && !around(q, v, q->of[v->id])) status = no_memory(error);
  }
  return status;
}
