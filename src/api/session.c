/* Public engine, plan and context functions: arguments are checked here and nowhere below. */
#include <hone/session.h>

#include "api/api.h"
#include "api/background.h"
#include "api/lines.h"
#include "base/error.h"
#include "model/bind.h"
#include "model/ir/items.h"
#include "optimize/passes/optimize.h"
#include "optimize/step/fusions.h"
#include "optimize/plan/plan.h"
#include "optimize/plan/saved.h"
#include "optimize/plan/slices.h"
#include "optimize/step/tuned.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "runtime/provenance.h"
#include "runtime/record.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hone_engine {
  const hn_backend *backend;
  hn_device *device;
  char *tactics;
  hn_tuned *tuned;
  hn_tuned_source tuned_source;
};

struct hone_plan {
  hone_engine *engine;
  hn_plan *plan;
  hn_model *source;        /* as it was loaded: names of bound shapes are borrowed from it */
  hone_bound_shape *bound; /* by plan input */
  hone_rewrites rewrites;
  hn_lined *lined;         /* of plans that may become others, or NULL */
  _Atomic uint32_t in_use; /* contexts */
};

struct hone_context {
  hone_plan *plan;
  hn_context *context;
  const hone_tensor **in; /* by plan input */
  hone_facts *facts;      /* being recorded into, or NULL */
  bool in_stage;
  atomic_bool busy;                  /* with a call that changes it, or a submitted run */
  hn_background *_Atomic background; /* runs what is submitted; NULL: nothing was yet */
  hn_run_limits limits;              /* of the submitted run */
  hn_step_counts *counts;            /* of the following runs, or NULL */
};

/* ------------------------------------------------------------------ engines */

hone_status hone_device_about(const char *device, hone_device_info *info, hone_error *error) {
  const hn_backend *backend;
  uint32_t index;
  if (info) memset(info, 0, sizeof *info);
  hone_status status = hn_backend_find(device, &backend, &index, error);
  return status == HONE_OK && backend->about ? backend->about(index, info, error) : status;
}

hone_status hone_device_sensors(const char *device, hone_sensors *out, hone_error *error) {
  const hn_backend *backend;
  hn_device *d = NULL;
  uint32_t index;
  hn_sensor s[sizeof out->sensor / sizeof *out->sensor];
  size_t n = 0;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_device_sensors needs a place for the result");
  out->count = 0;
  hone_status status = hn_backend_find(device, &backend, &index, error);
  if (status == HONE_OK && !backend->sensors)
    return hn_fail(error, HONE_ERROR_MISSING, "device %s has no sensors", backend->name);
  if (status == HONE_OK) status = backend->open(index, 1, NULL, &d, error);
  if (status == HONE_OK) status = backend->sensors(d, s, sizeof s / sizeof *s, &n, error);
  for (size_t i = 0; status == HONE_OK && i < n; i++) {
    hone_sensor *to = &out->sensor[out->count++];
    snprintf(to->name, sizeof to->name, "%s", s[i].name);
    snprintf(to->unit, sizeof to->unit, "%s", s[i].unit);
    to->value = s[i].value;
  }
  if (d) backend->close(d);
  return status;
}

hone_status hone_engine_create(const hone_engine_options *o, hone_engine **out, hone_error *error) {
  static const hone_engine_options none = {0};
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_engine_create needs a place for the result");
  *out = NULL;
  if (!o) o = &none;
  const hn_backend *backend;
  uint32_t index;
  hone_status status = hn_backend_find(o->device, &backend, &index, error);
  if (status != HONE_OK) return status;
  const uint64_t lost = hn_mem_lost();
  hone_engine *e = hn_calloc(1, sizeof *e);
  if (!e) return hn_fail_memory(error, sizeof *e, "the engine");
  e->backend = backend;
  const char *masks = o->tactics ? o->tactics : getenv("HONE_TACTICS");
  if (masks && !(e->tactics = hn_strdup(masks))) status = hn_fail_memory(error, strlen(masks), "the engine");
  if (status == HONE_OK) status = backend->open(index, o->threads, o->isa, &e->device, error);
  if (status == HONE_OK) {
    e->tuned = hn_tuned_open(backend, e->device, o->tuning, &e->tuned_source);
    if (!e->tuned) status = hn_fail_memory(error, 0, "the engine");
  }
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = e;
  else
    hone_engine_destroy(e);
  return status;
}

