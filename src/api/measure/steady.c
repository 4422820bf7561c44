/* Long runs: does latency, memory, temperature or clock move? */
#include "api/measure/disturbance.h"
#include "api/measure/median.h"
#include "api/measure/slow.h"
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"

#include <hone/memory.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN_WINDOW = 1024, LEAST_WINDOWS = 8 /* with which a run that was stopped counts */ };
#define SENSOR_SECONDS 2.0  /* asking an accelerator takes time of its own */
#define MEMORY_SECONDS 60.0 /* memory is sampled at least as often as this, however long a window is */
/* A pool that takes so much more than it did at first has surged. */
#define SURGE_FACTOR 1.5
#define SURGE_BYTES ((uint64_t)16 << 20)

/* Keeps `most` of an unknown number of values, evenly spread: when it is full every second one is dropped and
 * from then on only every second is taken. */
typedef struct thinned {
  double *v;
  hone_disturbance *seen; /* beside the values; NULL: not kept */
  uint32_t n, most;
  uint64_t count, every;
} thinned;

static void thin(thinned *t, double v, hone_disturbance seen) {
  if (t->count++ % t->every) return;
  if (t->n == t->most) {
    for (uint32_t i = 0; i < t->n / 2; i++) {
      t->v[i] = t->v[2 * i];
      if (t->seen) t->seen[i] = t->seen[2 * i];
    }
    t->n /= 2;
    t->every *= 2;
    if ((t->count - 1) % t->every) return;
  }
  if (t->seen) t->seen[t->n] = seen;
  t->v[t->n++] = v;
}

/* One call of hone_steady_measure. */
typedef struct long_run {
  const hone_subject *subject;
  const hone_steady_options *o;
  hone_steady *out;
  hn_slow_watch slow;
  thinned all;
  double window[IN_WINDOW];
  HN_VEC(hone_memory_sample) memory;
  uint64_t first_reserved; /* by all pools, at the first sample */
} long_run;

static bool is_cpu(const hone_subject *s) { return !s->device || strcmp(s->device, "cpu") == 0; }

static void read_device(const hone_subject *subject, hone_steady *r, size_t at) {
  hone_sensors s;
  hone_error e = {0};
  if (is_cpu(subject)) return;
  r->temperature_c[at] = r->clock_mhz[at] = (double)NAN;
  if (r->device_unread[0]) return;
  if (at && r->time_s[at] - r->time_s[at - 1] < SENSOR_SECONDS && at % 8) return;
  if (hone_device_sensors(subject->device, &s, &e) != HONE_OK) {
    snprintf(r->device_unread, sizeof r->device_unread, "%s", e.what);
    return;
  }
  for (uint32_t i = 0; i < s.count; i++) {
    if (strcmp(s.sensor[i].name, "temperature") == 0) r->temperature_c[at] = s.sensor[i].value;
    if (strcmp(s.sensor[i].name, "sm_clock") == 0) r->clock_mhz[at] = s.sensor[i].value;
  }
}

/* What the pools hold now. After a surge what is free goes back: it was wanted once, not for good. */
static hone_status sample_memory(long_run *l, double time_s, double rss_bytes, hone_memory_sample *out,
                                 hone_error *error) {
  hone_engine *engine = hone_plan_engine(l->subject->plan);
  hone_memory_stats m;
  hone_status status = hone_engine_memory(engine, &m, error);
  if (status != HONE_OK) return status;
  uint64_t reserved = 0, spare = 0;
  for (uint32_t i = 0; i < m.n_pools; i++) {
    reserved += m.pool[i].reserved;
    spare += m.pool[i].free_bytes;
  }
  if (!l->memory.len) l->first_reserved = reserved;
  *out = (hone_memory_sample){.time_ns = (int64_t)(time_s * 1e9),
                              .rss_bytes = rss_bytes > 0 ? (uint64_t)rss_bytes : m.host_rss,
                              .pool_used_bytes = m.pool[0].used,
                              .pool_reserved_bytes = m.pool[0].reserved};
  hone_memory_stats_free(&m);
  if ((double)reserved > SURGE_FACTOR * (double)l->first_reserved + (double)SURGE_BYTES &&
      spare > SURGE_BYTES)
    l->out->reclaims += hone_engine_reclaim(engine) > 0;
  return hn_vec_push(&l->memory, *out)
             ? HONE_OK
             : hn_fail_memory(error, (l->memory.len + 1) * sizeof *out, "samples of memory");
}

