/* A test of a plan: its contexts, a thread for each. */
#include "api/load/crew.h"
#include "api/load/run.h"
#include "api/measure/watch.h"

#include "base/error.h"

#include <string.h>

typedef struct server {
  hone_context *context;
  hone_tensor *staged;    /* [inputs] full runs of rows; NULL: samples are taken as they are */
  const hone_tensor **in; /* [inputs] of them */
} server;

typedef struct site {
  const hone_load_target *t;
  uint32_t inputs;
  uint32_t n;
  server *server; /* [n] */
} site;

/* ---------------------------------------------------------------- getting ready */

static hone_status stage(const site *p, server *v, hone_error *error) {
  v->staged = hn_calloc(p->inputs + 1, sizeof *v->staged);
  v->in = hn_calloc(p->inputs + 1, sizeof *v->in);
  if (!v->staged || !v->in) return hn_fail_memory(error, p->inputs * sizeof *v->staged, "inputs");
  for (uint32_t i = 0; i < p->inputs; i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(p->t->plan, i);
    const size_t bytes = (size_t)hone_desc_bytes(d);
    v->staged[i] = (hone_tensor){.desc = *d, .data = hn_aligned(64, bytes)};
    if (!v->staged[i].data) return hn_fail_memory(error, bytes, "inputs");
    v->in[i] = &v->staged[i];
  }
  return HONE_OK;
}

static void free_site(site *p) {
  for (uint32_t k = 0; p->server && k < p->n; k++) {
    server *v = &p->server[k];
    for (uint32_t i = 0; v->staged && i < p->inputs; i++) hn_free(v->staged[i].data);
    hn_free(v->staged);
    hn_free(v->in);
    hone_context_destroy(v->context);
  }
  hn_free(p->server);
  *p = (site){0};
}

/* The rows of a sample, put where row `row` of the run is. */
static void put_row(const site *p, server *v, uint32_t sample, uint32_t row) {
  for (uint32_t i = 0; i < p->inputs; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&v->staged[i].desc) / p->t->rows;
    memcpy((char *)v->staged[i].data + row * bytes, p->t->in[(size_t)sample * p->inputs + i]->data, bytes);
  }
}

static hone_status run_samples(void *arg, uint32_t worker, const hn_taken *taken, hone_error *error) {
  const site *p = arg;
  server *v = &p->server[worker];
  const hone_run_options o = {0};
  if (!v->staged)
    return hone_context_run(v->context, &p->t->in[(size_t)taken->sample[0] * p->inputs], &o, error);
  for (uint32_t row = 0; row < p->t->rows; row++)
    put_row(p, v, taken->sample[row < taken->n ? row : taken->n - 1], row);
  return hone_context_run(v->context, v->in, &o, error);
}

static void cancel(void *arg) {
  const site *p = arg;
  for (uint32_t k = 0; k < p->n; k++) hone_context_cancel(p->server[k].context);
}

/* Of each context. */
static uint32_t own_threads(const hone_load_target *t) {
  return !t->threads ? 0 : t->threads < t->in_flight ? 1 : t->threads / t->in_flight;
}

/* A context for each, and one run of it, which is not measured. */
static hone_status open_site(const hone_load_target *t, const hone_watch *watch, site *p, hone_error *error) {
  *p = (site){
      .t = t, .inputs = hone_plan_inputs(t->plan), .server = hn_calloc(t->in_flight, sizeof *p->server)};
  if (!p->server) return hn_fail_memory(error, t->in_flight * sizeof *p->server, "contexts");
  const hn_taken first = {.n = 1, .sample = &(uint32_t){0}};
  for (; p->n < t->in_flight;) {
    server *v = &p->server[p->n++];
    hone_status status = hone_context_create(t->plan, &v->context, error);
    if (status == HONE_OK && t->threads) status = hone_context_set_threads(v->context, own_threads(t), error);
    if (status == HONE_OK && t->rows > 1) status = stage(p, v, error);
    if (status != HONE_OK) return status;
    if (watch && watch->running && !watch->running(watch->arg, v->context)) return hn_watch_stopped(error);
    status = run_samples(p, p->n - 1, &first, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* ---------------------------------------------------------------- what may be asked */

static hone_status check_sample(const hone_load_target *t, uint32_t sample, hone_error *error) {
  const uint32_t inputs = hone_plan_inputs(t->plan);
  for (uint32_t i = 0; i < inputs; i++) {
    const hone_tensor *given = t->in[(size_t)sample * inputs + i];
    const hone_tensor_desc *d = hone_plan_input_desc(t->plan, i);
    if (!given) return hn_fail(error, HONE_ERROR_USAGE, "sample %u has no input %u", sample, i);
    if (t->rows > 1 && (d->rank < 1 || d->dim[0] != (int64_t)t->rows))
      return hn_fail(error, HONE_ERROR_USAGE, "input '%s' is not %u rows", hone_plan_input_name(t->plan, i),
                     t->rows);
    if (hone_desc_bytes(&given->desc) * (int64_t)t->rows != hone_desc_bytes(d))
      return hn_fail(error, HONE_ERROR_USAGE, "sample %u does not fit input '%s'", sample,
                     hone_plan_input_name(t->plan, i));
  }
  return HONE_OK;
}

hone_status hn_load_check(const hone_load_target *t, const hone_load_settings *s, hone_error *error) {
  if (!t || !s || !t->plan || !t->in || !t->rows || !t->in_flight)
    return hn_fail(error, HONE_ERROR_USAGE, "a test wants a plan, samples, contexts and settings");
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->samples && status == HONE_OK; i++) status = check_sample(t, i, error);
  return status;
}

static hone_status serve(const hone_load_target *t, const hone_watch *watch, hn_course *course,
                         hone_error *error) {
  site p = {0};
  const hn_crew crew = {.arg = &p, .run = run_samples, .cancel = cancel, .watch = watch};
  hone_status status = open_site(t, watch, &p, error);
  if (status == HONE_OK) status = hn_crew_run(&crew, course, error);
  hn_watch_idle(watch);
  free_site(&p);
  if (status != HONE_ERROR_CANCELLED) return status;
  course->interrupted = true; /* before the first query */
  return HONE_OK;
}

hone_status hone_load_run(const hone_load_target *target, const hone_load_settings *s,
                          const hone_watch *watch, hone_load_result *out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "there is no place for the result");
  *out = (hone_load_result){0};
  hone_status status = hn_load_check(target, s, error);
  if (status != HONE_OK) return status;
  hone_load_target t = *target;
  if (s->scenario == HONE_SCENARIO_SINGLE) t.in_flight = 1; /* more would never run */
  hn_course course;
  status = hn_course_open(s, t.in_flight, t.rows, &course, error);
  if (status == HONE_OK) status = serve(&t, watch, &course, error);
  if (status == HONE_OK) hn_course_result(&course, out), out->threads = own_threads(&t);
  hn_course_close(&course);
  return status;
}