void hone_engine_destroy(hone_engine *e) {
  if (!e) return;
  if (e->device) e->backend->close(e->device);
  hn_tuned_destroy(e->tuned);
  hn_free(e->tactics);
  hn_free(e);
}

uint64_t hone_engine_device_peak(const hone_engine *e) {
  return e ? hn_device_peak(e->backend, e->device) : 0;
}

void hone_engine_warnings(hone_engine *e, char *buf, size_t size) {
  if (!buf) return;
  if (size) buf[0] = 0;
  if (e && e->backend->warnings) e->backend->warnings(e->device, buf, size);
}

uint32_t hone_engine_tuned(const hone_engine *e, const char **file, const char **warning) {
  if (file) *file = e ? e->tuned_source.path : "";
  if (warning) *warning = e ? e->tuned_source.warning : "";
  return e ? (uint32_t)hn_tuned_count(e->tuned) : 0;
}

hn_tuned *hn_api_tuned(const hone_plan *p, const char **path) {
  *path = p->engine->tuned_source.path;
  return p->engine->tuned;
}

const hn_context *hn_api_context(const hone_context *c) { return c->context; }
const hn_plan *hn_api_plan(const hone_plan *p) { return p->plan; }
hone_engine *hn_api_engine(const hone_plan *p) { return p->engine; }
hn_plan *hn_api_plan_inside(hone_plan *p) { return p->plan; }
hone_bound_shape *hn_api_plan_bound(hone_plan *p) { return p->bound; }
hn_lined **hn_api_plan_lined(hone_plan *p) { return &p->lined; }
hn_model *hn_api_plan_source(const hone_plan *p) { return p->source; }

const hn_backend *hn_api_backend(const hone_engine *e, hn_device **device) {
  *device = e->device;
  return e->backend;
}

const hone_machine *hone_engine_machine(const hone_engine *e) {
  return e ? e->backend->machine(e->device) : NULL;
}

/* ------------------------------------------------------------------ plans */

/* What a plan is made of, and how. */
typedef struct making {
  hone_model *model;
  const hone_plan_options *options;
  const hn_ports *ports;
  hn_packed_store *store;
  const hn_decisions *like;
  int level;
  bool defer;  /* scaled weights are made when they are packed; `beyond` is set when that */
  bool beyond; /* leaves the range of f32, which passes that make them at once notice and leave alone */
} making;

/* Optimises and plans a bound model, which is the whole batch or one of so many slices of it. best: NULL, or
 * how many would be best; no plan is made when they are more than 1. */
static hone_status compile(hone_plan *p, making *w, hn_model *bound, uint32_t slices, uint32_t *best,
                           hone_reason *why, hone_error *error) {
  const hone_plan_options *o = w->options;
  hone_model *model = w->model;
  const int level = w->level;
  hn_precision precision;
  hn_pass_report report = {0};
  hone_status status = hn_precision_parse(o->precision, p->engine->backend, model, &precision, error);
  if (status != HONE_OK) return status;
  const hn_optimize_options named = {.passes = o->passes, .others = hn_fusion_names};
  status = hn_passes_check(&named, error);
  if (status != HONE_OK) goto done;
  if (!o->reference && level > 0) {
    hn_optimize_options options = {.level = level,
                                   .passes = o->passes,
                                   .others = hn_fusion_names,
                                   .fold_seconds = o->fold_seconds,
                                   .defer = w->defer,
                                   .lowered = true,
                                   .processor = !p->engine->backend->asynchronous,
                                   .coarse = precision == HN_PRECISION_BF16 || precision == HN_PRECISION_FP8};
    status = hn_optimize(bound, &options, &report, error);
    if (status == HONE_OK) status = hn_export_rewrites(&report, &p->rewrites, error);
    if (status != HONE_OK) goto done;
  }
  hn_plan_request request = {.backend = p->engine->backend,
                             .device = p->engine->device,
                             .model = bound,
                             .level = level,
                             .precision = precision,
                             .f32_nodes = o->f32_nodes,
                             .n_f32_nodes = o->f32_nodes ? o->n_f32_nodes : 0,
                             .stored = o->precision ? NULL : model,
                             .reference = o->reference,
                             .prefer_memory = o->prefer == HONE_PREFER_MEMORY,
                             .tactics = p->engine->tactics,
                             .tuned = o->untuned || o->reference ? NULL : p->engine->tuned,
                             .chains = o->chains,
                             .fusions_off = hn_fusions_off(o->passes),
                             .separate = o->separate,
                             .preview = o->preview,
                             .own_model = true,
                             .ports = w->ports,
                             .store = w->store,
                             .like = w->like,
                             .slices = slices,
                             .best_slices = best,
                             .no_slices = why,
                             .beyond = &w->beyond};
  status = hn_plan_build(&request, &p->plan, error);
  if (status == HONE_OK && p->plan) status = hn_export_misses(p->plan, &p->rewrites, error);
done:
  if (status != HONE_OK || !p->plan) hone_rewrites_free(&p->rewrites);
  hn_pass_report_free(&report);
  return status;
}

