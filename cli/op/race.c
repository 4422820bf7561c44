/* See race.h. */
#include "cli/op/race.h"

#include "cli/op/network.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"

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
static void feed(const op_subject *s, const op_sample *x, op_version *v) {
  char name[80];
  for (uint32_t i = 0; i < hone_plan_inputs(v->plan) && i < OP_MOST; i++)
    for (uint32_t k = 0; k < x->n_in; k++)
      if (strcmp(hone_plan_input_name(v->plan, i), op_input_name(s, k, name, sizeof name)) == 0)
        v->in[i] = &x->in[k];
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

void op_version_drop(op_version *v) {
  hone_context_destroy(v->context);
  hone_plan_destroy(v->plan);
  hone_engine_destroy(v->engine);
  v->context = NULL;
  v->plan = NULL;
  v->engine = NULL;
}

hone_status op_version_make(const op_subject *s, const op_sample *x, op_version *v, const char *text,
                            const char *tactic, const char *device, uint32_t threads, hone_error *error) {
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
    feed(s, x, v);
    if (!*v->why) status = hone_context_create(v->plan, &v->context, &e);
  }
  if (status == HONE_ERROR_MEMORY) {
    *error = e;
    return status;
  }
  if (status != HONE_OK) (void)hone_error_format(&e, v->why, sizeof v->why);
  if (*v->why) op_version_drop(v);
  return HONE_OK;
}

bool op_runs_on(const hone_tactic_desc *t, const char *device) {
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
    if (!op_has_tactic(r->subject, t) || !op_runs_on(t, device)) continue;
    op_version *v = &r->version[r->n++];
    v->role = OP_TACTIC;
    snprintf(v->name, sizeof v->name, "%s", t->name);
    status = op_version_make(r->subject, &r->sample, v, text, t->name, device, threads, error);
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
    status = op_version_make(r->subject, &r->sample, v, r->apart, NULL, device, threads, error);
  }
  return status;
}

void op_race_free(op_race *r) {
  for (uint32_t i = 0; i < r->n; i++) {
    op_version_drop(&r->version[i]);
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
