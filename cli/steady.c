#include "cli/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN_WINDOW = 1024 };
#define SENSOR_SECONDS 2.0 /* asking an accelerator takes time of its own */

double steady_seconds(const char *text) {
  char *end;
  double v = strtod(text, &end), unit = 1;
  if (end == text || !isfinite(v) || v <= 0) return -1;
  if (*end) {
    unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : -1;
    if (end[1] || unit < 0) return -1;
  }
  return v * unit <= 1e7 ? v * unit : -1;
}

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

hone_disturbance steady_disturbance(struct rusage *since) {
  struct rusage now;
  getrusage(RUSAGE_SELF, &now);
  const hone_disturbance d = {(uint32_t)(now.ru_nivcsw - since->ru_nivcsw),
                              (uint32_t)(now.ru_minflt - since->ru_minflt),
                              (uint32_t)(now.ru_majflt - since->ru_majflt)};
  *since = now;
  return d;
}

double steady_temperature(const cli_args *args) {
  hone_sensors s;
  hone_error e = {0};
  hone_system_sample now;
  if (strcmp(cli_device_name(args), "cpu") == 0) {
    hone_system_read(&now);
    return now.temperature_c;
  }
  if (hone_device_sensors(cli_device_name(args), &s, &e) != HONE_OK) return NAN;
  for (uint32_t i = 0; i < s.count; i++)
    if (strcmp(s.sensor[i].name, "temperature") == 0) return s.sensor[i].value;
  return NAN;
}

static void read_device(const cli_args *args, steady_run *r, size_t at) {
  hone_sensors s;
  hone_error e = {0};
  if (strcmp(cli_device_name(args), "cpu") == 0) return;
  r->temperature_c[at] = r->clock_mhz[at] = NAN;
  if (r->device_unread[0]) return;
  if (at && r->time_s[at] - r->time_s[at - 1] < SENSOR_SECONDS && at % 8) return;
  if (hone_device_sensors(cli_device_name(args), &s, &e) != HONE_OK) {
    snprintf(r->device_unread, sizeof r->device_unread, "%s", e.what);
    return;
  }
  for (uint32_t i = 0; i < s.count; i++) {
    if (strcmp(s.sensor[i].name, "temperature") == 0) r->temperature_c[at] = s.sensor[i].value;
    if (strcmp(s.sensor[i].name, "sm_clock") == 0) r->clock_mhz[at] = s.sensor[i].value;
  }
}

/* The end of a window: its latencies, and what the system did since `before`. */
static hone_status end_window(steady_run *r, const cli_args *args, double start_s, double *ms, uint32_t n,
                              hone_system_sample *before, hone_error *error) {
  hone_system_sample now;
  hone_sample_stats t;
  size_t at = r->n;
  hone_system_read(&now);
  bool known = hone_stats_compute(ms, n, &t) && n;
  r->time_s[at] = now.time_s - start_s;
  r->latency_ms[at] = known ? t.p50 : (double)NAN;
  r->p95_ms[at] = known ? t.p95 : (double)NAN;
  r->rss_mb[at] = now.rss_bytes / 1048576;
  r->temperature_c[at] = now.temperature_c;
  r->clock_mhz[at] = now.clock_mhz;
  r->involuntary_switches[at] = now.involuntary_switches - before->involuntary_switches;
  r->voluntary_switches[at] = now.voluntary_switches - before->voluntary_switches;
  r->minor_faults[at] = now.minor_faults - before->minor_faults;
  r->major_faults[at] = now.major_faults - before->major_faults;
  double room = (now.time_s - before->time_s) * now.processors;
  double others = (now.busy_seconds - before->busy_seconds) - (now.own_seconds - before->own_seconds);
  r->others_pct[at] = room > 0 ? fmax(0, 100 * others / room) : (double)NAN;
  read_device(args, r, at);
  r->n++;
  const double throttles = now.throttles - before->throttles;
  *before = r->last = now;
  return slow_stretch(&r->slow, r->clock_mhz[at], r->others_pct[at], throttles, error);
}