static hone_status no_slices(const hone_plan_options *o, const char *why, hone_error *error) {
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "the batch cannot be cut into %u slices: %s", o->slices, why);
  hn_error_hint(error, "leave the number of slices out, and the plan has what is fastest");
  return HONE_ERROR_UNSUPPORTED;
}

/* The plan of the whole batch, or of a slice where that is better, and proved to be the same. */
static hone_status make(hone_plan *p, making *w, hone_error *error) {
  const hone_plan_options *o = w->options;
  hn_model *bound = NULL;
  uint32_t slices = o->slices;
  hone_reason why = {""};
  hone_status status = hn_model_bind(w->model, o->bindings, o->n_bindings, o->batch, &bound, p->bound, error);
  if (status == HONE_OK) status = compile(p, w, bound, 1, slices == 1 ? NULL : &slices, &why, error);
  hn_model_destroy(bound);
  if (status == HONE_OK && p->plan && o->slices > 1) return no_slices(o, why.text, error);
  if (status != HONE_OK || p->plan) return status;
  /* Passes and planning have changed the model: once more. */
  status = hn_slice_bind(w->model, o->bindings, o->n_bindings, o->batch, &slices, &bound, &why, error);
  if (status != HONE_OK) return status;
  if (slices == 1 && o->slices > 1)
    status = no_slices(o, why.text, error);
  else
    status = compile(p, w, bound, slices, NULL, NULL, error);
  hn_model_destroy(bound);
  return status;
}

static hone_status create_plan(hone_engine *engine, hone_model *model, const hone_plan_options *o,
                               const hn_ports *ports, hn_lines *lines, hn_packed_store *store,
                               const hn_decisions *like, hone_plan **out, hone_error *error) {
  static const hone_plan_options defaults = {.level = -1};
  if (!engine || !model || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_create needs an engine, a model and a place for the result");
  *out = NULL;
  if (!o) o = &defaults;
  int level = o->level < 0 ? 2 : o->level;
  if (level > 3) return hn_fail(error, HONE_ERROR_USAGE, "optimisation level %d is not in 0..3", o->level);
  hone_status status = HONE_OK;
  if (o->n_bindings && !o->bindings)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_plan_create: bindings are missing");
  const bool folds = level > 0 && !o->reference && (!o->passes || !*o->passes);
  if (!store) status = hn_api_weights(o->weights, engine, model, folds, &model, &store, &lines, error);
  if (status != HONE_OK) return status;
  const uint64_t lost = hn_mem_lost();
  hone_plan *p = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "the plan");
  p->engine = engine;
  p->source = hn_model_retain(model);
  p->bound = hn_calloc(model->graph->inputs.len, sizeof *p->bound);
  if (!p->bound) {
    status = hn_fail_memory(error, model->graph->inputs.len * sizeof *p->bound, "the plan");
    goto done;
  }
  making w = {.model = model,
              .options = o,
              .ports = ports,
              .store = store,
              .like = like,
              .level = level,
              .defer = true};
  status = make(p, &w, error);
  if (status != HONE_OK && w.beyond) {
    w.defer = false;
    status = make(p, &w, error);
  }
  if (status == HONE_OK && lines) hn_lines_note(lines, p, o, store);
done:
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = p;
  else {
    if (model->path[0] && error && !strstr(error->where, model->path))
      hn_error_where(error, "%s", model->path);
    hone_plan_destroy(p);
  }
  return status;
}

hone_status hone_plan_create(hone_engine *engine, hone_model *model, const hone_plan_options *o,
                             hone_plan **out, hone_error *error) {
  return hn_api_plan_create(engine, model, o, NULL, NULL, out, error);
}

hone_status hn_api_plan_create(hone_engine *engine, hone_model *model, const hone_plan_options *o,
                               const hn_ports *ports, hn_packed_store *store, hone_plan **out,
                               hone_error *error) {
  return create_plan(engine, model, o, ports, NULL, store, NULL, out, error);
}

