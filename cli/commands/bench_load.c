/* hone bench --scenario and --curve: a plan under load. */
#include "cli/commands/bench_load.h"
#include "cli/options/files.h"
#include "cli/options/quiet.h"
#include "cli/options/session.h"
#include "cli/reports/load.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUPS = 5, MOST_SAMPLES = 1024, SAMPLES_BYTES = 64 << 20 };

/* Inputs that differ, and what serves them. */
typedef struct load {
  const cli_args *args;
  cli_session session;
  hone_load_settings settings;
  hone_load_target target;
  cli_pinned pinned;         /* of --pinned: what the feeds are */
  hone_data *data;           /* [samples * inputs]; of inputs that a file gave: none */
  hone_tensor *row;          /* [samples * inputs] */
  const hone_tensor **feeds; /* [samples * inputs] */
  size_t n;                  /* samples * inputs */
  double start_ms;
} load;

/* What came of it. */
typedef struct outcome {
  hone_load_result result;
  hone_load_peak peak;
  hone_load_result *points; /* of a curve */
  uint32_t n_points;
} outcome;

/* ---------------------------------------------------------------- samples */

static hone_status no_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for samples"};
  return HONE_ERROR_MEMORY;
}

/* A sample is what one run takes: nobody brings rows together. */
static bool whole(const load *l) { return l->args->pinned || l->args->pageable; }

/* Rows that can be samples of their own: --batch sets them, and every input has so many. */
static uint32_t rows_of(const load *l) {
  const int64_t rows = l->args->batch;
  if (whole(l) || rows <= 1 || rows > 1 << 20) return 1;
  for (uint32_t i = 0; i < hone_plan_inputs(l->session.plan); i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(l->session.plan, i);
    if (d->rank < 1 || d->dim[0] != rows) return 1;
  }
  return (uint32_t)rows;
}

static hone_tensor_desc desc_of(const load *l, uint32_t input) {
  hone_tensor_desc d = *hone_plan_input_desc(l->session.plan, input);
  if (l->target.rows > 1) d.dim[0] = 1;
  return d;
}

/* The model's number of the plan's input. */
static uint32_t port_of(const load *l, uint32_t input) {
  hone_port port;
  uint32_t i = 0;
  while (hone_model_input(l->session.model, i, &port) &&
         strcmp(port.name, hone_plan_input_name(l->session.plan, input)) != 0)
    i++;
  return i;
}

/* Whether a file gives all samples this input. */
static bool given(const load *l, uint32_t input) {
  const cli_session *s = &l->session;
  for (size_t k = 0; k < l->args->inputs.n; k++) {
    const char *text = l->args->inputs.item[k], *name = hone_plan_input_name(s->plan, input);
    const size_t n = strlen(name);
    if (!strchr(text, '=') || (strncmp(text, name, n) == 0 && text[n] == '=')) return true;
  }
  return false;
}

static uint32_t how_many(const load *l) {
  const uint32_t inputs = hone_plan_inputs(l->session.plan);
  double bytes = 0;
  for (uint32_t i = 0; i < inputs; i++) {
    const hone_tensor_desc d = desc_of(l, i);
    if (!given(l, i)) bytes += (double)hone_desc_bytes(&d);
  }
  if (l->settings.samples) return l->settings.samples;
  if (bytes <= 0) return 1;
  double fit = floor(SAMPLES_BYTES / bytes);
  /* Whole batches come from somewhere else than the one before. */
  if (whole(l) && fit < 2 && l->target.in_flight > 1) fit = 2;
  return fit < 1 ? 1 : fit < MOST_SAMPLES ? (uint32_t)fit : MOST_SAMPLES;
}

/* Input i of sample s: of its own, or a row of what the file gave. */
static hone_status make_feed(load *l, uint32_t s, uint32_t i, hone_error *error) {
  const uint32_t inputs = hone_plan_inputs(l->session.plan), rows = l->target.rows;
  const size_t at = (size_t)s * inputs + i;
  const hone_tensor_desc d = desc_of(l, i);
  l->feeds[at] = &l->row[at];
  if (given(l, i)) {
    char *all = l->session.feeds[i]->data;
    l->row[at] = (hone_tensor){.desc = d, .data = all + s % rows * (size_t)hone_desc_bytes(&d)};
    return HONE_OK;
  }
  const uint64_t seed = (l->args->seed ? (uint64_t)l->args->seed : 1) + s;
  const hone_status status =
      hone_data_for_input(l->session.model, port_of(l, i), &d, seed, &l->data[at], error);
  if (status == HONE_OK) l->row[at] = l->data[at].tensor;
  return status;
}