static hone_status run_windows(cli_session *s, const cli_args *args, steady_run *r, thinned *all,
                               hone_error *error) {
  static double ms[IN_WINDOW];
  hone_system_sample before;
  struct rusage usage;
  hone_status status = slow_begin(&r->slow, s, args, error);
  hone_system_read(&before);
  double start = before.time_s, throttles = before.throttles;
  for (size_t k = 0; k < STEADY_WINDOWS && status == HONE_OK; k++) {
    thinned window = {.v = ms, .most = IN_WINDOW, .every = 1};
    double end = start + r->seconds * (double)(k + 1) / STEADY_WINDOWS;
    getrusage(RUSAGE_SELF, &usage);
    do {
      double t = cli_now_ms();
      status = cli_session_run(s, args, error);
      t = cli_now_ms() - t;
      if (status != HONE_OK) break;
      hone_disturbance seen = steady_disturbance(&usage);
      r->runs++;
      r->measured_ms += t;
      thin(&window, t, seen);
      thin(all, t, seen);
      status = slow_saw(&r->slow, cli_now_ms() * 1e-3 - start, t, seen, error);
    } while (status == HONE_OK && cli_now_ms() * 1e-3 < end);
    if (window.n && (status == HONE_OK || status == HONE_ERROR_CANCELLED)) {
      hone_error other = {0};
      hone_status ended = end_window(r, args, start, ms, window.n, &before, &other);
      if (status == HONE_OK && ended != HONE_OK) status = ended, *error = other;
    }
    cli_progress("bench", k + 1, STEADY_WINDOWS);
    /* A run longer than a window: the windows that it passed over are not made up. */
    while (k + 1 < STEADY_WINDOWS &&
           cli_now_ms() * 1e-3 > start + r->seconds * (double)(k + 2) / STEADY_WINDOWS)
      k++;
  }
  r->throttles = r->last.throttles - throttles;
  cli_progress_end();
  /* Ctrl-C ends the wait, not what was seen. */
  return status == HONE_ERROR_CANCELLED && r->n >= 8 ? HONE_OK : status;
}

/* Memory settles first: what caches and pools take in the beginning is no leak. */
static bool find_drifts(steady_run *r) {
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

static void add_slow_runs(hone_facts *f, const steady_run *r) {
  for (size_t i = 0; i < r->slow.n_worst; i++) hone_facts_add_slow_run(f, &r->slow.worst[i].facts);
  add_counter(f, "measured_ms", "ms", r->measured_ms);
}

/* The windows as the record that rules read: a window is an iteration with its median run as wall. */
static hone_status make_facts(steady_run *r, const cli_session *s, const cli_args *args, const char *path,
                              hone_error *error) {
  hone_facts *f = r->record.facts = hone_facts_create();
  if (!f) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for facts"};
    return HONE_ERROR_MEMORY;
  }
  hone_facts_set_meta(f, &(hone_facts_meta){.tool = "hone",
                                            .tool_version = hone_version(),
                                            .hone_version = cli_hone_version(),
                                            .model = path,
                                            .backend = cli_device_name(args),
                                            .outer_clock = "CLOCK_MONOTONIC",
                                            .batch = (double)cli_batch(s),
                                            .opt_level = args->level < 0 ? 2 : (double)args->level,
                                            .runs = (double)r->runs});
  cli_record_options(args, s, f);
  for (size_t i = 0; i < r->n; i++) {
    int64_t end = (int64_t)(r->time_s[i] * 1e9), wall = (int64_t)(r->latency_ms[i] * 1e6);
    hone_facts_add_span(f, &(hone_span){.start_ns = end - wall,
                                        .end_ns = end,
                                        .kind = HONE_SPAN_RUN,
                                        .iteration = (int32_t)i,
                                        .step = -1});
    hone_facts_add_wall(f, (int32_t)i, wall);
    if (isfinite(r->rss_mb[i]))
      hone_facts_add_memory_sample(
          f, &(hone_memory_sample){.time_ns = end, .rss_bytes = (uint64_t)(r->rss_mb[i] * 1048576)});
  }
  add_slow_runs(f, r);
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
  hone_status status = hone_profile_create(f, NULL, &r->record.profile, error);
  return status == HONE_OK ? hone_diagnose(r->record.profile, NULL, &r->findings, error) : status;
}

hone_status steady_measure(cli_session *s, const cli_args *args, const char *path, double seconds,
                           double *samples, hone_disturbance *seen, uint32_t most, uint32_t *kept,
                           steady_run *out, hone_error *error) {
  thinned all = {.v = samples, .seen = seen, .most = most, .every = 1};
  *out = (steady_run){.seconds = seconds};
  hone_status status = run_windows(s, args, out, &all, error);
  *kept = all.n;
  slow_end(&out->slow);
  hone_sample_stats t;
  if (status == HONE_OK && all.n && hone_stats_compute(samples, all.n, &t))
    slow_settle(&out->slow, t.p50, cli_median(out->clock_mhz, out->n));
  if (status == HONE_OK && !find_drifts(out)) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    status = HONE_ERROR_MEMORY;
  }
  if (status == HONE_OK) status = make_facts(out, s, args, path, error);
  return status;
}

void steady_free(steady_run *r) {
  hone_findings_destroy(r->findings);
  cli_profile_free(&r->record);
}

bool steady_range(const double *celsius, size_t n, double *low, double *high) {
  *low = INFINITY, *high = -INFINITY;
  for (size_t i = 0; i < n; i++)
    if (isfinite(celsius[i])) *low = fmin(*low, celsius[i]), *high = fmax(*high, celsius[i]);
  return *high >= *low;
}

static json_t *series(const double *v, size_t n) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) json_array_append_new(list, cli_real(v[i]));
  return list;
}

