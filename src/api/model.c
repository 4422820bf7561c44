/* Public model functions: arguments are checked here and nowhere below. */
#include <hone/model.h>
#include <hone/pictures.h>

#include "api/api.h"
#include "base/error.h"
#include "base/str.h"
#include "improve/batch_proof.h"
#include "model/bind.h"
#include "model/open_batch.h"
#include "model/take.h"
#include "model/ir/graph.h"
#include "model/ir/text.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "optimize/passes/common/pass.h"
#include "optimize/step/fusions.h"

#include <stdio.h>
#include <string.h>

/* Inputs without an initializer first, in the model's order; then the optional ones. Found once, because a
 * file may name all its weights as inputs, and who asks for one asks for all. */
static hone_status order_inputs(hn_model *m, hone_error *error) {
  const size_t n = m->graph->inputs.len;
  uint32_t *port = HN_NEW_ARRAY(&m->arena, uint32_t, n);
  if (!port) return hn_fail_memory(error, n * sizeof *port, "inputs");
  for (int optional = 0; optional < 2; optional++)
    for (size_t k = 0; k < n; k++)
      if ((m->graph->inputs.ptr[k]->constant != NULL) == (optional == 1)) port[m->n_ports++] = (uint32_t)k;
  m->port = port;
  return HONE_OK;
}

/* A loaded model is ready to use: operators known, shapes inferred as far as they can be. */
static hone_status ready(hn_model *m, hone_model **out, hone_error *error) {
  hone_status status = hn_model_ready(m, error);
  if (status == HONE_OK) status = order_inputs(m, error);
  if (status != HONE_OK) {
    if (m->path[0]) hn_error_where(error, "%s", m->path);
    hn_model_destroy(m);
    return status;
  }
  *out = m;
  return HONE_OK;
}