hone_status hn_api_plan_of_lines(hone_engine *engine, hone_model *model, const hone_plan_options *o,
                                 hn_lines *lines, hn_packed_store *store, hone_plan **out,
                                 hone_error *error) {
  return create_plan(engine, model, o, NULL, lines, store, NULL, out, error);
}

hone_status hn_api_plan_like(const hone_plan *other, const hone_plan_options *o, hn_packed_store *store,
                             hone_plan **out, hone_error *error) {
  return create_plan(other->engine, other->source, o, NULL, NULL, store, other->plan->decisions, out, error);
}

/* ------------------------------------------------------------------ saved plans */

hone_status hone_plan_save(const hone_plan *p, const char *path, hone_error *error) {
  if (!p || !path) return hn_fail(error, HONE_ERROR_USAGE, "hone_plan_save needs a plan and a path");
  if (p->plan->preview)
    return hn_fail(error, HONE_ERROR_USAGE, "a preview holds no weights: it cannot be saved");
  if (p->plan->moving)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "a plan that may be one for other shapes cannot be saved");
  if (p->plan->separate)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "a plan of separate steps is for comparing, not for saving");
  return hn_saved_write(p->plan, path, error);
}

bool hone_plan_is_saved(const char *path) { return path && hn_saved_is(path); }

hone_status hone_plan_saved_threads(const char *path, uint32_t *threads, hone_error *error) {
  if (!path || !threads) return hn_fail(error, HONE_ERROR_USAGE, "hone_plan_saved_threads needs a path");
  hn_saved_head head;
  hone_status status = hn_saved_peek(path, &head, error);
  if (status == HONE_OK) *threads = head.threads;
  return status;
}

hone_status hone_plan_open(hone_engine *engine, const char *path, hone_plan **out, hone_error *error) {
  if (!engine || !path || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_open needs an engine, a path and a place for the result");
  *out = NULL;
  const uint64_t lost = hn_mem_lost();
  hone_plan *p = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "the plan");
  p->engine = engine;
  hone_status status = hn_saved_open(path, engine->backend, engine->device, &p->plan, error);
  if (status == HONE_OK) {
    p->source = hn_model_retain(p->plan->model);
    p->rewrites.nodes_before = (uint32_t)p->plan->model->source.len;
    p->rewrites.nodes_after = p->plan->model->graph->n_nodes;
    status = hn_export_misses(p->plan, &p->rewrites, error);
    p->bound = hn_calloc(p->plan->n_inputs, sizeof *p->bound);
    if (!p->bound) status = hn_fail_memory(error, p->plan->n_inputs * sizeof *p->bound, "the plan");
  }
  for (uint32_t i = 0; status == HONE_OK && i < p->plan->n_inputs; i++)
    p->bound[i] = (hone_bound_shape){p->plan->inputs[i]->name, *hn_plan_given(p->plan, i), false};
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = p;
  else
    hone_plan_destroy(p);
  return status;
}

const char *hone_plan_precision(const hone_plan *p) {
  return p ? hn_precision_name(p->plan->precision) : NULL;
}

const char *hone_plan_source_path(const hone_plan *p) {
  return !p ? "" : p->plan->saved ? p->plan->saved->source_path : p->source->path;
}

hone_status hone_plan_rebind(hone_plan *p, const hone_binding *bindings, uint32_t n, bool *done,
                             hone_error *error) {
  if (!p || !done || (n && !bindings))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_rebind needs a plan, bindings and a place for the answer");
  *done = false;
  if (atomic_load(&p->in_use))
    return hn_fail(error, HONE_ERROR_USAGE, "a plan that has contexts cannot become one for other shapes");
  const uint64_t lost = hn_mem_lost();
  return hn_settle(p->lined ? hn_lines_move(p, bindings, n, done, error) : HONE_OK, lost, error);
}

void hone_plan_destroy(hone_plan *p) {
  if (!p) return;
  hn_lined_free(p->lined);
  hn_plan_free(p->plan);
  hn_free(p->bound);
  hone_rewrites_free(&p->rewrites);
  hn_model_destroy(p->source);
  hn_free(p);
}

uint32_t hone_plan_slices(const hone_plan *p) { return p ? p->plan->slices : 0; }

