/* What is known of a pipeline while it runs, and the thread that sets its workers. */
#include "api/pipeline/pipe.h"
#include "base/error.h"
#include "base/os.h"

#include <math.h>
#include <string.h>

/* ---- the controller */

static void keep(hone_pipeline *p, const hone_pipeline_moment *m) {
  if (p->skipped++ % p->stride) return;
  if (p->n_moments == HN_PIPE_MOMENTS) { /* every other one goes, and from now on half as many come */
    for (uint32_t i = 0; i < HN_PIPE_MOMENTS / 2; i++) p->moment[i] = p->moment[2 * i];
    p->n_moments /= 2;
    p->stride *= 2;
  }
  p->moment[p->n_moments++] = *m;
}

/* With p->lock. */
static void control(hone_pipeline *p) {
  hn_flow_stats now;
  hn_flow_stats_get(p->flow, &now);
  const hn_flow_stats *before = &p->seen;
  const double ns = (double)(now.now_ns - before->now_ns);
  if (!before->now_ns || ns <= 0) {
    p->seen = now;
    return;
  }
  hn_control_sample s = {.seconds = ns * 1e-9};
  hone_pipeline_moment m = {.seconds = (double)(now.now_ns - p->made_ns) * 1e-9,
                            .rate = (double)(now.told - before->told) / (ns * 1e-9)};
  for (int i = 0; i < HONE_STAGES; i++) {
    s.waiting[i] = (double)(now.waiting_area[i] - before->waiting_area[i]) / ns;
    s.running[i] = (double)(now.running_area[i] - before->running_area[i]) / ns;
  }
  for (int i = 0; i < HONE_STAGES; i++) {
    m.workers[i] = now.active[i];
    m.fill[i] = hn_control_fill(&p->control, &s, (hone_stage)i);
  }
  p->seen = now;
  keep(p, &m);
  if (!now.in_flight) return; /* nothing to be learnt */
  hn_control_step(&p->control, &s);
  for (uint32_t i = 0; i < HONE_STAGES; i++)
    if (!p->control.fixed[i]) hn_flow_set_workers(p->flow, i, p->control.workers[i]);
}