hone_status hone_model_load(const char *path, hone_model **out, hone_error *error) {
  if (!path || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_load needs a path and a place for the result");
  *out = NULL;
  hn_model *m;
  hone_status status = hn_onnx_load(path, &m, error);
  return status == HONE_OK ? ready(m, out, error) : status;
}

hone_status hone_model_load_memory(const void *data, size_t size, const char *folder, hone_model **out,
                                   hone_error *error) {
  if ((!data && size) || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_load_memory needs data and a place for the result");
  *out = NULL;
  hn_model *m;
  hone_status status = hn_onnx_load_memory(data, size, folder, "memory", &m, error);
  return status == HONE_OK ? ready(m, out, error) : status;
}

hone_status hone_model_parse(const char *text, size_t size, hone_model **out, hone_error *error) {
  if (!text || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_parse needs a text and a place for the result");
  *out = NULL;
  hn_model *m;
  hone_status status = hn_model_parse("text", text, size, &m, error);
  return status == HONE_OK ? ready(m, out, error) : status;
}

void hone_model_release(hone_model *model) { hn_model_destroy(model); }

hone_status hone_model_save(const hone_model *model, const char *path, hone_error *error) {
  if (!model || !path) return hn_fail(error, HONE_ERROR_USAGE, "hone_model_save needs a model and a path");
  return hn_onnx_save(model, path, error);
}

/* ------------------------------------------------------------------ ports */

/* By order_inputs; of a model that was made in another way by looking. */
static const hn_value *input_at(const hn_model *m, uint32_t i) {
  if (m->port && m->n_ports == m->graph->inputs.len)
    return i < m->n_ports ? m->graph->inputs.ptr[m->port[i]] : NULL;
  for (int optional = 0; optional < 2; optional++)
    for (size_t k = 0; k < m->graph->inputs.len; k++) {
      const hn_value *v = m->graph->inputs.ptr[k];
      if ((v->constant != NULL) == (optional == 1) && i-- == 0) return v;
    }
  return NULL;
}

static bool fill_port(const hn_model *m, const hn_value *v, hone_port *port) {
  if (!v) return false;
  *port = (hone_port){.name = v->name, .desc = v->desc, .optional = v->is_input && v->constant};
  for (int32_t k = 0; k < v->desc.rank; k++) port->symbol[k] = hn_model_symbol_name(m, v->desc.dim[k]);
  return true;
}

uint32_t hone_model_inputs(const hone_model *m) { return m ? (uint32_t)m->graph->inputs.len : 0; }
uint32_t hone_model_outputs(const hone_model *m) { return m ? (uint32_t)m->graph->outputs.len : 0; }
bool hone_model_input(const hone_model *m, uint32_t i, hone_port *port) {
  return m && port && fill_port(m, input_at(m, i), port);
}
bool hone_model_output(const hone_model *m, uint32_t i, hone_port *port) {
  return m && port && i < m->graph->outputs.len && fill_port(m, m->graph->outputs.ptr[i], port);
}
const char *hone_model_path(const hone_model *m) { return m ? m->path : ""; }
const char *hone_model_producer(const hone_model *m) { return m && m->producer ? m->producer : ""; }
int64_t hone_model_ir_version(const hone_model *m) { return m ? m->ir_version : 0; }
int64_t hone_model_opset(const hone_model *m) { return m ? hn_model_opset(m, "") : 0; }
uint32_t hone_model_nodes(const hone_model *m) { return m ? m->graph->n_nodes : 0; }
const hone_node *hone_model_node(const hone_model *m, uint32_t i) {
  const hone_node *n = m ? m->graph->first : NULL;
  while (n && i--) n = n->next;
  return n;
}

hone_status hone_model_bind(hone_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                            hone_model **out, hone_bound_shape *bound, hone_error *error) {
  if (!model || !out || (n && !bindings) || batch < 0)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_bind: missing argument");
  *out = NULL;
  for (uint32_t i = 0; i < n; i++)
    if ((!bindings[i].input && !bindings[i].symbol) || bindings[i].rank < 0 ||
        bindings[i].rank > HONE_MAX_RANK)
      return hn_fail(error, HONE_ERROR_USAGE, "a shape names no input or has more than %d dimensions",
                     HONE_MAX_RANK);
  return hn_model_bind(model, bindings, n, batch, out, bound, error);
}

hone_status hone_model_open_batch(hone_model *model, hone_model **out, hone_error *error) {
  if (!model || !out) return hn_fail(error, HONE_ERROR_USAGE, "hone_model_open_batch: missing argument");
  *out = NULL;
  hone_status status = hn_model_open_batch(model, out, error);
  if (status == HONE_OK && (status = hn_prove_batch(model, *out, error)) != HONE_OK) {
    hn_model_destroy(*out);
    *out = NULL;
  }
  if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", model->path);
  return status;
}

hone_status hone_model_take(hone_model *model, const char *input, const hone_arriving *a, hone_model **out,
                            hone_error *error) {
  if (!model || !a || !out) return hn_fail(error, HONE_ERROR_USAGE, "hone_model_take: missing argument");
  *out = NULL;
  hn_arriving o = {.dtype = a->dtype == HONE_DTYPE_NONE ? HONE_DTYPE_U8 : a->dtype,
                   .pixels = a->pixels,
                   .normalise = a->preprocess != NULL};
  if (a->preprocess) o.by = *a->preprocess;
  if (!hone_dtype_size(o.dtype) || !hone_dtype_is_tensor(o.dtype) || o.dtype == HONE_DTYPE_STRING)
    return hn_fail(error, HONE_ERROR_USAGE, "values of type %s are no input", hone_dtype_name(o.dtype));
  for (int c = 0; o.normalise && o.by.normalise && c < 3; c++)
    if (o.by.std[c] == 0) return hn_fail(error, HONE_ERROR_USAGE, "hone_model_take: a deviation of 0");
  hone_status status = hn_model_take(model, input, &o, out, error);
  if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", model->path);
  return status;
}

/* ------------------------------------------------------------------ rewriting */

hone_status hn_export_rewrites(const hn_pass_report *from, hone_rewrites *to, hone_error *error) {
  to->nodes_before = from->nodes_before;
  to->nodes_after = from->nodes_after;
  to->record = hn_calloc(from->records.len, sizeof *to->record);
  if (!to->record)
    return hn_fail_memory(error, from->records.len * sizeof *to->record, "the report of rewrites");
  for (size_t i = 0; i < from->records.len; i++) {
    const hn_pass_record *r = &from->records.ptr[i];
    hone_rewrite *w = &to->record[to->n++];
    w->pass = r->pass;
    w->hit = r->hit;
    w->bytes_saved = r->bytes_saved;
    w->enable_level = r->enable_level;
    hn_copy_text(w->nodes, sizeof w->nodes, r->nodes);
    hn_copy_text(w->reason, sizeof w->reason, r->reason);
  }
  return HONE_OK;
}

bool hone_pass_at(uint32_t i, hone_pass_info *out) {
  if (!out) return false;
  const hn_listing *passes = hn_registry_take(&hn_passes);
  const uint32_t n = passes->n;
  if (i < n) {
    const hn_pass *p = passes->unit[i];
    *out = (hone_pass_info){.name = p->name, .about = p->about, .level = p->level};
  } else if (i - n < HN_FUSIONS) {
    const hn_fusion f = (hn_fusion)(i - n);
    *out = (hone_pass_info){hn_fusion_names[f], hn_fusion_about(f), f == HN_FUSION_epilogue ? 1 : 2, true};
  }
  hn_listing_drop(passes);
  return i < n + HN_FUSIONS;
}

hone_status hone_model_optimize(hone_model *model, const hone_optimize_options *o, hone_model **out,
                                hone_rewrites *rewrites, hone_error *error) {
  if (!model || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_model_optimize needs a model and a place for the result");
  *out = NULL;
  if (rewrites) *rewrites = (hone_rewrites){0};
  hn_optimize_options options = {.level = 2};
  if (o)
    options = (hn_optimize_options){.level = o->level,
                                    .passes = o->passes,
                                    .others = hn_fusion_names,
                                    .verify_each = o->verify_passes,
                                    .fold_seconds = o->max_seconds};
  if (options.level < 0 || options.level > 3)
    return hn_fail(error, HONE_ERROR_USAGE, "optimisation level %d is not in 0..3", options.level);
  const uint64_t lost = hn_mem_lost();
  hn_pass_report report = {0};
  hn_model *copy = NULL;
  hone_status status = hn_model_clone(model, &copy, error);
  if (status == HONE_OK) status = hn_optimize(copy, &options, &report, error);
  if (status == HONE_OK && rewrites) status = hn_export_rewrites(&report, rewrites, error);
  hn_pass_report_free(&report);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK) {
    *out = copy;
  } else {
    hn_model_destroy(copy);
    if (rewrites) hone_rewrites_free(rewrites);
  }
  return status;
}

void hone_rewrites_free(hone_rewrites *r) {
  if (!r) return;
  hn_free(r->record);
  *r = (hone_rewrites){0};
}