uint32_t hone_plan_inputs(const hone_plan *p) {
  if (!p) return 0;
  return p->plan->n_inputs;
}
uint32_t hone_plan_outputs(const hone_plan *p) {
  if (!p) return 0;
  return p->plan->n_outputs;
}
const char *hone_plan_input_name(const hone_plan *p, uint32_t i) {
  if (!p) return NULL;
  return i < p->plan->n_inputs ? p->plan->inputs[i]->name : NULL;
}
const char *hone_plan_output_name(const hone_plan *p, uint32_t i) {
  if (!p) return NULL;
  return i < p->plan->n_outputs ? p->plan->outputs[i]->name : NULL;
}
const hone_tensor_desc *hone_plan_input_desc(const hone_plan *p, uint32_t i) {
  if (!p) return NULL;
  return i < p->plan->n_inputs ? &p->plan->input_desc[i] : NULL;
}
const hone_tensor_desc *hone_plan_output_desc(const hone_plan *p, uint32_t i) {
  if (!p) return NULL;
  return i < p->plan->n_outputs ? &p->plan->output_desc[i] : NULL;
}
const hone_bound_shape *hone_plan_bound(const hone_plan *p, uint32_t i) {
  if (!p) return NULL;
  return i < p->plan->n_inputs ? &p->bound[i] : NULL;
}
const hone_rewrites *hone_plan_rewrites(const hone_plan *p) { return p ? &p->rewrites : NULL; }
const hone_model *hone_plan_model(const hone_plan *p) {
  if (!p) return NULL;
  return p->plan->model;
}

uint32_t hone_plan_steps(const hone_plan *p) {
  if (!p) return 0;
  return (uint32_t)p->plan->steps.len;
}

bool hone_plan_step(const hone_plan *p, uint32_t i, hone_step_info *info) {
  if (!p) return false;
  if (i >= p->plan->steps.len) return false;
  const hn_step *s = &p->plan->steps.ptr[i];
  *info = (hone_step_info){.role = s->role,
                           .name = s->desc.name,
                           .op_type = s->desc.anchor,
                           .tactic = hn_step_doer(s),
                           .flops = s->desc.cost.flops * p->plan->slices,
                           .bytes = s->desc.cost.bytes * p->plan->slices,
                           .predicted_s = s->predicted_s * p->plan->slices,
                           .n_nodes = s->n_origin,
                           .nodes = s->origin,
                           .n_refused = s->n_refused,
                           .refused = s->refused,
                           .tuned = s->tuned,
                           .threads = s->threads};
  snprintf(info->what, sizeof info->what, "%s", s->what);
  if (s->desc.n_outputs && s->desc.output[0].desc.dtype != HONE_DTYPE_NONE) {
    hone_desc_format(&s->desc.output[0].desc, info->shape, sizeof info->shape);
    hone_quant_format(&s->desc.output[0].desc.quant, info->quant, sizeof info->quant);
  }
  return true;
}

uint32_t hone_plan_source_nodes(const hone_plan *p) {
  if (!p) return 0;
  return (uint32_t)p->plan->model->source.len;
}

bool hone_plan_source_node(const hone_plan *p, uint32_t i, const char **name, const char **op_type,
                           int32_t *step, const char **fate) {
  if (!p) return false;
  if (i >= p->plan->model->source.len) return false;
  if (name) *name = p->plan->model->source.ptr[i].name;
  if (op_type) *op_type = p->plan->model->source.ptr[i].op_type;
  if (step) *step = p->plan->node_step[i];
  if (fate) *fate = p->plan->node_fate[i];
  return true;
}

void hone_plan_memory(const hone_plan *p, uint64_t *arena, uint64_t *constants, uint64_t *workspace) {
  if (!p) return;
  if (arena) *arena = p->plan->arena_bytes;
  if (constants) *constants = p->plan->blob_bytes - p->plan->twin_bytes + p->plan->constant_bytes;
  if (workspace) *workspace = p->plan->workspace_bytes;
}

/* ------------------------------------------------------------------ contexts */

hone_status hone_plan_preview(const hone_plan *plan, hone_facts *facts, hone_error *error) {
  if (!plan || !facts) return hn_fail(error, HONE_ERROR_USAGE, "hone_plan_preview needs a plan and facts");
  hn_recorder_preview(plan->plan, NULL, NULL, facts);
  return HONE_OK;
}

/* An error of a context says of which file, as those of loading and planning do. */
static hone_status of_file(const hone_plan *p, hone_status status, hone_error *error) {
  const char *path = hone_plan_source_path(p);
  if (status != HONE_OK && status != HONE_ERROR_CANCELLED && *path && error && !strstr(error->where, path))
    hn_error_where(error, "%s", path);
  return status;
}