static hone_status make_samples(load *l, hone_error *error) {
  const uint32_t inputs = hone_plan_inputs(l->session.plan);
  l->target.plan = l->session.plan;
  l->target.rows = rows_of(l);
  l->settings.samples = how_many(l);
  l->n = (size_t)l->settings.samples * inputs;
  l->data = calloc(l->n + 1, sizeof *l->data);
  l->row = calloc(l->n + 1, sizeof *l->row);
  l->feeds = calloc(l->n + 1, sizeof *l->feeds);
  if (!l->data || !l->row || !l->feeds) return no_memory(error);
  l->target.in = l->feeds;
  for (uint32_t s = 0; s < l->settings.samples; s++)
    for (uint32_t i = 0; i < inputs; i++) {
      const hone_status status = make_feed(l, s, i, error);
      if (status != HONE_OK) return status;
    }
  if (!l->args->pinned) return HONE_OK;
  const hone_status status = cli_pin(l->session.engine, l->feeds, (uint32_t)l->n, &l->pinned, error);
  for (size_t k = 0; status == HONE_OK && k < l->n; k++) l->feeds[k] = &l->pinned.tensor[k];
  return status;
}

static void free_samples(load *l) {
  cli_unpin(&l->pinned);
  for (size_t i = 0; l->data && i < l->n; i++) hone_data_free(&l->data[i]);
  free(l->data);
  free(l->row);
  free(l->feeds);
}

/* ---------------------------------------------------------------- tests */

/* As cli_watch, and --max-seconds. */
static bool progress(void *arg, const char *what, uint32_t done, uint32_t total) {
  const load *l = arg;
  return cli_watch()->progress(NULL, what, done, total) &&
         cli_remaining(l->start_ms, l->args->max_seconds) > 0;
}

static bool running(void *arg, hone_context *context) {
  const load *l = arg;
  return cli_watch()->running(NULL, context) && cli_remaining(l->start_ms, l->args->max_seconds) > 0;
}

static hone_status warm_up(load *l, hone_error *error) {
  const int64_t runs = l->args->warmup >= 0 ? l->args->warmup : WARMUPS;
  hone_status status = HONE_OK;
  for (int64_t i = 0; i < runs && status == HONE_OK && cli_remaining(l->start_ms, l->args->max_seconds) > 0;
       i++)
    status = cli_session_run(&l->session, l->args, error);
  return status;
}

/* Offline wants to know how many samples will do; as many as all contexts answer in a second, at most. */
static hone_status expect(load *l, const hone_watch *watch, hone_error *error) {
  hone_load_settings s = l->settings;
  hone_load_result r;
  if (s.scenario != HONE_SCENARIO_OFFLINE || s.qps > 0) return HONE_OK;
  s.scenario = HONE_SCENARIO_CLOSED;
  s.min_queries = 16;
  if (s.min_duration_ns > 1000000000u) s.min_duration_ns = 1000000000u;
  const hone_status status = hone_load_run(&l->target, &s, watch, &r, error);
  l->settings.qps = r.rate > 0 ? r.rate : 1;
  return status;
}

static hone_status test(load *l, const cli_load *asked, outcome *out, hone_error *error) {
  const hone_watch watch = {.progress = progress, .running = running, .arg = l};
  if (asked->search) return hone_load_peak_find(&l->target, &l->settings, 0, &watch, &out->peak, error);
  if (asked->curve) {
    out->points = calloc(asked->in_flight, sizeof *out->points);
    if (!out->points) return no_memory(error);
    return hone_load_curve(&l->target, &l->settings, &watch, out->points, &out->n_points, error);
  }
  const hone_status status = expect(l, &watch, error);
  return status == HONE_OK ? hone_load_run(&l->target, &l->settings, &watch, &out->result, error) : status;
}

/* ---------------------------------------------------------------- the answer */