/* The end of a window: its latencies, and what the system did since `before`. */
static hone_status end_window(long_run *l, double start_s, uint32_t n, hone_system_sample *before,
                              hone_error *error) {
  hone_steady *r = l->out;
  hone_system_sample now;
  hone_sample_stats t;
  hone_memory_sample memory;
  size_t at = r->n;
  hone_system_read(&now);
  bool known = hone_stats_compute(l->window, n, &t) && n;
  r->time_s[at] = now.time_s - start_s;
  r->latency_ms[at] = known ? t.p50 : (double)NAN;
  r->p95_ms[at] = known ? t.p95 : (double)NAN;
  r->rss_mb[at] = now.rss_bytes / 1048576;
  hone_status status = sample_memory(l, r->time_s[at], now.rss_bytes, &memory, error);
  if (status != HONE_OK) return status;
  r->pool_used_mb[at] = (double)memory.pool_used_bytes / 1048576;
  r->pool_reserved_mb[at] = (double)memory.pool_reserved_bytes / 1048576;
  r->temperature_c[at] = now.temperature_c;
  r->clock_mhz[at] = now.clock_mhz;
  r->involuntary_switches[at] = now.involuntary_switches - before->involuntary_switches;
  r->voluntary_switches[at] = now.voluntary_switches - before->voluntary_switches;
  r->minor_faults[at] = now.minor_faults - before->minor_faults;
  r->major_faults[at] = now.major_faults - before->major_faults;
  double room = (now.time_s - before->time_s) * now.processors;
  double others = (now.busy_seconds - before->busy_seconds) - (now.own_seconds - before->own_seconds);
  r->others_pct[at] = room > 0 ? fmax(0, 100 * others / room) : (double)NAN;
  read_device(l->subject, r, at);
  r->n++;
  const double throttles = now.throttles - before->throttles;
  *before = r->last = now;
  return hn_slow_stretch(&l->slow, r->clock_mhz[at], r->others_pct[at], throttles, error);
}

/* One window's runs; *window: how many latencies were kept of them. */
static hone_status run_window(long_run *l, double start, double end, uint32_t *kept, hone_error *error) {
  const hone_subject *s = l->subject;
  thinned window = {.v = l->window, .most = IN_WINDOW, .every = 1};
  struct rusage usage;
  hone_status status;
  double sampled = hn_watch_ms() * 1e-3;
  getrusage(RUSAGE_SELF, &usage);
  do {
    double t = hn_watch_ms();
    status = hn_watch_run(l->o->watch, s->context, s->in, l->o->max_seconds, error);
    t = hn_watch_ms() - t;
    if (status != HONE_OK) break;
    const hone_disturbance seen = hn_disturbance(&usage);
    l->out->runs++;
    l->out->measured_ms += t;
    thin(&window, t, seen);
    if (l->all.most) thin(&l->all, t, seen);
    const double now_s = hn_watch_ms() * 1e-3;
    status = hn_slow_saw(&l->slow, now_s - start, t, seen, error);
    hone_memory_sample memory;
    if (status == HONE_OK && now_s - sampled > MEMORY_SECONDS) {
      status = sample_memory(l, now_s - start, 0, &memory, error);
      sampled = now_s;
    }
  } while (status == HONE_OK && hn_watch_ms() * 1e-3 < end);
  *kept = window.n;
  return status;
}