static json_t *drift_json(const hone_drift *d) {
  if (!d->n) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:i}", "level", cli_real(d->level), "per_hour",
                   cli_real(d->slope * 3600), "low", cli_real(d->low * 3600), "high",
                   cli_real(d->high * 3600), "change", cli_real(d->change), "certain", d->certain, "windows",
                   (int)d->n);
}

/* Why temperature or clock is missing, in words; "" when it is there. */
static const char *unread(const steady_run *r, const char *what) {
  return r->device_unread[0] && strcmp(what, "throttles") != 0 ? r->device_unread
                                                               : hone_system_unread(&r->last, what);
}

static hone_status into_text(void *user, const char *data, size_t n, hone_error *error) {
  (void)error;
  json_t **out = user;
  *out = json_loadb(data, n, 0, NULL);
  return HONE_OK;
}

static json_t *findings_json(const steady_run *r) {
  json_t *document = NULL;
  hone_error error = {0};
  hone_report_input in = {.baseline = r->record.profile, .findings = r->findings};
  if (hone_report_write(&in, HONE_REPORT_FINDINGS_JSON, into_text, &document, &error) != HONE_OK || !document)
    return json_array();
  json_t *list = json_incref(json_object_get(document, "findings"));
  json_decref(document);
  return list ? list : json_array();
}

json_t *steady_json(const steady_run *r) {
  static const char *const quantities[] = {"temperature", "clock", "throttles"};
  json_t *windows = json_object(), *missing = json_array();
  json_object_set_new(windows, "time_s", series(r->time_s, r->n));
#define X(name) json_object_set_new(windows, #name, series(r->name, r->n));
  STEADY_SERIES(X)
#undef X
  for (size_t i = 0; i < 3; i++)
    if (*unread(r, quantities[i]))
      json_array_append_new(missing,
                            json_pack("{s:s, s:s}", "what", quantities[i], "why", unread(r, quantities[i])));
  return json_pack("{s:f, s:I, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o}", "seconds",
                   r->n ? r->time_s[r->n - 1] : 0, "runs", (json_int_t)r->runs, "windows", windows, "drift",
                   "latency_ms", drift_json(&r->latency), "rss_mb", drift_json(&r->rss), "temperature_c",
                   drift_json(&r->temperature), "clock_mhz", drift_json(&r->clock), "throttles",
                   cli_real(r->throttles), "not_measured", missing, "slow_runs", slow_json(&r->slow),
                   "findings", findings_json(r));
}

/* Beneath this share of the level a movement is no news, however certain it is. */
#define NEWS 0.01

static void drift_text(const char *name, const char *unit, const hone_drift *d, const char *why) {
  if (*why) {
    cli_print("  %-12snot measured: %s\n", name, why);
    return;
  }
  if (!d->n) {
    cli_print("  %-12stoo few windows\n", name);
    return;
  }
  const char *word = !d->certain || fabs(d->change) < NEWS * d->level ? "steady"
                     : d->slope > 0                                   ? "rising"
                                                                      : "falling";
  /* A slope is not drawn far beyond what was measured. */
  const bool minutes = d->slope != 0 && fabs(d->change / d->slope) < 600;
  const double per = minutes ? 60 : 3600;
  cli_print("  %-12s%s at %.4g %s: %+.2f %% over the run, %+.3g %s %s (95 %%: %+.3g to %+.3g)\n", name, word,
            d->level, unit, d->level > 0 ? 100 * d->change / d->level : 0, d->slope * per, unit,
            minutes ? "a minute" : "an hour", d->low * per, d->high * per);
}

void steady_text(const steady_run *r) {
  cli_print("stability   %llu runs in %.1f s, %zu windows\n", (unsigned long long)r->runs,
            r->n ? r->time_s[r->n - 1] : 0, r->n);
  drift_text("latency", "ms", &r->latency, "");
  drift_text("memory", "MiB", &r->rss, isfinite(r->last.rss_bytes) ? "" : "the system does not say");
  drift_text("temperature", "C", &r->temperature, unread(r, "temperature"));
  drift_text("clock", "MHz", &r->clock, unread(r, "clock"));
  if (isfinite(r->throttles))
    cli_print("  %-12s%.0f\n", "throttled", r->throttles);
  else
    cli_print("  %-12snot measured: %s\n", "throttled", unread(r, "throttles"));
  cli_print("  %-12s%.1f %% of the processors; %.0f involuntary switches, %.0f pages mapped, %.0f read "
            "from disk\n",
            "others", r->n ? sum(r->others_pct, r->n) / (double)r->n : 0, sum(r->involuntary_switches, r->n),
            sum(r->minor_faults, r->n), sum(r->major_faults, r->n));
  slow_text(&r->slow);
  fflush(stdout);
  const hone_report_input in = {.baseline = r->record.profile,
                                .findings = r->findings,
                                .sections = HONE_SECTION_FINDINGS,
                                .width = cli_columns(),
                                .colors = cli_colors(stdout),
                                .unicode = cli_unicode()};
  if (r->findings && r->findings->count) cli_print_report(&in, HONE_REPORT_TEXT);
}