static int json(const load *l, const char *path, const cli_load *asked, const outcome *o) {
  const cli_args *args = l->args;
  json_t *doc =
      json_pack("{s:o, s:o, s:I, s:I}",
                asked->search  ? "search"
                : asked->curve ? "curve"
                               : "load",
                asked->search  ? cli_peak_json(&o->peak)
                : asked->curve ? cli_curve_json(o->points, o->n_points)
                               : cli_load_json(&o->result),
                "load_ms", cli_real(l->session.load_ms), "threads",
                (json_int_t)cli_threads(&l->session, args), "batch", (json_int_t)cli_batch(&l->session));
  if (!doc) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  cli_stamp(doc, args, path);
  json_object_set_new(doc, "interrupted", json_boolean(cli_interrupted()));
  return cli_print_json(doc);
}

static void title(const load *l, const char *path, const cli_load *asked, char *buf, size_t size) {
  const hone_load_settings *s = &l->settings;
  const int n = snprintf(buf, size, "%.300s on %.40s, %u thread%s, batch %lld, ", path,
                         cli_device_name(l->args), cli_threads(&l->session, l->args),
                         cli_s(cli_threads(&l->session, l->args)), (long long)cli_batch(&l->session));
  if (asked->curve)
    snprintf(buf + n, size - (size_t)n, "1 to %u in flight, at least %g s each", asked->in_flight,
             (double)s->min_duration_ns / 1e9);
  else if (asked->search || s->scenario != HONE_SCENARIO_SERVER)
    snprintf(buf + n, size - (size_t)n, "scenario %s", hone_scenario_name(s->scenario));
  else
    snprintf(buf + n, size - (size_t)n, "scenario server at %g a second", s->qps);
}

static int answer(const load *l, const char *path, const cli_load *asked, const outcome *o) {
  char line[600];
  hone_error error = {0};
  title(l, path, asked, line, sizeof line);
  if (l->args->html && cli_curve_page(l->args->html, line, o->points, o->n_points, &error) != HONE_OK)
    return cli_report(&error);
  if (l->args->json) return json(l, path, asked, o);
  cli_print("%s\n", line);
  if (asked->search)
    cli_peak_text(&o->peak);
  else if (asked->curve)
    cli_curve_text(o->points, o->n_points);
  else
    cli_load_text(&o->result);
  return cli_flush();
}

static int end_early(const cli_load *asked, const outcome *o) {
  char kept[80];
  if (asked->search)
    snprintf(kept, sizeof kept, "%u tests count", o->peak.n);
  else if (asked->curve)
    snprintf(kept, sizeof kept, "%u of %u points count", o->n_points, asked->in_flight);
  else
    snprintf(kept, sizeof kept, "%llu queries count", (unsigned long long)o->result.queries);
  return cli_end_interrupted(kept);
}

int cli_bench_load(const cli_args *args, const char *path, const cli_load *asked) {
  load l = {.args = args, .settings = asked->settings, .target = {.in_flight = asked->in_flight}};
  outcome o = {0};
  hone_error error = {0};
  hone_status status = cli_keep_inputs(args, args->html, &error);
  if (status == HONE_OK) status = cli_output_ready(args->html, &error);
  if (status == HONE_OK) status = cli_session_open(&l.session, args, path, &error);
  if (status == HONE_OK) status = make_samples(&l, &error);
  if (status == HONE_OK) status = cli_quiet_wait(args, &error);
  /* A device with memory of its own has a queue for each context anyway. */
  if (status == HONE_OK && asked->streams &&
      strcmp(hone_engine_machine(l.session.engine)->device, "cpu") == 0)
    l.target.threads = cli_threads(&l.session, args);
  l.start_ms = cli_now_ms();
  if (status == HONE_OK) status = warm_up(&l, &error);
  cli_hold(true); /* between two tests there is no context that Ctrl-C could end */
  if (status == HONE_OK) status = test(&l, asked, &o, &error);
  cli_cancellable(NULL);
  cli_progress_end();
  int code = status == HONE_OK ? answer(&l, path, asked, &o) : cli_report(&error);
  if (status == HONE_OK && code == 0 && cli_interrupted()) code = end_early(asked, &o);
  cli_hold(false);
  hone_load_peak_free(&o.peak);
  free(o.points);
  free_samples(&l);
  cli_session_close(&l.session);
  return code;
}