static hone_status run_windows(long_run *l, hone_error *error) {
  hone_steady *r = l->out;
  hone_system_sample before;
  hone_status status = hn_slow_begin(&l->slow, l->subject, error);
  hone_system_read(&before);
  const double start = before.time_s, throttles = before.throttles, one = r->seconds / HONE_STEADY_WINDOWS;
  for (uint32_t k = 0; k < HONE_STEADY_WINDOWS && status == HONE_OK; k++) {
    uint32_t n;
    status = run_window(l, start, start + one * (k + 1), &n, error);
    if (n && (status == HONE_OK || status == HONE_ERROR_CANCELLED)) {
      hone_error other = {0};
      const hone_status ended = end_window(l, start, n, &before, &other);
      if (status == HONE_OK && ended != HONE_OK) {
        status = ended;
        if (error) *error = other;
      }
    }
    if (!hn_watch_tell(l->o->watch, "bench", k + 1, HONE_STEADY_WINDOWS) && status == HONE_OK)
      status = hn_watch_stopped(error);
    /* A run longer than a window: the windows that it passed over are not made up. */
    while (k + 1 < HONE_STEADY_WINDOWS && hn_watch_ms() * 1e-3 > start + one * (k + 2)) k++;
  }
  r->throttles = r->last.throttles - throttles;
  if (status != HONE_ERROR_CANCELLED || r->n < LEAST_WINDOWS) return status;
  if (error) *error = (hone_error){0};
  return HONE_OK;
}

/* Memory settles first: what caches and pools take in the beginning is no leak. */
static bool find_drifts(hone_steady *r) {
  size_t settle = r->n / 4;
  return hone_drift_compute(r->time_s, r->latency_ms, r->n, &r->latency) &&
         hone_drift_compute(r->time_s + settle, r->rss_mb + settle, r->n - settle, &r->rss) &&
         hone_drift_compute(r->time_s, r->temperature_c, r->n, &r->temperature) &&
         hone_drift_compute(r->time_s, r->clock_mhz, r->n, &r->clock);
}

static void add_counter(hone_facts *f, const char *name, const char *unit, double v) {
  if (isfinite(v)) hone_facts_add_counter(f, &(hone_counter){name, unit, -1, v});
}

static void add_drift(hone_facts *f, const char *name, const char *unit, const hone_drift *d) {
  char key[64];
  const struct {
    const char *end;
    double v;
  } parts[] = {{"", d->slope * 3600}, {"_low", d->low * 3600}, {"_high", d->high * 3600}};
  for (size_t i = 0; d->n && i < 3; i++) {
    snprintf(key, sizeof key, "%s_per_hour%s", name, parts[i].end);
    add_counter(f, key, unit, parts[i].v);
  }
}

static void add_range(hone_facts *f, const char *name, const char *unit, const double *v, size_t n) {
  char key[64];
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++)
    if (isfinite(v[i])) low = fmin(low, v[i]), high = fmax(high, v[i]);
  if (high < low) return;
  snprintf(key, sizeof key, "%s_min", name);
  add_counter(f, key, unit, low);
  snprintf(key, sizeof key, "%s_max", name);
  add_counter(f, key, unit, high);
}

static double sum(const double *v, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += v[i];
  return s;
}

static double batch(const hone_subject *s) {
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  return d && d->rank > 0 && d->dim[0] > 0 ? (double)d->dim[0] : 1;
}

static void add_windows(hone_facts *f, const long_run *l) {
  const hone_steady *r = l->out;
  for (size_t i = 0; i < r->n; i++) {
    const int64_t end = (int64_t)(r->time_s[i] * 1e9), wall = (int64_t)(r->latency_ms[i] * 1e6);
    hone_facts_add_span(f, &(hone_span){.start_ns = end - wall,
                                        .end_ns = end,
                                        .kind = HONE_SPAN_RUN,
                                        .iteration = (int32_t)i,
                                        .step = -1});
    hone_facts_add_wall(f, (int32_t)i, wall);
  }
  for (size_t i = 0; i < l->memory.len; i++) hone_facts_add_memory_sample(f, &l->memory.ptr[i]);
}

