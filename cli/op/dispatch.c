/* See dispatch.h. */
#include "cli/op/dispatch.h"

#include "cli/op/network.h"
#include "cli/op/pool.h"
#include "cli/op/race.h"
#include "cli/op/step.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/median.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the processor */

enum { BATCHES = 9, CALLS = 1000, ALIGN = 64 };

/* A plan's run of the step, and the tactic's own function on the same. */
typedef struct pair {
  op_version plan;
  op_step step;
  hone_step_run run;
  const hone_tactic_desc *tactic;
} pair;

static hone_status call(pair *p, bool planned, hone_error *e) {
  return planned ? hone_context_run(p->plan.context, p->plan.in, NULL, e) : p->tactic->run(&p->run, e);
}

/* Beside a step that takes long, what surrounds it cannot be seen. */
static double timed(pair *p, bool planned) {
  double us[BATCHES];
  const double first = cli_now_ms();
  hone_error none;
  if (call(p, planned, &none) != HONE_OK || cli_now_ms() - first > 1) return NAN;
  hone_error e = {0};
  hone_status status = HONE_OK;
  for (int b = 0; b < BATCHES; b++) {
    const double begin = cli_now_ms();
    for (int i = 0; i < CALLS && status == HONE_OK; i++) status = call(p, planned, &e);
    us[b] = (cli_now_ms() - begin) * 1e3 / CALLS;
  }
  return status == HONE_OK ? cli_median(us, BATCHES) : (double)NAN;
}

static double of_run(const op_subject *s, const op_sample *x, const hone_tactic_desc *t) {
  hone_machine machine;
  hone_error e = {0};
  hone_reason why;
  hone_tactic_need need = {0};
  char text[OP_NETWORK];
  const void *in[OP_MOST];
  void *out[OP_MOST] = {NULL}, *blob = NULL, *workspace = NULL;
  double us = NAN;
  op_pool pool = {.order = OP_FORWARD, .threads = 1};
  pair *p = calloc(1, sizeof *p);
  if (!p) return NAN;
  p->tactic = t;
  if (!op_network_of_operator(s, x, text, sizeof text)) goto done;
  if (op_version_make(s, x, &p->plan, text, t->name, NULL, 1, &e) != HONE_OK || !p->plan.context) goto done;
  machine = *hone_engine_machine(p->plan.engine);
  if (!op_step_make(&p->step, x, HONE_LAYOUT_ROW_MAJOR, HONE_MATH_F32)) goto done;
  if (!t->accepts(&p->step.step, &machine, &why)) goto done;
  if (t->need && t->need(&p->step.step, &machine, &need, &e) != HONE_OK) goto done;
  blob = aligned_alloc(ALIGN, need.blob_bytes / ALIGN * ALIGN + ALIGN);
  workspace = aligned_alloc(ALIGN, need.workspace_bytes / ALIGN * ALIGN + ALIGN);
  if (!blob || !workspace) goto done;
  memset(blob, 0, need.blob_bytes);
  if (t->prepack && need.blob_bytes && t->prepack(&p->step.step, &machine, blob, &e) != HONE_OK) goto done;
  for (uint32_t i = 0; i < x->n_in; i++) in[i] = x->in[i].data;
  for (uint32_t i = 0; i < x->n_out; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&x->out[i]);
    if (!(out[i] = aligned_alloc(ALIGN, bytes / ALIGN * ALIGN + ALIGN))) goto done;
  }
  p->run = (hone_step_run){.step = &p->step.step,
                           .in = in,
                           .out = out,
                           .blob = blob,
                           .workspace = workspace,
                           .threads = 1,
                           .parallel = op_pool_parallel,
                           .pool = &pool};
  us = timed(p, true) - timed(p, false);
done:
  for (uint32_t i = 0; i < x->n_out; i++) free(out[i]);
  free(blob);
  free(workspace);
  op_step_free(&p->step);
  op_version_drop(&p->plan);
  free(p);
  return us;
}

/* ------------------------------------------------------------------ accelerators */

/* Until there are enough or it takes too long. */
enum { ISSUES = 2000, MOST_MS = 1000 };

static double of_issue(const op_subject *s, const op_sample *x, const hone_tactic_desc *t,
                       const char *device) {
  char text[OP_NETWORK];
  hone_error e = {0};
  hone_issue one;
  hone_step_info second;
  double us[ISSUES], result = NAN;
  uint32_t n = 0;
  op_version *v = calloc(1, sizeof *v);
  if (!v || !op_network_of_operator(s, x, text, sizeof text)) goto done;
  if (op_version_make(s, x, v, text, t->name, device, 0, &e) != HONE_OK || !v->context) goto done;
  if (hone_plan_step(v->plan, 1, &second)) goto done;
  /* The first run is what comes before any other; the first issue finds nothing in the caches. */
  if (hone_context_run(v->context, v->in, NULL, &e) != HONE_OK) goto done;
  if (hone_context_issue(v->context, &one, &e) != HONE_OK || !one.kernels) goto done;
  for (const double begin = cli_now_ms(); n < ISSUES && cli_now_ms() - begin < MOST_MS;) {
    if (hone_context_issue(v->context, &one, &e) != HONE_OK) goto done;
    us[n++] = (one.seconds - one.driver_seconds) * 1e6;
  }
  if (n) result = cli_median(us, n);
done:
  if (v) op_version_drop(v);
  free(v);
  return result;
}

/* ------------------------------------------------------------------ both */

double op_dispatch(const op_subject *s, const op_sample *like, const char *device) {
  /* The last: as they are, where what the step itself takes is not in the figure. */
  static const int64_t most[] = {1, 4, 8, 16, INT64_MAX};
  const bool cpu = !device || strcmp(device, "cpu") == 0;
  double us = NAN;
  for (size_t k = 0; k < sizeof most / sizeof *most - cpu && isnan(us); k++) {
    op_shape shape[OP_MOST];
    op_sample x = {0};
    hone_error e;
    for (uint32_t i = 0; i < like->n_in; i++) {
      shape[i].rank = like->in[i].desc.rank;
      for (int32_t d = 0; d < shape[i].rank; d++)
        shape[i].dim[d] = like->in[i].desc.dim[d] < most[k] ? like->in[i].desc.dim[d] : most[k];
    }
    op_random random = op_stream(1, "dispatch");
    const op_wish w = {.op = s->op,
                       .dtype = like->in[0].desc.dtype,
                       .given = shape,
                       .n_given = like->n_in,
                       .n_inputs = like->n_in,
                       .exact = true};
    if (op_sample_draw(&random, &w, &x, &e))
      for (uint32_t i = 0; i < s->of->n_tactics && isnan(us); i++) {
        const hone_tactic_desc *t = s->of->tactic[i];
        if (!op_has_tactic(s, t) || !op_runs_on(t, device)) continue;
        us = cpu ? of_run(s, &x, t) : of_issue(s, &x, t, device);
      }
    op_sample_free(&x);
  }
  return us;
}