hone_status hone_context_create(hone_plan *plan, hone_context **out, hone_error *error) {
  return hn_api_context_in(plan, NULL, out, error);
}

hone_status hn_api_context_in(hone_plan *plan, void *block, hone_context **out, hone_error *error) {
  if (!plan || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_context_create needs a plan and a place for the result");
  if (plan->plan->preview)
    return hn_fail(error, HONE_ERROR_USAGE, "a preview holds no weights: it cannot run");
  *out = NULL;
  hone_context *c = hn_calloc(1, sizeof *c);
  if (!c) return hn_fail_memory(error, sizeof *c, "a context");
  c->plan = plan;
  c->in = hn_calloc(plan->plan->n_inputs, sizeof *c->in);
  hone_status status = c->in ? hn_context_create_in(plan->plan, block, &c->context, error)
                             : hn_fail_memory(error, plan->plan->n_inputs, "a context");
  atomic_fetch_add(&plan->in_use, 1);
  if (status == HONE_OK)
    *out = c;
  else
    hone_context_destroy(c);
  return of_file(plan, status, error);
}

void hone_context_destroy(hone_context *c) {
  if (!c) return;
  hn_background *background = atomic_load(&c->background);
  if (background) {
    hn_background_refuse(background);
    hn_context_cancel(c->context);
    hn_background_end(background);
  }
  hn_context_destroy(c->context);
  hn_step_counts_close(c->counts);
  hn_free((void *)c->in);
  atomic_fetch_sub(&c->plan->in_use, 1);
  hn_free(c);
}

/* Whether they fit; the run finds them in the context. */
static hone_status take_inputs(hone_context *c, const hone_tensor *const *in, hone_error *error) {
  const hn_plan *p = c->plan->plan;
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const hone_tensor_desc *want = hn_plan_given(p, i);
    const hone_tensor *t = hn_bound_input(c->context, i, in ? in[i] : NULL);
    if (!t || (!t->data && hone_desc_count(want) != 0)) {
      hn_fail(error, HONE_ERROR_USAGE, "input '%s' was not given", p->inputs[i]->name);
      return HONE_ERROR_USAGE;
    }
    if (t->desc.dtype != want->dtype || !hone_desc_same_dims(&t->desc, want) ||
        t->desc.layout != p->input_desc[i].layout) {
      char expected[128], got[128];
      hn_fail(error, HONE_ERROR_USAGE, "input '%s' does not fit the plan", p->inputs[i]->name);
      hn_error_expected(error, "%s", hone_desc_format(want, expected, sizeof expected));
      hn_error_got(error, "%s", hone_desc_format(&t->desc, got, sizeof got));
      if (t->desc.layout != HONE_LAYOUT_ROW_MAJOR)
        hn_error_hint(error, "hone_context_bind_input takes any strides");
      return HONE_ERROR_USAGE;
    }
    const char *doubt = hone_dtype_is_tensor(want->dtype) ? NULL : hn_items_doubt(t, want->dtype);
    if (doubt)
      return hn_fail(error, HONE_ERROR_USAGE, "input '%s' does not fit the plan: %s", p->inputs[i]->name,
                     doubt);
    hone_status status = hn_bound_apart(p, c->context, i, t, error);
    if (status == HONE_OK && in && in[i]) status = hn_bound_reached(p, i, t, error);
    if (status != HONE_OK) return status;
    c->in[i] = t;
  }
  return HONE_OK;
}

static hone_status run_taken(hone_context *c, const hn_run_limits *limits, hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  return of_file(c->plan, hn_settle(hn_context_run(c->context, c->in, limits, error), lost, error), error);
}

static hn_run_limits limits_of(const hone_run_options *o) {
  return o ? (hn_run_limits){o->max_seconds, o->max_bytes, o->max_nodes} : (hn_run_limits){0};
}

static hone_status run_alone(hone_context *c, const hone_tensor *const *in, const hone_run_options *o,
                             hone_error *error) {
  const hn_run_limits limits = limits_of(o);
  const hone_status status = take_inputs(c, in, error);
  return status == HONE_OK ? run_taken(c, o ? &limits : NULL, error) : status;
}

const hone_plan *hone_context_plan(const hone_context *c) { return c ? c->plan : NULL; }

const hone_tensor *hone_context_output(const hone_context *c, uint32_t i) {
  return c ? hn_context_output(c->context, i) : NULL;
}