/* The windows as the record that rules read: a window is an iteration with its median run as wall. */
static hone_status make_facts(long_run *l, hone_error *error) {
  hone_steady *r = l->out;
  const hone_subject *s = l->subject;
  hone_memory_stats memory;
  hone_facts *f = r->record.facts = hone_facts_create();
  if (!f) return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for facts");
  hone_facts_set_meta(f, &(hone_facts_meta){.tool = "hone",
                                            .tool_version = hone_version(),
                                            .backend = s->device ? s->device : "cpu",
                                            .outer_clock = "CLOCK_MONOTONIC",
                                            .batch = batch(s),
                                            .opt_level = s->level,
                                            .runs = (double)r->runs});
  if (s->describe) s->describe(s->arg, f);
  add_windows(f, l);
  hone_status status = hone_engine_memory(hone_plan_engine(s->plan), &memory, error);
  if (status != HONE_OK) return status;
  hone_memory_record(&memory, f);
  hone_memory_stats_free(&memory);
  for (size_t i = 0; i < r->n_slow; i++) hone_facts_add_slow_run(f, &r->slow[i].run);
  add_counter(f, "measured_ms", "ms", r->measured_ms);
  add_drift(f, "latency_drift", "ms/h", &r->latency);
  add_drift(f, "rss_growth", "MiB/h", &r->rss);
  add_drift(f, "temperature_drift", "C/h", &r->temperature);
  add_drift(f, "clock_drift", "MHz/h", &r->clock);
  add_range(f, "temperature_c", "C", r->temperature_c, r->n);
  add_range(f, "clock_mhz", "MHz", r->clock_mhz, r->n);
  add_counter(f, "throttles", "", r->throttles);
  add_counter(f, "others_cpu", "%", sum(r->others_pct, r->n) / (double)r->n);
  add_counter(f, "involuntary_switches", "", sum(r->involuntary_switches, r->n));
  add_counter(f, "minor_faults", "", sum(r->minor_faults, r->n));
  add_counter(f, "major_faults", "", sum(r->major_faults, r->n));
  add_counter(f, "pool_reclaims", "", r->reclaims);
  status = hone_profile_create(f, NULL, &r->record.profile, error);
  return status == HONE_OK ? hone_diagnose(r->record.profile, NULL, &r->findings, error) : status;
}

/* Of the kept samples, or, where none were asked for, of the windows. */
static double usual_ms(const long_run *l) {
  return l->all.n ? hn_median_of(l->all.v, l->all.n) : hn_median_of(l->out->latency_ms, l->out->n);
}

static hone_status measure(long_run *l, hone_error *error) {
  hone_steady *r = l->out;
  hone_status status = run_windows(l, error);
  hn_slow_end(&l->slow);
  if (status != HONE_OK) return status;
  r->n_slow = hn_slow_settle(&l->slow, usual_ms(l), hn_median_of(r->clock_mhz, r->n), r->slow);
  if (!find_drifts(r)) return hn_fail(error, HONE_ERROR_MEMORY, "out of memory");
  return make_facts(l, error);
}

hone_status hone_steady_measure(const hone_subject *s, const hone_steady_options *o, uint32_t *kept,
                                hone_steady *out, hone_error *error) {
  if (!s || !s->plan || !s->context || (!s->in && hone_plan_inputs(s->plan)) || !o || !(o->seconds > 0) ||
      !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_steady_measure needs a subject with plan, context and inputs, more than 0 seconds, "
                   "and a place for the result");
  *out = (hone_steady){.seconds = o->seconds};
  long_run *l = hn_calloc(1, sizeof *l);
  if (!l) return hn_fail_memory(error, sizeof *l, "a long run");
  *l = (long_run){
      .subject = s, .o = o, .out = out, .all = {o->samples, o->seen, 0, o->samples ? o->most : 0, 0, 1}};
  const hone_status status = measure(l, error);
  if (kept) *kept = l->all.n;
  hn_vec_free(&l->memory);
  hn_free(l);
  if (status != HONE_OK) hone_steady_free(out);
  return status;
}

void hone_steady_free(hone_steady *r) {
  if (!r) return;
  hone_findings_destroy(r->findings);
  r->findings = NULL;
  hone_recording_free(&r->record);
}
