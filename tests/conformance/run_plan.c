/* The engine that users get: level 2, all tactics, shapes bound to those of the test's inputs. */
#include "one_test.h"

#include "base/error.h"

#include <hone/session.h>
#include <string.h>

hone_status run_plan(hn_model *model, const char *path, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                     double seconds, hone_error *error) {
  (void)path;
  size_t n = model->graph->inputs.len;
  hone_binding *bind = HN_NEW_ARRAY(keep, hone_binding, n);
  const hone_tensor **in = HN_NEW_ARRAY(keep, const hone_tensor *, n);
  if (!bind || !in) return hn_fail_memory(error, n, "the test");
  uint32_t bindings = 0;
  for (size_t i = 0; i < n; i++) {
    hn_value *v = model->graph->inputs.ptr[i];
    if (inputs[i] && v->constant) {
      /* An initializer that the test overrides: it is an input like any other then. */
      v->constant = NULL;
    }
    if (!inputs[i]) continue;
    hone_binding *b = &bind[bindings++];
    b->input = v->name;
    b->rank = inputs[i]->desc.rank;
    memcpy(b->dim, inputs[i]->desc.dim, sizeof b->dim);
  }
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_status status = hone_engine_create(&(hone_engine_options){.threads = 2}, &engine, error);
  if (status == HONE_OK)
    status = hone_plan_create(engine, model, &(hone_plan_options){.level = 2, .bindings = bind, .n_bindings = bindings}, &plan, error);
  if (status == HONE_OK) status = hone_context_create(plan, &context, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_inputs(plan); i++)
    for (size_t k = 0; k < n; k++)
      if (strcmp(model->graph->inputs.ptr[k]->name, hone_plan_input_name(plan, i)) == 0) in[i] = inputs[k];
  if (status == HONE_OK) status = hone_context_run(context, in, &(hone_run_options){.max_seconds = seconds, .max_bytes = 8ull << 30}, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_outputs(plan); i++) outputs[i] = *hone_context_output(context, i);
  return status; /* the process ends with the test: nothing is freed, since the outputs are borrowed */
}
