/* Public plan functions, also of saved plans: arguments are checked here and nowhere below. */
#include "api/api.h"
#include "api/lines.h"
#include "api/objects.h"
#include "base/error.h"
#include "model/bind.h"
#include "optimize/passes/optimize.h"
#include "optimize/plan/plan.h"
#include "optimize/plan/saved.h"
#include "optimize/plan/slices.h"
#include "optimize/step/fusions.h"
#include "runtime/lent.h"

#include <stdio.h>
#include <string.h>

hn_tuned *hn_api_tuned(const hone_plan *p, const char **path) {
  *path = p->engine->tuned_source.path;
  return p->engine->tuned;
}

const hn_plan *hn_api_plan(const hone_plan *p) { return p->plan; }
hone_engine *hn_api_engine(const hone_plan *p) { return p->engine; }
hn_plan *hn_api_plan_inside(hone_plan *p) { return p->plan; }
hone_bound_shape *hn_api_plan_bound(hone_plan *p) { return p->bound; }
hn_lined **hn_api_plan_lined(hone_plan *p) { return &p->lined; }
hn_model *hn_api_plan_source(const hone_plan *p) { return p->source; }

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
                                   .codes = hn_reads_codes(p->engine->backend, p->engine->device),
                                   .codes_rate = hn_codes_rate(p->engine->backend, p->engine->device),
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
                             .lends = o->over_bound,
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
int32_t hone_plan_output_over(const hone_plan *p, uint32_t i) {
  return p && i < p->plan->n_outputs ? hn_plan_over(p->plan, i) : -1;
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
