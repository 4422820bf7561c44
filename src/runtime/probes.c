#include "base/error.h"
#include "runtime/inside.h"
#include "runtime/pools.h"

#include <math.h>

void hn_context_clock(hn_context *c, bool on) { c->remote.clock = on; }

hone_status hn_context_times(const hn_context *c, double *h2d, double *infer, double *d2h,
                             hone_error *error) {
  double *out[] = {h2d, infer, d2h};
  for (int i = 0; i < 3; i++)
    if (out[i]) *out[i] = 0;
  return c->apart ? hn_remote_times(c->plan, &c->remote, h2d, infer, d2h, error) : HONE_OK;
}

/* Steps can be done again where everything is as the last run had it. */
static hone_status has_run(const hn_context *c, hone_error *error) {
  if (!c->given) return hn_fail(error, HONE_ERROR_USAGE, "a context runs before it repeats");
  return hn_lent_stays(c->plan, &c->lent)
             ? HONE_OK
             : hn_fail(error, HONE_ERROR_USAGE, "outputs were bound elsewhere since the last run");
}

/* The steps once more, on the inputs that lie there. */
static hone_status again(hn_context *c, hone_error *error) {
  const hone_status ran = has_run(c, error);
  if (ran != HONE_OK) return ran;
  hn_steps_drop(c);
  hn_arena_free(&c->ref.keep);
  c->ref.budget = (hn_budget){.cancel = &c->cancel};
  if (!c->apart) hn_pools_serve(c->plan, &c->ref.budget);
  return HONE_OK;
}

hone_status hn_context_issue(hn_context *c, hone_issue *out, hone_error *error) {
  const hn_plan *p = c->plan;
  *out = (hone_issue){0};
  hone_status status = again(c, error);
  if (status != HONE_OK) return status;
  const hn_launched before = p->backend->launched(c->remote.queue);
  const uint64_t start = hn_now_ns();
  status = hn_apart_pieces(c, false, error);
  out->seconds = (double)(hn_now_ns() - start) * 1e-9;
  const hn_launched after = p->backend->launched(c->remote.queue);
  out->kernels = (uint32_t)(after.kernels - before.kernels);
  out->driver_seconds = (double)(after.ns - before.ns) * 1e-9;
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  return status == HONE_OK ? synced : status;
}

hone_status hn_context_repeat(hn_context *c, double *seconds, hone_error *error) {
  const hn_plan *p = c->plan;
  hn_event *from = c->remote.mark[HN_MARK_GIVEN], *to = c->remote.mark[HN_MARK_DONE];
  *seconds = 0;
  hone_status status = again(c, error);
  if (status != HONE_OK) return status;
  status = p->backend->event_record(p->device, c->remote.queue, from, error);
  if (status == HONE_OK) status = hn_apart_pieces(c, !c->watch, error);
  if (status == HONE_OK) status = p->backend->event_record(p->device, c->remote.queue, to, error);
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  if (status == HONE_OK) status = synced;
  return status == HONE_OK ? p->backend->event_seconds(p->device, from, to, seconds, error) : status;
}

typedef struct counted {
  hn_context *context;
  uint32_t *step; /* numbers of those that the device does */
} counted;

static hone_status do_counted(void *arg, uint32_t i, hone_error *error) {
  const counted *w = arg;
  return hn_steps_issue(w->context, &w->context->plan->steps.ptr[w->step[i]], error);
}

static const struct {
  const char *name, *unit;
} counts[HN_COUNTS] = {
#define X(id, name, unit) [HN_COUNT_##id] = {name, unit},
    HN_DEVICE_COUNTS(X)
#undef X
};

static void write_counts(hone_facts *facts, const counted *w, const hn_counts *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    for (int k = 0; k < HN_COUNTS; k++)
      if (isfinite(out[i].value[k]))
        hone_facts_add_counter(
            facts, &(hone_counter){counts[k].name, counts[k].unit, (int32_t)w->step[i], out[i].value[k]});
  for (int k = 0; k < HN_COUNTS; k++) {
    bool read = !n;
    for (uint32_t i = 0; i < n && !read; i++) read = isfinite(out[i].value[k]);
    if (!read) hone_facts_add_unmeasured(facts, counts[k].name, "this device has no such counter");
  }
  if (!n)
    hone_facts_add_unmeasured(
        facts, "hardware counters",
        "the device does none of these steps: views, steps of the host, shapes that only the run knows");
}

hone_status hn_context_counters(hn_context *c, const uint32_t *steps, uint32_t n_steps, hone_facts *facts,
                                hone_error *error) {
  const hn_plan *p = c->plan;
  const uint32_t most = steps ? n_steps : (uint32_t)p->steps.len;
  if (!p->backend->counters)
    return hn_fail(error, HONE_ERROR_MISSING, "device %s has no counters", p->backend->name);
  const hone_status ran = has_run(c, error);
  if (ran != HONE_OK) return ran;
  counted w = {c, hn_calloc(most + 1, sizeof *w.step)};
  hn_counts *out = hn_calloc(most + 1, sizeof *out);
  uint32_t n = 0;
  hone_status status = w.step && out ? HONE_OK : hn_fail_memory(error, most * sizeof *out, "counters");
  for (uint32_t k = 0; status == HONE_OK && k < most; k++) {
    const uint32_t s = steps ? steps[k] : k;
    if (s < p->steps.len && p->steps.ptr[s].kind == HN_STEP_TACTIC) w.step[n++] = s;
  }
  p->backend->lane(p->device, c->remote.queue, 0);
  if (status == HONE_OK && n) status = p->backend->counters(p->device, n, do_counted, &w, out, error);
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  if (status == HONE_OK) status = synced;
  if (status == HONE_OK) write_counts(facts, &w, out, n);
  hn_free(w.step);
  hn_free(out);
  return status;
}

uint32_t hn_context_fallen_back(const hn_context *c, uint32_t *step, uint32_t most) {
  uint32_t n = 0;
  for (uint32_t k = 0; c->apart && k < c->plan->steps.len; k++) {
    if (!c->late.fell_back[k]) continue;
    if (n < most) step[n] = k;
    n++;
  }
  return n;
}
