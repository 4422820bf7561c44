/* A test through the public session functions, as an application would run it. */
#include "one_test.h"

#include "base/error.h"
#include "api/api.h"
#include "runtime/context.h"

#include <hone/session.h>
#include <stdio.h>
#include <string.h>

/* Place of a plan input or output in the model's own list. */
static size_t place(const char *name, hn_value *const *list, size_t n) {
  size_t i = 0;
  while (i < n && strcmp(list[i]->name, name) != 0) i++;
  return i;
}

static char host_steps[1000];

const char *steps_on_host(void) { return host_steps; }

static void note(const hn_step *s, const char *why) {
  const size_t n = strlen(host_steps);
  snprintf(host_steps + n, sizeof host_steps - n, "%s%s%s%s", n ? "; " : "", s->desc.anchor,
           why[0] ? ": " : "", why);
}

static void note_host_steps(const hn_plan *plan) {
  for (size_t i = 0; i < plan->steps.len; i++) {
    const hn_step *s = &plan->steps.ptr[i];
    char why[300] = "";
    if (s->n_refused) snprintf(why, sizeof why, "%s: %s", s->refused[0].by, s->refused[0].text);
    if (hn_step_falls_back(s)) note(s, why);
  }
}

/* Those that no tactic took when the run knew their shapes. */
static void note_late_steps(const hn_plan *plan, const hn_context *context) {
  uint32_t step[16], n = hn_context_fallen_back(context, step, 16);
  for (uint32_t i = 0; i < n && i < 16; i++)
    note(&plan->steps.ptr[step[i]], "no tactic takes it with the shapes of the run");
}

static hone_status run(hone_plan *plan, const hn_graph *g, const hone_tensor *const *inputs,
                       hone_tensor *outputs, hn_arena *keep, double seconds, hone_error *error) {
  uint32_t n = hone_plan_inputs(plan);
  const hone_tensor **in = HN_NEW_ARRAY(keep, const hone_tensor *, n);
  hone_context *context;
  if (!in) return HONE_ERROR_MEMORY;
  for (uint32_t i = 0; i < n; i++) {
    size_t at = place(hone_plan_input_name(plan, i), g->inputs.ptr, g->inputs.len);
    if (at == g->inputs.len)
      return hn_fail(error, HONE_ERROR_INTERNAL, "the plan has an input that the model lacks");
    in[i] = inputs[at];
  }
  hone_status status = hone_context_create(plan, &context, error);
  if (status != HONE_OK) return status;
  /* Twice: what a run leaves behind must not change the next one. */
  for (int round = 0; round < 2 && status == HONE_OK; round++)
    status = hone_context_run(context, in, &(hone_run_options){.max_seconds = seconds}, error);
  if (status == HONE_OK) note_late_steps(hn_api_plan(plan), hn_api_context(context));
  for (uint32_t i = 0; i < hone_plan_outputs(plan) && status == HONE_OK; i++) {
    if (i >= g->outputs.len || strcmp(g->outputs.ptr[i]->name, hone_plan_output_name(plan, i)) != 0)
      return hn_fail(error, HONE_ERROR_INTERNAL, "the plan's outputs are not the model's");
    outputs[i] = *hone_context_output(context, i);
  }
  return status;
}

hone_status run_way(const plan_way *way, hn_model *model, const hone_tensor *const *inputs,
                    hone_tensor *outputs, hn_arena *keep, double seconds, hone_error *error) {
  const hn_graph *g = model->graph;
  hone_engine *engine;
  hone_plan *plan;
  uint32_t n = 0;
  hone_binding *binding = HN_NEW_ARRAY(keep, hone_binding, g->inputs.len);
  if (!binding) return HONE_ERROR_MEMORY;
  for (size_t i = 0; i < g->inputs.len; i++) {
    if (!inputs[i]) continue;
    hone_binding *b = &binding[n++];
    *b = (hone_binding){.input = g->inputs.ptr[i]->name, .rank = inputs[i]->desc.rank};
    memcpy(b->dim, inputs[i]->desc.dim, sizeof b->dim);
  }
  hone_status status =
      hone_engine_create(&(hone_engine_options){.threads = 2, .device = way->device}, &engine, error);
  if (status == HONE_OK)
    status = hone_plan_create(engine, model,
                              &(hone_plan_options){.level = way->level, .bindings = binding, .n_bindings = n},
                              &plan, error);
  if (status == HONE_OK && way->device) note_host_steps(hn_api_plan(plan));
  if (status == HONE_OK && way->look) status = way->look(way->arg, plan, error);
  return status == HONE_OK ? run(plan, g, inputs, outputs, keep, seconds, error) : status;
}

hone_status run_plan(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                     double seconds, hone_error *error) {
  return run_way(&(plan_way){.level = -1}, model, inputs, outputs, keep, seconds, error);
}

hone_status run_cuda(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                     double seconds, hone_error *error) {
  return run_way(&(plan_way){.device = "cuda", .level = -1}, model, inputs, outputs, keep, seconds, error);
}
