#include "cli/options/load.h"
#include "cli/options/times.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_status wrong(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static hone_status wrong(hone_error *error, const char *format, ...) {
  va_list ap;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  va_start(ap, format);
  vsnprintf(error->what, sizeof error->what, format, ap);
  va_end(ap);
  return HONE_ERROR_USAGE;
}

bool cli_load_asked(const cli_args *args) { return args->scenario || args->curve || args->streams; }

static hone_status read_scenario(const cli_args *args, hone_scenario *out, hone_error *error) {
  const char *names[8];
  uint32_t n = 0;
  *out = args->streams && !args->curve ? HONE_SCENARIO_OFFLINE : HONE_SCENARIO_CLOSED;
  if (!args->scenario) return HONE_OK;
  for (hone_scenario s = 0; s != HONE_SCENARIO_CLOSED; s++) {
    names[n++] = hone_scenario_name(s);
    if (strcmp(args->scenario, hone_scenario_name(s)) != 0) continue;
    *out = s;
    return HONE_OK;
  }
  wrong(error, "--scenario knows no '%.80s'", args->scenario);
  snprintf(error->expected, sizeof error->expected, "single, multi, server or offline");
  const char *near = cli_nearest(args->scenario, names, n);
  if (near) snprintf(error->hint, sizeof error->hint, "did you mean '%s'?", near);
  return HONE_ERROR_USAGE;
}

/* Options that only some of it takes: whether this one is given, where it means something. */
static hone_status check_together(const cli_args *args, hone_scenario s, hone_error *error) {
  const bool server = s == HONE_SCENARIO_SERVER;
  const struct {
    bool given, fits;
    const char *name, *of;
  } rules[] = {
      {args->latency_bound, server, "latency-bound", "--scenario server"},
      {args->qps > 0, server || s == HONE_SCENARIO_OFFLINE, "qps", "--scenario server or offline"},
      {args->query_samples, s == HONE_SCENARIO_MULTI, "query-samples", "--scenario multi"},
      {args->percentile > 0, s < HONE_SCENARIO_OFFLINE, "percentile", "--scenario single, multi or server"},
      {args->min_duration, cli_load_asked(args), "min-duration", "--scenario or --curve"},
      {args->min_queries, cli_load_asked(args), "min-queries", "--scenario or --curve"},
      {args->samples, cli_load_asked(args), "samples", "--scenario or --curve"},
      {args->load_seeds, cli_load_asked(args), "load-seeds", "--scenario or --curve"},
      {args->html, args->curve, "html", "--curve"},
      {args->in_flight, args->scenario && s != HONE_SCENARIO_SINGLE, "in-flight",
       "--scenario multi, server or offline"},
      {args->streams, s != HONE_SCENARIO_SINGLE && !args->curve, "streams",
       "--scenario multi, server or offline"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].given && !rules[i].fits)
      return wrong(error, "--%s belongs to %s", rules[i].name, rules[i].of);
  const char *other = args->runs > 0   ? "runs"
                      : args->duration ? "duration"
                      : args->counters ? "counters"
                      : args->save     ? "save"
                                       : NULL;
  if (cli_load_asked(args) && other)
    return wrong(error, "--%s and %s exclude each other", other,
                 args->scenario ? "--scenario"
                 : args->curve  ? "--curve"
                                : "--streams");
  if (args->streams && args->in_flight) return wrong(error, "--streams and --in-flight exclude each other");
  if (args->pinned && args->pageable) return wrong(error, "--pinned and --pageable exclude each other");
  if (args->scenario && args->curve) return wrong(error, "--scenario and --curve exclude each other");
  return HONE_OK;
}

static hone_status read_time(const char *option, const char *text, uint64_t least, uint64_t *ns,
                             hone_error *error) {
  if (!text || (cli_nanoseconds(text, ns) && *ns >= least)) return HONE_OK;
  return wrong(error, "--%s wants a time such as 15ms, 10s or 10m, got '%.80s'", option, text);
}

static hone_status read_seeds(const char *text, hone_load_settings *s, hone_error *error) {
  uint64_t *const seed[] = {&s->set_seed, &s->sample_seed, &s->schedule_seed};
  const char *at = text;
  for (int i = 0; text && i < 3; i++) {
    char *end;
    errno = 0;
    *seed[i] = strtoull(at, &end, 10);
    if (*at < '0' || *at > '9' || errno || *end != (i < 2 ? ',' : 0))
      return wrong(error, "--load-seeds wants three whole numbers such as 1,2,3, got '%.80s'", text);
    at = end + 1;
  }
  return HONE_OK;
}

static void read_numbers(const cli_args *args, cli_load *out) {
  hone_load_settings *s = &out->settings;
  out->curve = args->curve > 0;
  out->in_flight = (uint32_t)(args->curve       ? args->curve
                              : args->in_flight ? args->in_flight
                              : args->streams   ? args->streams
                                                : 1);
  out->streams = args->streams > 0;
  out->search = s->scenario == HONE_SCENARIO_SERVER && !(args->qps > 0);
  s->qps = args->qps;
  s->samples = (uint32_t)args->samples;
  if (args->query_samples) s->query_samples = (uint32_t)args->query_samples;
  if (args->percentile > 0) s->percentile = args->percentile / 100;
  if (args->min_queries) s->min_queries = (uint64_t)args->min_queries;
}

hone_status cli_load_read(const cli_args *args, cli_load *out, hone_error *error) {
  hone_scenario scenario;
  *out = (cli_load){0};
  hone_status status = read_scenario(args, &scenario, error);
  if (status == HONE_OK) status = check_together(args, scenario, error);
  if (status != HONE_OK || !cli_load_asked(args)) return status;
  hone_load_defaults(scenario, &out->settings);
  if (args->curve) out->settings.min_duration_ns = 1000000000u;
  read_numbers(args, out);
  if (scenario == HONE_SCENARIO_SERVER && !args->latency_bound)
    return wrong(error, "--scenario server wants --latency-bound TIME, such as 15ms");
  if (out->in_flight > 1024)
    return wrong(error, "at most 1024 runs can be in flight, got %u", out->in_flight);
  if (args->percentile > 0 && (args->percentile < 50 || args->percentile > 99.99))
    return wrong(error, "--percentile wants a number from 50 to 99.99, got %g", args->percentile);
  status = read_time("latency-bound", args->latency_bound, 1, &out->settings.bound_ns, error);
  if (status == HONE_OK)
    status = read_time("min-duration", args->min_duration, 0, &out->settings.min_duration_ns, error);
  if (status == HONE_OK) status = read_seeds(args->load_seeds, &out->settings, error);
  return status;
}
