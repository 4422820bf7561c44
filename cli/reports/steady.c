/* Long runs, as readers see them. */
#include "cli/reports/steady.h"
#include "cli/options/files.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static const char *unread(const hone_steady *r, const char *what) {
  return r->device_unread[0] && strcmp(what, "throttles") != 0 ? r->device_unread
                                                               : hone_system_unread(&r->last, what);
}

static hone_status into_text(void *user, const char *data, size_t n, hone_error *error) {
  (void)error;
  json_t **out = user;
  *out = json_loadb(data, n, 0, NULL);
  return HONE_OK;
}

static json_t *findings_json(const hone_steady *r) {
  json_t *document = NULL;
  hone_error error = {0};
  hone_report_input in = {.baseline = r->record.profile, .findings = r->findings};
  if (hone_report_write(&in, HONE_REPORT_FINDINGS_JSON, into_text, &document, &error) != HONE_OK || !document)
    return json_array();
  json_t *list = json_incref(json_object_get(document, "findings"));
  json_decref(document);
  return list ? list : json_array();
}

json_t *steady_json(const hone_steady *r) {
  static const char *const quantities[] = {"temperature", "clock", "throttles"};
  json_t *windows = json_object(), *missing = json_array();
  json_object_set_new(windows, "time_s", series(r->time_s, r->n));
#define X(name) json_object_set_new(windows, #name, series(r->name, r->n));
  HONE_STEADY_SERIES(X)
#undef X
  for (size_t i = 0; i < 3; i++)
    if (*unread(r, quantities[i]))
      json_array_append_new(missing,
                            json_pack("{s:s, s:s}", "what", quantities[i], "why", unread(r, quantities[i])));
  return json_pack("{s:f, s:I, s:i, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o}", "seconds",
                   r->n ? r->time_s[r->n - 1] : 0, "runs", (json_int_t)r->runs, "pool_reclaims",
                   (int)r->reclaims, "windows", windows, "drift", "latency_ms", drift_json(&r->latency),
                   "rss_mb", drift_json(&r->rss), "temperature_c", drift_json(&r->temperature), "clock_mhz",
                   drift_json(&r->clock), "throttles", cli_real(r->throttles), "not_measured", missing,
                   "slow_runs", slow_json(r), "findings", findings_json(r));
}

static double sum(const double *v, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += v[i];
  return s;
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

void steady_text(const hone_steady *r) {
  cli_print("stability   %llu run%s in %.1f s, %zu window%s\n", (unsigned long long)r->runs, cli_s(r->runs),
            r->n ? r->time_s[r->n - 1] : 0, r->n, cli_s(r->n));
  drift_text("latency", "ms", &r->latency, "");
  drift_text("memory", "MiB", &r->rss, isfinite(r->last.rss_bytes) ? "" : "the system does not say");
  if (r->n)
    cli_print("  %-12s%.1f MiB used of %.1f reserved in the end%s\n", "pool", r->pool_used_mb[r->n - 1],
              r->pool_reserved_mb[r->n - 1],
              r->reclaims ? "; it had surged, and what was free was given back" : "");
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
  slow_text(r);
  fflush(stdout);
  const hone_report_input in = {
      .baseline = r->record.profile, .findings = r->findings, .sections = HONE_SECTION_FINDINGS};
  if (r->findings && r->findings->count) cli_print_report(&in, HONE_REPORT_TEXT);
}