void hone_context_cancel(hone_context *c) {
  if (c) hn_context_cancel(c->context);
}

uint64_t hone_context_peak(const hone_context *c) { return c ? hn_context_peak(c->context) : 0; }

static hone_status apart(const hone_context *c, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "a context is needed");
  const hn_backend *b = c->plan->plan->backend;
  if (b->asynchronous) return HONE_OK;
  return hn_fail(error, HONE_ERROR_UNSUPPORTED, "device %s has no clock of its own", b->name);
}

static hone_status clock_alone(hone_context *c, bool on, hone_error *error) {
  const hone_status status = apart(c, error);
  if (status == HONE_OK) hn_context_clock(c->context, on);
  return status;
}

static hone_status times_alone(const hone_context *c, double *h2d, double *steps, double *d2h,
                               hone_error *error) {
  hone_status status = apart(c, error);
  return status == HONE_OK ? hn_context_times(c->context, h2d, steps, d2h, error) : status;
}

static hone_status repeat_alone(hone_context *c, double *seconds, hone_error *error) {
  hone_status status = apart(c, error);
  return status == HONE_OK ? hn_context_repeat(c->context, seconds, error) : status;
}

static hone_status issue_alone(hone_context *c, hone_issue *out, hone_error *error) {
  hone_status status = apart(c, error);
  return status == HONE_OK ? hn_context_issue(c->context, out, error) : status;
}

static hone_status counters_alone(hone_context *c, const uint32_t *steps, uint32_t n_steps, hone_facts *facts,
                                  hone_error *error) {
  if (!facts) return hn_fail(error, HONE_ERROR_USAGE, "hone_context_counters needs facts");
  hone_status status = apart(c, error);
  return status == HONE_OK ? hn_context_counters(c->context, steps, n_steps, facts, error) : status;
}

static hone_status count_alone(hone_context *c, const hone_counting *counting, const uint32_t *steps,
                               uint32_t n_steps, hone_error *error) {
  if (!c || !counting || (n_steps && !steps))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_context_count needs a context, counters and steps");
  const hn_plan *p = c->plan->plan;
  if (p->backend->asynchronous)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the processor counts its own steps, not those of '%s'",
                   p->backend->name);
  hn_step_counts *counts = hn_step_counts_open(counting, (uint32_t)p->steps.len, steps, n_steps);
  if (!counts) return hn_fail_memory(error, p->steps.len, "counters of steps");
  hn_step_counts_close(c->counts);
  c->counts = counts;
  hn_context_edges(c->context, hn_step_counts_edge, counts);
  return HONE_OK;
}

static hone_status count_end_alone(hone_context *c, hone_facts *facts, hone_error *error) {
  if (!c || !facts)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_context_count_end needs a context and facts");
  if (!c->counts) return hn_fail(error, HONE_ERROR_USAGE, "no steps are being counted");
  hn_context_edges(c->context, NULL, NULL);
  hn_step_counts_write(c->counts, facts);
  hn_step_counts_close(c->counts);
  c->counts = NULL;
  return HONE_OK;
}

static hone_status record_alone(hone_context *c, hone_facts *facts, uint32_t max_runs, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "hone_context_record needs a context");
  c->facts = facts;
  return hn_context_record(c->context, facts, max_runs, error);
}

static hone_status stage_begin_alone(hone_context *c, hone_span_kind kind, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "hone_context_stage_begin needs a context");
  if (c->in_stage || (kind != HONE_SPAN_PRE && kind != HONE_SPAN_POST))
    return hn_fail(error, HONE_ERROR_USAGE,
                   c->in_stage ? "a stage is under way already" : "a stage is pre or post");
  c->in_stage = true;
  hn_context_stage_begin(c->context, kind);
  return HONE_OK;
}

static hone_status stage_end_alone(hone_context *c, hone_error *error) {
  if (!c || !c->in_stage) return hn_fail(error, HONE_ERROR_USAGE, "no stage is under way");
  c->in_stage = false;
  hn_context_stage_end(c->context);
  return HONE_OK;
}

static hone_status record_end_alone(hone_context *c, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "hone_context_record_end needs a context");
  hone_facts *facts = c->facts;
  c->facts = NULL;
  const uint64_t lost = hn_mem_lost();
  hone_status status = hn_context_record_end(c->context, error);
  if (status == HONE_OK && facts) hn_provenance_rewrites(facts, c->plan->plan, &c->plan->rewrites);
  return hn_settle(status, lost, error);
}