static void *watch(void *arg) {
  hone_pipeline *p = arg;
  const uint64_t period = (uint64_t)(fmin(fmax(p->control.gains.period, 1e-3), 60) * 1e9);
  uint64_t next = hn_now_ns();
  pthread_mutex_lock(&p->lock);
  while (!p->ending) {
    next += period;
    const struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
    while (!p->ending && hn_now_ns() < next) pthread_cond_timedwait(&p->wake, &p->lock, &until);
    if (!p->ending) control(p);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

hone_status hn_pipe_control_start(hone_pipeline *p, hone_error *error) {
  p->stride = 1;
  p->moment = hn_calloc(HN_PIPE_MOMENTS, sizeof *p->moment);
  if (!p->moment) return hn_fail_memory(error, HN_PIPE_MOMENTS * sizeof *p->moment, "a pipeline's course");
  hone_pipeline_moment first = {.seconds = (double)(hn_now_ns() - p->made_ns) * 1e-9};
  for (uint32_t i = 0; i < HONE_STAGES; i++) {
    if (!p->control.fixed[i]) hn_flow_set_workers(p->flow, i, p->control.workers[i]);
    first.workers[i] = p->control.workers[i];
  }
  keep(p, &first);
  if (pthread_create(&p->controller, NULL, watch, p) != 0)
    return hn_fail(error, HONE_ERROR_MEMORY, "the pipeline's controller could not be started");
  p->controlled = true;
  return HONE_OK;
}

void hn_pipe_control_end(hone_pipeline *p) {
  if (!p->controlled) return;
  pthread_mutex_lock(&p->lock);
  p->ending = true;
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
  pthread_join(p->controller, NULL);
  p->controlled = false;
}

/* ---- what is told */

static hone_stage_state stage_state(const hone_pipeline *p, const hn_flow_stats *s, uint32_t i) {
  const double all = (double)(s->now_ns - s->begin_ns);
  return (hone_stage_state){.items = s->items[i],
                            .runs = s->runs[i],
                            .busy_seconds = (double)s->busy_ns[i] * 1e-9,
                            .item_seconds =
                                s->items[i] ? (double)s->spent_ns[i] * 1e-9 / (double)s->items[i] : 0,
                            .workers_mean = all > 0 ? (double)s->active_area[i] / all : s->active[i],
                            .workers = s->active[i],
                            .most_workers = p->shape.workers[i],
                            .running = s->running[i],
                            .waiting = s->waiting[i],
                            .queue = i ? p->shape.queue[i] : p->in_flight,
                            .most_waiting = s->most_waiting[i]};
}

/* The stage that can do the least: its workers, each with an item every busy / items seconds. Items that
 * ended before it took none of its time. */
static void ceiling(hone_pipeline_state *out) {
  for (int i = 0; i < HONE_STAGES; i++) {
    const hone_stage_state *s = &out->stage[i];
    if (!s->items || !(s->busy_seconds > 0)) continue;
    const uint64_t items = s->items > out->told ? s->items : out->told;
    const double rate = s->workers_mean * (double)items / s->busy_seconds;
    if (out->ceiling > 0 && rate >= out->ceiling) continue;
    out->ceiling = rate;
    out->limit = (hone_stage)i;
  }
}

static hone_pipeline_split split(const hone_pipeline *p, const hn_flow_stats *s) {
  const double n = s->told ? (double)s->told * 1e9 : 1;
  uint64_t idle = s->held_ns;
  for (int i = 0; i < HONE_STAGES; i++) idle += s->waited_ns[i];
  hone_pipeline_split t = {.pre = (double)s->spent_ns[HONE_STAGE_PRE] / n,
                           .h2d = (double)p->h2d_ns / n,
                           .d2h = (double)p->d2h_ns / n,
                           .post = (double)s->spent_ns[HONE_STAGE_POST] / n,
                           .idle = (double)idle / n,
                           .total = (double)s->whole_ns / n};
  t.infer = (double)s->spent_ns[HONE_STAGE_INFER] / n - t.h2d - t.d2h;
  t.residual = t.total - (t.pre + t.h2d + t.infer + t.d2h + t.post + t.idle);
  return t;
}

hone_status hone_pipeline_state_get(hone_pipeline *p, hone_pipeline_state *out, hone_error *error) {
  if (!p || !p->flow || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_state_get: pipeline and out may not be NULL");
  hn_flow_stats s;
  hn_flow_stats_get(p->flow, &s);
  *out = (hone_pipeline_state){.submitted = s.submitted,
                               .told = s.told,
                               .good = s.told - s.failed - s.cancelled,
                               .failed = s.failed,
                               .cancelled = s.cancelled,
                               .in_flight = s.in_flight,
                               .most_in_flight = s.most_in_flight,
                               .batch = p->batch};
  for (uint32_t i = 0; i < HONE_STAGES; i++) out->stage[i] = stage_state(p, &s, i);
  ceiling(out);
  pthread_mutex_lock(&p->lock);
  if (p->first_ns && p->last_ns > p->first_ns) out->seconds = (double)(p->last_ns - p->first_ns) * 1e-9;
  out->split = split(p, &s);
  pthread_mutex_unlock(&p->lock);
  out->rate = out->seconds > 0 ? (double)out->told / out->seconds : 0;
  return HONE_OK;
}

hone_status hone_pipeline_moments(hone_pipeline *p, hone_pipeline_moment *out, uint32_t room, uint32_t *n,
                                  hone_error *error) {
  if (!p || !p->flow || !n || (room && !out))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_moments: pipeline, out and n may not be NULL");
  pthread_mutex_lock(&p->lock);
  const uint32_t all = p->n_moments;
  *n = all < room ? all : room;
  for (uint32_t i = 0; i < *n; i++) out[i] = p->moment[*n == all ? i : (uint64_t)i * all / *n];
  pthread_mutex_unlock(&p->lock);
  return HONE_OK;
}
