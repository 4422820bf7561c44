/* See race.h. */
#include "cli/op/race.h"

#include "cli/op/network.h"
#include "cli/op/pool.h"
#include "cli/op/step.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/median.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURN = 10 };

static hone_status out_of_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
  return HONE_ERROR_MEMORY;
}

/* ------------------------------------------------------------------ plans */

/* Its inputs by name. */
static void feed(const op_race *r, op_version *v) {
  char name[80];
  for (uint32_t i = 0; i < hone_plan_inputs(v->plan) && i < OP_MOST; i++)
    for (uint32_t k = 0; k < r->sample.n_in; k++)
      if (strcmp(hone_plan_input_name(v->plan, i), op_input_name(r->subject, k, name, sizeof name)) == 0)
        v->in[i] = &r->sample.in[k];
}

/* What the plan does, and whether that is what was meant. */
static void look(op_version *v, const char *tactic) {
  hone_step_info s;
  bool found = false;
  char steps[200] = "";
  v->bytes = 0;
  for (uint32_t i = 0; hone_plan_step(v->plan, i, &s); i++) {
    v->bytes += s.bytes;
    found |= tactic && s.tactic && strcmp(s.tactic, tactic) == 0;
    snprintf(steps + strlen(steps), sizeof steps - strlen(steps), "%s%s", i ? ", " : "", s.what);
    for (uint32_t k = 0; k < s.n_refused && tactic && !found; k++)
      if (strcmp(s.refused[k].by, tactic) == 0)
        snprintf(v->why, sizeof v->why, "it does not take this: %.200s", s.refused[k].text);
  }
  if (!tactic)
    snprintf(v->name, sizeof v->name, "%s: %.150s", v->role == OP_APART ? "unfused" : "hone without it",
             steps);
  else if (found)
    v->why[0] = 0;
  else if (!*v->why)
    snprintf(v->why, sizeof v->why, "the plan has another tactic");
}

static void drop(op_version *v) {
  hone_context_destroy(v->context);
  hone_plan_destroy(v->plan);
  hone_engine_destroy(v->engine);
  v->context = NULL;
  v->plan = NULL;
  v->engine = NULL;
}

/* What cannot be made is said of the version; memory alone is an error. */
static hone_status make(op_race *r, op_version *v, const char *text, const char *tactic, const char *device,
                        uint32_t threads, hone_error *error) {
  hone_model *m = NULL;
  hone_error e = {0};
  const hone_engine_options eo = {.device = device, .threads = threads, .tactics = tactic};
  hone_status status = hone_model_parse(text, strlen(text), &m, &e);
  if (status == HONE_OK) status = hone_engine_create(&eo, &v->engine, &e);
  const hone_plan_options po = {.level = 2, .separate = v->role == OP_APART};
  if (status == HONE_OK) status = hone_plan_create(v->engine, m, &po, &v->plan, &e);
  hone_model_release(m);
  if (status == HONE_OK) {
    look(v, tactic);
    feed(r, v);
    if (!*v->why) status = hone_context_create(v->plan, &v->context, &e);
  }
  if (status == HONE_ERROR_MEMORY) {
    *error = e;
    return status;
  }
  if (status != HONE_OK) (void)hone_error_format(&e, v->why, sizeof v->why);
  if (*v->why) drop(v);
  return HONE_OK;
}

static bool runs_on(const hone_tactic_desc *t, const char *device) {
  const char *d = device ? device : "cpu";
  const size_t n = strcspn(d, ":");
  return strlen(t->device) == n && strncmp(t->device, d, n) == 0;
}

hone_status op_race_tactics(op_race *r, const char *device, uint32_t threads, hone_error *error) {
  const hone_plugin *p = r->subject->of;
  char text[OP_NETWORK];
  hone_status status = HONE_OK;
  if (!op_network_of_operator(r->subject, &r->sample, text, sizeof text)) return out_of_memory(error);
  for (uint32_t i = 0; i < p->n_tactics && r->n < OP_VERSIONS - 2 && status == HONE_OK; i++) {
    const hone_tactic_desc *t = p->tactic[i];
    if (!op_has_tactic(r->subject, t) || !runs_on(t, device)) continue;
    op_version *v = &r->version[r->n++];
    v->role = OP_TACTIC;
    snprintf(v->name, sizeof v->name, "%s", t->name);
    status = make(r, v, text, t->name, device, threads, error);
  }
  if (!op_network_of_pattern(r->subject, &r->sample, r->apart, sizeof r->apart)) r->apart[0] = 0;
  return status;
}

hone_status op_race_nodes(op_race *r, const char *device, uint32_t threads, hone_error *error) {
  hone_status status = HONE_OK;
  for (op_role role = OP_APART; *r->apart && role <= OP_WITHOUT && status == HONE_OK; role++) {
    op_version *v = &r->version[r->n++];
    v->role = role;
    snprintf(v->name, sizeof v->name, "%s", role == OP_APART ? "unfused" : "hone without it");
    status = make(r, v, r->apart, NULL, device, threads, error);
  }
  return status;
}

