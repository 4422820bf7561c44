/* Static analysis: what a model costs before anything runs. */
#include <hone/model.h>

#include "base/error.h"
#include "model/ir/graph.h"
#include "model/operators.h"

#include <stdio.h>
#include <string.h>

static double bytes_of(const hone_tensor_desc *d) {
  int64_t b = d->dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(d);
  return b > 0 ? (double)b : 0;
}

static double elements_of(const hone_tensor_desc *d) {
  int64_t n = hone_desc_count(d);
  return n > 0 ? (double)n : 0;
}

/* Whether a reader takes the constant as quantised numbers: weights of 8 bits, biases of 32. */
static bool is_quantised(const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_op_desc *op = v->users.ptr[i].node->op;
    if (op && op->flags & HONE_OP_CODES) return true;
  }
  return false;
}

/* Parameters are constants of floating-point type or quantised, counted once however often they are read. */
static bool is_parameter(const hn_value *v) {
  if (!v || !(hone_dtype_is_float(v->desc.dtype) || is_quantised(v))) return false;
  return v->producer ? hn_is_op(v->producer, "Constant") : v->constant != NULL; /* exporters write both */
}

static hone_status inspect_node(const hone_node *n, hone_node_info *info, uint8_t *counted,
                                hone_error *error) {
  hn_arena temp = {0};
  *info = (hone_node_info){.name = n->name, .op_type = n->op_type};
  const hone_tensor_desc **in = HN_NEW_ARRAY(&temp, const hone_tensor_desc *, n->n_in);
  const hone_tensor **value = HN_NEW_ARRAY(&temp, const hone_tensor *, n->n_in);
  hone_tensor_desc **out = HN_NEW_ARRAY(&temp, hone_tensor_desc *, n->n_out);
  if (!in || !value || !out) {
    hn_arena_free(&temp);
    return hn_fail_memory(error, n->n_in, "inspecting a node");
  }
  bool known = true;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (!v) continue;
    in[i] = &v->desc;
    value[i] = v->constant;
    info->bytes_read += bytes_of(&v->desc);
    known = known && hone_desc_known(&v->desc);
    if (!counted[v->id] && is_parameter(v)) info->params += elements_of(&v->desc);
    counted[v->id] = 1; /* looked at: a constant may have very many readers */
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i]) continue;
    out[i] = &n->out[i]->desc;
    info->bytes_written += bytes_of(out[i]);
    known = known && hone_desc_known(out[i]);
    if (i == 0) {
      info->dtype = out[0]->dtype;
      size_t at = 0;
      for (int32_t k = 0; k < out[0]->rank && at < sizeof info->shape; k++)
        at +=
            (size_t)snprintf(info->shape + at, sizeof info->shape - at, out[0]->dim[k] < 0 ? "%s?" : "%s%lld",
                             k ? "x" : "", (long long)out[0]->dim[k]);
    }
  }
  uint32_t flags = n->op ? n->op->flags : 0;
  if (hn_is_op(n, "Constant") || (flags & HONE_OP_VIEW)) info->bytes_read = info->bytes_written = 0;
  if (known && n->op) {
    hone_cost c = {.bytes = -1};
    if (n->op->cost)
      n->op->cost(&(hone_infer){n, n->n_in, n->n_out, in, value, out}, &c);
    else if (n->n_out && out[0] && !(flags & (HONE_OP_MOVE | HONE_OP_VIEW)))
      c.flops = elements_of(out[0]);
    info->flops = c.flops;
    info->macs = c.macs;
  }
  double bytes = info->bytes_read + info->bytes_written;
  info->intensity = bytes > 0 ? info->flops / bytes : 0;
  hn_arena_free(&temp);
  return HONE_OK;
}

/* Largest sum of live activations, when each is freed after its last reader, plus all weights. */
static hone_status peak_memory(const hn_model *m, double *peak, hone_error *error) {
  const hn_graph *g = m->graph;
  uint32_t *readers = hn_calloc(m->next_value_id, sizeof *readers);
  if (!readers) return hn_fail_memory(error, m->next_value_id * sizeof *readers, "peak memory");
  double live = 0, weights = 0, most = 0;
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    readers[v->id] = (uint32_t)v->users.len + (v->is_output ? 1 : 0);
    if (v->constant && !v->producer)
      weights += readers[v->id] ? bytes_of(&v->desc) : 0;
    else if (v->is_input)
      live += bytes_of(&v->desc);
  }
  most = live;
  for (const hone_node *n = g->first; n; n = n->next) {
    bool view = n->op && (n->op->flags & HONE_OP_VIEW);
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i] && !view) live += bytes_of(&n->out[i]->desc);
    if (live > most) most = live;
    for (uint32_t i = 0; i < n->n_in; i++) {
      const hn_value *v = n->in[i];
      if (!v || v->graph != g || (v->constant && !v->producer)) continue;
      if (readers[v->id] && --readers[v->id] == 0 && !view) live -= bytes_of(&v->desc);
    }
  }
  hn_free(readers);
  *peak = most + weights;
  return HONE_OK;
}

