#include "improve/side.h"

#include "base/error.h"
#include "model/bind.h"
#include "optimize/passes/optimize.h"
#include "optimize/plan/plan.h"
#include "optimize/plan/saved.h"
#include "optimize/plan/slices.h"
#include "optimize/step/tuned.h"
#include "runtime/devices.h"

#include <stdlib.h>
#include <string.h>

/* Optimises and plans a bound model; slices, best: as in hn_plan_request. */
static hone_status build(hn_side *out, hn_model *model, hn_model *bound, const hn_side_options *o,
                         hn_precision precision, uint32_t slices, uint32_t *best, hone_error *error) {
  if (!o->reference && o->level > 0) {
    const hn_optimize_options options = {.level = o->level,
                                         .lowered = true,
                                         .processor = !out->backend->asynchronous,
                                         .codes = hn_reads_codes(out->backend, out->device),
                                         .codes_rate = hn_codes_rate(out->backend, out->device)};
    const hone_status status = hn_optimize(bound, &options, NULL, error);
    if (status != HONE_OK) return status;
  }
  const hn_plan_request request = {.backend = out->backend,
                                   .device = out->device,
                                   .model = bound,
                                   .level = o->level,
                                   .precision = precision,
                                   .f32_nodes = o->f32_nodes,
                                   .n_f32_nodes = o->n_f32_nodes,
                                   .stored = o->precision ? NULL : model,
                                   .reference = o->reference,
                                   .chains = o->chains,
                                   .keep_concats = o->keep_concats,
                                   .tactics = out->masks,
                                   .slices = slices,
                                   .best_slices = best,
                                   .tuned = out->tuned};
  return hn_plan_build(&request, &out->plan, error);
}

hone_status hn_side_open(hn_model *model, const hn_side_options *o, hn_side *out, hone_error *error) {
  *out = (hn_side){0};
  hn_model *bound = NULL;
  uint32_t index, best = 0;
  hn_precision precision = HN_PRECISION_F32;
  hone_status status = hn_model_bind(model, o->bindings, o->n_bindings, o->batch, &bound, NULL, error);
  if (status != HONE_OK) goto done;
  if ((status = hn_backend_find(o->device, &out->backend, &index, error)) != HONE_OK) goto done;
  if ((status = hn_precision_parse(o->precision, out->backend, model, &precision, error)) != HONE_OK)
    goto done;
  status = out->backend->open(index, o->threads, o->isa, &out->device, error);
  if (status != HONE_OK) goto done;
  if (!o->isa && !o->reference) {
    hn_tuned_source source;
    out->tuned = hn_tuned_open(out->backend, out->device, NULL, &source);
    if (!out->tuned) status = hn_fail_memory(error, 0, "tuned tactics");
    out->masks = getenv("HONE_TACTICS");
    if (status == HONE_OK) status = hn_tactic_masks_check(out->masks, "HONE_TACTICS", error);
    if (status != HONE_OK) goto done;
  }
  status = build(out, model, bound, o, precision, 1, o->sliced ? &best : NULL, error);
  if (status == HONE_OK && !out->plan) {
    hn_model_destroy(bound);
    bound = NULL;
    hone_reason why;
    status = hn_slice_bind(model, o->bindings, o->n_bindings, o->batch, &best, &bound, &why, error);
    if (status == HONE_OK) status = build(out, model, bound, o, precision, best, NULL, error);
  }
  if (status == HONE_OK) status = hn_context_create(out->plan, &out->context, error);
done:
  hn_model_destroy(bound);
  if (status != HONE_OK) hn_side_close(out);
  return status;
}

hone_status hn_side_open_saved(const char *path, const hn_side_options *o, hn_side *out, hone_error *error) {
  *out = (hn_side){0};
  hn_saved_head head;
  uint32_t index;
  hone_status status = hn_saved_peek(path, &head, error);
  if (status == HONE_OK) status = hn_backend_find(o->device, &out->backend, &index, error);
  if (status == HONE_OK)
    status = out->backend->open(index, o->threads ? o->threads : head.threads, NULL, &out->device, error);
  if (status == HONE_OK) status = hn_saved_open(path, out->backend, out->device, &out->plan, error);
  if (status == HONE_OK) status = hn_context_create(out->plan, &out->context, error);
  if (status != HONE_OK) hn_side_close(out);
  return status;
}

void hn_side_close(hn_side *s) {
  if (s->context) hn_context_destroy(s->context);
  if (s->plan) hn_plan_free(s->plan);
  hn_tuned_destroy(s->tuned);
  if (s->device) s->backend->close(s->device);
  *s = (hn_side){0};
}

hone_status hn_side_run(hn_side *s, const hn_feed *feeds, uint32_t n, hone_error *error) {
  uint32_t wanted = s->plan->n_inputs;
  const hone_tensor **in = hn_calloc(wanted ? wanted : 1, sizeof *in);
  if (!in) return hn_fail_memory(error, wanted * sizeof *in, "inputs");
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < wanted && status == HONE_OK; i++) {
    for (uint32_t k = 0; k < n; k++)
      if (strcmp(feeds[k].name, s->plan->inputs[i]->name) == 0) in[i] = &feeds[k].data.tensor;
    if (!in[i] && i < n) in[i] = &feeds[i].data.tensor;
    const hone_tensor_desc *want = hn_plan_given(s->plan, i);
    if (!in[i] || in[i]->desc.dtype != want->dtype || !hone_desc_same_dims(&in[i]->desc, want)) {
      char a[128], b[128];
      status = hn_fail(error, HONE_ERROR_INPUT, "the two models do not take the same inputs: '%s'",
                       s->plan->inputs[i]->name);
      hn_error_expected(error, "%s", in[i] ? hone_desc_format(&in[i]->desc, a, sizeof a) : "no such input");
      hn_error_got(error, "%s", hone_desc_format(want, b, sizeof b));
    }
  }
  hn_run_limits limits = {.max_seconds = s->max_seconds};
  if (status == HONE_OK) status = hn_context_run(s->context, in, &limits, error);
  hn_free((void *)in);
  return status;
}

int hn_output_of(const hn_plan *p, const char *name, uint32_t i) {
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (strcmp(p->outputs[k]->name, name) == 0) return (int)k;
  return i < p->n_outputs ? (int)i : -1;
}