void op_race_free(op_race *r) {
  for (uint32_t i = 0; i < r->n; i++) {
    drop(&r->version[i]);
    free(r->version[i].us);
  }
  op_sample_free(&r->sample);
}

/* ------------------------------------------------------------------ measuring */

/* One run, in microseconds: of an accelerator its steps alone, by its own clock. */
static hone_status once(op_version *v, bool again, double *us, hone_error *error) {
  double seconds = 0;
  if (again) {
    const hone_status status = hone_context_repeat(v->context, &seconds, error);
    *us = seconds * 1e6;
    return status;
  }
  const double begin = cli_now_ms();
  const hone_status status = hone_context_run(v->context, v->in, NULL, error);
  *us = (cli_now_ms() - begin) * 1e3;
  return status;
}

static hone_status turn(op_version *v, uint32_t warmups, uint32_t runs, hone_error *error) {
  double us;
  const bool apart = strcmp(hone_engine_machine(v->engine)->device, "cpu") != 0;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < warmups && status == HONE_OK; i++) status = once(v, apart && i, &us, error);
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++)
    status = once(v, apart && (i || warmups), &v->us[v->n++], error);
  return status;
}

hone_status op_race_run(op_race *r, uint32_t warmups, uint32_t runs, hone_error *error) {
  for (uint32_t i = 0; i < r->n; i++) {
    op_version *v = &r->version[i];
    if (v->context && !(v->us = calloc(runs + 1, sizeof *v->us))) return out_of_memory(error);
  }
  for (uint32_t done = 0; done < runs && !cli_interrupted(); done += TURN)
    for (uint32_t i = 0; i < r->n; i++) {
      op_version *v = &r->version[i];
      const uint32_t n = runs - done < TURN ? runs - done : TURN;
      if (!v->context || *v->why) continue;
      hone_error e = {0};
      if (turn(v, done ? 1 : warmups, n, &e) != HONE_OK) (void)hone_error_format(&e, v->why, sizeof v->why);
    }
  for (uint32_t i = 0; i < r->n; i++)
    if (r->version[i].us && !hone_stats_compute(r->version[i].us, r->version[i].n, &r->version[i].stats))
      return out_of_memory(error);
  return HONE_OK;
}

/* ------------------------------------------------------------------ dispatch */

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

static double compare(op_race *r, const hone_tactic_desc *t) {
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
  if (!op_network_of_operator(r->subject, &r->sample, text, sizeof text)) goto done;
  if (make(r, &p->plan, text, t->name, NULL, 1, &e) != HONE_OK || !p->plan.context) goto done;
  machine = *hone_engine_machine(p->plan.engine);
  if (!op_step_make(&p->step, &r->sample, HONE_LAYOUT_ROW_MAJOR, HONE_MATH_F32)) goto done;
  if (!t->accepts(&p->step.step, &machine, &why)) goto done;
  if (t->need && t->need(&p->step.step, &machine, &need, &e) != HONE_OK) goto done;
  blob = aligned_alloc(ALIGN, need.blob_bytes / ALIGN * ALIGN + ALIGN);
  workspace = aligned_alloc(ALIGN, need.workspace_bytes / ALIGN * ALIGN + ALIGN);
  if (!blob || !workspace) goto done;
  if (t->prepack && need.blob_bytes && t->prepack(&p->step.step, &machine, blob, &e) != HONE_OK) goto done;
  for (uint32_t i = 0; i < r->sample.n_in; i++) in[i] = r->sample.in[i].data;
  for (uint32_t i = 0; i < r->sample.n_out; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&r->sample.out[i]);
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
  for (uint32_t i = 0; i < r->sample.n_out; i++) free(out[i]);
  free(blob);
  free(workspace);
  op_step_free(&p->step);
  drop(&p->plan);
  free(p);
  return us;
}

double op_race_dispatch(const op_subject *s, const op_sample *like) {
  static const int64_t most[] = {1, 4, 8, 16};
  double us = NAN;
  for (size_t k = 0; k < sizeof most / sizeof *most && isnan(us); k++) {
    op_shape shape[OP_MOST];
    op_race *r = calloc(1, sizeof *r);
    hone_error e;
    if (!r) return NAN;
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
    r->subject = s;
    if (op_sample_draw(&random, &w, &r->sample, &e))
      for (uint32_t i = 0; i < s->of->n_tactics && isnan(us); i++)
        if (op_has_tactic(s, s->of->tactic[i]) && runs_on(s->of->tactic[i], NULL))
          us = compare(r, s->of->tactic[i]);
    op_race_free(r);
    free(r);
  }
  return us;
}