static bool has_defaults(const hn_graph *g) {
  for (size_t i = 0; i < g->inputs.len; i++)
    if (g->inputs.ptr[i]->constant) return true;
  return false;
}

/* The model as it runs when nobody overrides an initializer that is also an input: shapes that are computed
 * from one are known then. */
static hone_status with_defaults(const hone_model *m, hn_model **out, hone_error *error) {
  hone_status status = hn_model_clone((hn_model *)m, out, error);
  for (size_t i = 0; status == HONE_OK && i < (*out)->graph->inputs.len; i++) {
    hn_value *v = (*out)->graph->inputs.ptr[i];
    v->is_input = !v->constant;
  }
  if (status == HONE_OK) status = hn_model_ready(*out, error);
  return status;
}

static hone_status inspect_model(const hone_model *m, hone_inspection *out, hone_error *error) {
  hone_status status = HONE_OK;
  uint8_t *counted = hn_calloc(m->next_value_id, 1);
  out->nodes = hn_calloc(m->graph->n_nodes, sizeof *out->nodes);
  if (!counted || !out->nodes) {
    status = hn_fail_memory(error, m->graph->n_nodes * sizeof *out->nodes, "the inspection");
    goto done;
  }
  for (const hone_node *n = m->graph->first; n && status == HONE_OK; n = n->next) {
    hone_node_info *info = &out->nodes[out->n_nodes++];
    status = inspect_node(n, info, counted, error);
    out->flops += info->flops;
    out->macs += info->macs;
    out->params += info->params;
    out->bytes += info->bytes_read + info->bytes_written;
  }
  for (size_t i = 0; i < m->graph->values.len; i++) {
    const hn_value *v = m->graph->values.ptr[i];
    if (is_parameter(v) && v->users.len) out->param_bytes += bytes_of(&v->desc);
  }
  if (status == HONE_OK) status = peak_memory(m, &out->peak_memory_bytes, error);
done:
  hn_free(counted);
  return status;
}

static hone_status outputs_of(const hone_model *m, hone_inspection *out, hone_error *error) {
  const size_t n = m->graph->outputs.len;
  out->outputs = hn_calloc(n + 1, sizeof *out->outputs);
  if (!out->outputs) return hn_fail_memory(error, n * sizeof *out->outputs, "the inspection");
  for (size_t i = 0; i < n; i++) out->outputs[i] = m->graph->outputs.ptr[i]->desc;
  out->n_outputs = (uint32_t)n;
  return HONE_OK;
}

hone_status hone_model_inspect(const hone_model *m, hone_inspection *out, hone_error *error) {
  if (!m || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_inspect needs a model and a place for the result");
  *out = (hone_inspection){0};
  hn_model *defaults = NULL;
  hone_status status = has_defaults(m->graph) ? with_defaults(m, &defaults, error) : HONE_OK;
  if (status == HONE_ERROR_INPUT || status == HONE_ERROR_UNSUPPORTED) { /* defaults of another batch, say */
    hn_model_destroy(defaults);
    defaults = NULL;
    if (error) *error = (hone_error){0};
    status = HONE_OK;
  }
  if (status == HONE_OK) status = inspect_model(defaults ? defaults : m, out, error);
  if (status == HONE_OK) status = outputs_of(defaults ? defaults : m, out, error);
  /* Names have to outlive the copy. */
  const hone_node *n = m->graph->first;
  for (uint32_t i = 0; status == HONE_OK && n && i < out->n_nodes; n = n->next, i++) {
    out->nodes[i].name = n->name;
    out->nodes[i].op_type = n->op_type;
  }
  hn_model_destroy(defaults);
  if (status != HONE_OK) hone_inspection_free(out);
  return status;
}

void hone_inspection_free(hone_inspection *i) {
  if (!i) return;
  hn_free(i->nodes);
  hn_free(i->outputs);
  *i = (hone_inspection){0};
}
