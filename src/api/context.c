/* Public context functions: arguments are checked here and nowhere below. */
#include "api/api.h"
#include "api/background.h"
#include "api/objects.h"
#include "base/error.h"
#include "model/ir/items.h"
#include "runtime/context.h"
#include "runtime/provenance.h"
#include "runtime/record.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

const hn_context *hn_api_context(const hone_context *c) { return c->context; }
hn_context *hn_api_context_inside(hone_context *c) { return c->context; }

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

static hone_status rebind_alone(hone_context *c, const hone_binding *bindings, uint32_t n, bool *done,
                                hone_error *error) {
  if (!done || (n && !bindings))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_context_rebind needs bindings and a place for the answer");
  *done = false;
  if (atomic_load(&c->plan->in_use) != 1)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "a plan that has other contexts cannot become one for other shapes");
  if (c->facts || c->counts)
    return hn_fail(error, HONE_ERROR_USAGE, "a context that records cannot go on with other shapes");
  const uint64_t lost = hn_mem_lost();
  hn_context_forget(c->context);
  if (!c->plan->lined) return HONE_OK;
  hone_status status = hn_lines_move(c->plan, bindings, n, done, error);
  if (status == HONE_OK && *done) status = hn_context_follow(c->context, error);
  return of_file(c->plan, hn_settle(status, lost, error), error);
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

hone_status hone_context_rebind(hone_context *c, const hone_binding *bindings, uint32_t n, bool *done,
                                hone_error *error) {
  hone_status status = enter(c, error);
  return status == HONE_OK ? leave(c, rebind_alone(c, bindings, n, done, error)) : status;
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