/* ---- one thread at a time: a second one is told so, and changes nothing */

static hone_status enter(hone_context *c, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "a context may not be NULL");
  if (!atomic_exchange_explicit(&c->busy, true, memory_order_acquire)) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "the context is in use by another thread");
  hn_error_hint(error, "give each thread a context of its own: hone_context_create on the same plan");
  return HONE_ERROR_USAGE;
}

static hone_status leave(hone_context *c, hone_status status) {
  atomic_store_explicit(&c->busy, false, memory_order_release);
  return status;
}

hone_status hn_api_enter(hone_context *c, hn_context **inside, hone_error *error) {
  const hone_status status = enter(c, error);
  if (status == HONE_OK) *inside = c->context;
  return status;
}

hone_status hn_api_leave(hone_context *c, hone_status status) { return leave(c, status); }

hone_status hone_context_set_threads(hone_context *c, uint32_t threads, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, hn_context_set_threads(c->context, threads, error)) : status;
}

hone_status hone_context_run(hone_context *c, const hone_tensor *const *in, const hone_run_options *o,
                             hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, run_alone(c, in, o, error)) : status;
}

/* On the context's own thread, which has had it since it was submitted. */
static hone_status run_submitted(hone_context *c, hone_error *error) {
  return leave(c, run_taken(c, &c->limits, error));
}

/* The inputs are taken, and the context is ours. */
static hone_status submit_alone(hone_context *c, hone_done done, void *arg, hone_error *error) {
  hn_background *background = atomic_load(&c->background);
  if (!background) {
    const hone_status status = hn_background_start(&background, error);
    if (status != HONE_OK) return status;
    atomic_store(&c->background, background);
  }
  const hn_job job = {c, run_submitted, done, arg};
  if (hn_background_give(background, &job)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_CANCELLED, "the context is being ended");
}

hone_status hone_context_submit(hone_context *c, const hone_tensor *const *in, const hone_run_options *o,
                                hone_done done, void *arg, hone_error *error) {
  hone_status status = enter(c, error);
  if (status != HONE_OK) return status;
  status = take_inputs(c, in, error);
  c->limits = limits_of(o);
  if (status == HONE_OK) status = submit_alone(c, done, arg, error);
  return status == HONE_OK ? status : leave(c, status);
}

hone_status hone_context_wait(hone_context *c, double max_seconds, hone_error *error) {
  if (!c) return hn_fail(error, HONE_ERROR_USAGE, "a context may not be NULL");
  hn_background *background = atomic_load(&c->background);
  if (!background) return hn_fail(error, HONE_ERROR_USAGE, "nothing was submitted to the context");
  return hn_background_wait(background, max_seconds, error);
}

hone_status hone_context_clock(hone_context *c, bool on, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, clock_alone(c, on, error)) : status;
}

hone_status hone_context_times(const hone_context *c, double *h2d, double *steps, double *d2h,
                               hone_error *error) {
  hone_status status = enter((hone_context *)(uintptr_t)c, error);
  return status == HONE_OK ? leave((hone_context *)(uintptr_t)c, times_alone(c, h2d, steps, d2h, error))
                           : status;
}

hone_status hone_context_repeat(hone_context *c, double *seconds, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, repeat_alone(c, seconds, error)) : status;
}

hone_status hone_context_issue(hone_context *c, hone_issue *out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_context_issue needs a place for what it finds");
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, issue_alone(c, out, error)) : status;
}

hone_status hone_context_counters(hone_context *c, const uint32_t *steps, uint32_t n_steps, hone_facts *facts,
                                  hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, counters_alone(c, steps, n_steps, facts, error)) : status;
}

hone_status hone_context_count(hone_context *c, const hone_counting *counting, const uint32_t *steps,
                               uint32_t n_steps, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, count_alone(c, counting, steps, n_steps, error)) : status;
}

hone_status hone_context_count_end(hone_context *c, hone_facts *facts, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, count_end_alone(c, facts, error)) : status;
}

hone_status hone_context_record(hone_context *c, hone_facts *facts, uint32_t max_runs, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, record_alone(c, facts, max_runs, error)) : status;
}

hone_status hone_context_stage_begin(hone_context *c, hone_span_kind kind, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, stage_begin_alone(c, kind, error)) : status;
}

hone_status hone_context_stage_end(hone_context *c, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, stage_end_alone(c, error)) : status;
}

hone_status hone_context_record_end(hone_context *c, hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, record_end_alone(c, error)) : status;
}
