/* The loop: measure, explain, change, prove, measure again. Files and words for people are the caller's. */
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"

#include <hone/data.h>

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WARMUPS = 3, RUNS = 30, FIRST_RUNS = 20, LEVEL = 2, NARROW_LEVEL = 2 };

/* What parts of the loop take where there is time, and of a limit at the most: a share of what is left when
 * they begin. What comes behind them has the rest. */
typedef struct part {
  double seconds, share;
} part;
static const part FIRST = {5, 0.2}, PEAKS = {6, 0.15}, CHOOSE = {60, 0.4}, REHEARSE = {3, 0.15},
                  VERIFY = {12, 0.25}, PROFILE = {12, 0.6}; /* both profiles */

/* A plan that can run. */
typedef struct side {
  hone_plan *plan;
  hone_context *context;
  const hone_tensor **in;
  double rss_peak;
} side;

typedef struct loop {
  hone_engine *engine;
  hone_model *model;
  const hone_loop_options *o;
  hone_loop *out;
  hone_plan_options plan; /* level: the second plan's */
  uint32_t n_inputs;
  hone_data *data; /* [n_inputs] random values, where no tensor was given */
  side now, baseline;
  hone_peaks own, *peaks;
  hone_watch watch; /* the caller's, which stops what goes on past the limit, too */
  bool stopped;     /* it did */
  double start_ms;
} loop;

#define LEAST 1e-3 /* a limit of 0 would be none */

/* Of the limit what is left, in seconds; 0: there is none. */
static double seconds_left(const loop *l) {
  const double left = l->o->max_seconds - (l->o->spent_ms + hn_watch_ms() - l->start_ms) / 1e3;
  return l->o->max_seconds <= 0 ? 0 : left > LEAST ? left : LEAST;
}

static double seconds_of(const loop *l, part p) {
  const double most = p.share * seconds_left(l);
  return most > 0 && most < p.seconds ? most : p.seconds;
}

static bool go_on(void *arg, const char *what, uint32_t done, uint32_t total) {
  loop *l = arg;
  l->stopped |= l->o->max_seconds > 0 && seconds_left(l) <= LEAST;
  return !l->stopped && hn_watch_tell(l->o->watch, what, done, total);
}

static bool running(void *arg, hone_context *context) {
  const hone_watch *w = ((loop *)arg)->o->watch;
  return !w || !w->running || w->running(w->arg, context);
}

static const char *const stage_names[] = {"run", "diagnose", "optimize", "verify", "profile", "end"};

/* Goes on to the next stage, unless the last one failed or the time is spent: a result without its last
 * stages would be another one than was asked for. */
static hone_status next(loop *l, hone_loop_stage stage, hone_status status, hone_error *error) {
  if (status != HONE_OK) return status;
  l->out->stage = stage;
  if (l->o->begins) status = l->o->begins(l->o->arg, stage, l->out, error);
  const double spent = l->o->spent_ms + hn_watch_ms() - l->start_ms;
  if (status != HONE_OK || stage == HONE_LOOP_RUN || stage == HONE_LOOP_DONE || l->o->max_seconds <= 0 ||
      spent < l->o->max_seconds * 1e3)
    return status;
  l->out->late = true;
  return hn_fail(error, HONE_ERROR_BUDGET, "%g seconds were spent before the step '%s'", l->o->max_seconds,
                 stage_names[stage]);
}

/* A limit that was over in the middle of a stage is what ended it. */
static hone_status in_time(loop *l, hone_status status, hone_error *error) {
  const bool over = l->o->max_seconds > 0 && seconds_left(l) <= LEAST;
  if (l->out->late || !over ||
      !(status == HONE_ERROR_BUDGET || (status == HONE_ERROR_CANCELLED && l->stopped)))
    return status;
  l->out->late = l->out->within = true;
  if (error) *error = (hone_error){0};
  return hn_fail(error, HONE_ERROR_BUDGET, "%g seconds were spent in the step '%s'", l->o->max_seconds,
                 stage_names[l->out->stage]);
}

/* ---- plans */

/* The peak of resident memory counts from here, so that one plan is not blamed for what ran before it. */
static void reset_peak(void) {
  malloc_trim(0);
  FILE *f = fopen("/proc/self/clear_refs", "w");
  if (!f) return; /* then the peak is that of the whole process */
  fputs("5", f);
  fclose(f);
}

static void close_side(const loop *l, side *s) {
  hn_watch_idle(&l->watch);
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hn_free((void *)s->in);
  *s = (side){0};
}

/* Plan inputs are the model's inputs by name; what was not given gets random values, or its initializer. */
static hone_status find_inputs(loop *l, side *s, hone_error *error) {
  const uint32_t n = hone_plan_inputs(s->plan);
  hone_status status = HONE_OK;
  s->in = hn_calloc(n + 1, sizeof *s->in);
  if (!s->in) return hn_fail_memory(error, n, "inputs");
  for (uint32_t p = 0; p < n; p++)
    for (uint32_t i = 0; i < l->n_inputs && status == HONE_OK; i++) {
      hone_port port;
      const hone_tensor *given = l->o->inputs ? l->o->inputs[i] : NULL;
      if (!hone_model_input(l->model, i, &port) || strcmp(port.name, hone_plan_input_name(s->plan, p)) != 0)
        continue;
      if (!given && port.optional) continue;
      if (!given && !l->data[i].impl)
        status = hone_data_for_input(l->model, i, hone_plan_input_desc(s->plan, p),
                                     l->o->seed ? l->o->seed : 1, &l->data[i], error);
      s->in[p] = given ? given : &l->data[i].tensor;
    }
  return status;
}

static hone_status open_side(loop *l, int level, side *s, hone_error *error) {
  hone_plan_options o = l->plan;
  o.level = level;
  reset_peak();
  hone_status status = hone_plan_create(l->engine, l->model, &o, &s->plan, error);
  if (status == HONE_OK) status = find_inputs(l, s, error);
  return status == HONE_OK ? hone_context_create(s->plan, &s->context, error) : status;
}

/* Peak of resident memory while this plan alone is there and runs. */
static hone_status run_alone(loop *l, side *s, hone_error *error) {
  const hone_status status = hn_watch_run(&l->watch, s->context, s->in, seconds_left(l), error);
  s->rss_peak = (double)hn_rss_peak_bytes();
  return status;
}

/* ---- recording */

typedef struct teller {
  const loop *l;
  int level;
} teller;

static void describe(void *arg, hone_facts *facts) {
  const teller *t = arg;
  if (t->l->o->describe) t->l->o->describe(t->l->o->arg, facts, t->level);
}

static hone_subject subject_of(const loop *l, const side *s, teller *t) {
  return (hone_subject){.engine = l->engine,
                        .plan = s->plan,
                        .context = s->context,
                        .in = s->in,
                        .device = l->o->device,
                        .level = t->level,
                        .rss_peak = s->rss_peak,
                        .describe = describe,
                        .arg = t};
}

static hone_recording_options recording(const loop *l, uint32_t runs, part p) {
  return (hone_recording_options){.warmups = WARMUPS,
                                  .runs = runs,
                                  .seconds = seconds_of(l, p),
                                  .max_seconds = seconds_left(l),
                                  .peaks_seconds = l->o->max_seconds > 0 ? seconds_of(l, PEAKS) : 0,
                                  .peaks = l->peaks,
                                  .watch = &l->watch};
}

/* ---- predicting */

static bool choosing(void *arg, uint32_t done, uint32_t total) {
  const loop *l = arg;
  return hn_watch_tell(&l->watch, "choose precision", done, total);
}

/* What both plans may round from now on. */
static hone_status choose_precision(loop *l, hone_error *error) {
  hone_precision_choice *c = &l->out->precision;
  if (l->plan.level < NARROW_LEVEL) return HONE_OK;
  if (l->o->plan) {
    l->plan.precision = l->o->plan->precision;
    l->plan.f32_nodes = l->o->plan->f32_nodes;
    l->plan.n_f32_nodes = l->o->plan->n_f32_nodes;
  }
  if (!l->o->precision) return HONE_OK;
  hone_precision_options o = *l->o->precision;
  if (l->o->max_seconds > 0 || o.max_seconds <= 0)
    o.max_seconds = seconds_of(l, o.max_seconds > 0 ? (part){o.max_seconds, CHOOSE.share} : CHOOSE);
  o.threads = l->o->threads;
  o.batch = l->plan.batch;
  o.bindings = l->plan.bindings;
  o.n_bindings = l->plan.n_bindings;
  o.device = l->o->device;
  o.progress = choosing;
  o.progress_arg = l;
  const hone_status status = hone_precision_choose(l->model, &o, c, error);
  l->plan.precision = c->narrow;
  l->plan.f32_nodes = (const char *const *)c->f32_nodes;
  l->plan.n_f32_nodes = c->n_f32_nodes;
  return status;
}

static bool rehearsing(void *arg) {
  const loop *l = arg;
  return hn_watch_tell(&l->watch, "diagnose", 0, 0);
}

/* The steps of the changed plan, which is not built, with the times that they take on this machine, into the
 * facts of the first record. */
static hone_status rehearse(loop *l, hone_error *error) {
  hone_plan *plan = NULL;
  hone_plan_options o = l->plan;
  o.preview = true;
  hone_status status = hone_plan_create(l->engine, l->model, &o, &plan, error);
  const hone_rehearsal_options rehearsal = {
      .max_seconds = seconds_of(l, REHEARSE), .progress = rehearsing, .progress_arg = l};
  if (status == HONE_OK)
    status =
        hone_plan_rehearse(plan, l->now.plan, &rehearsal, l->out->first.facts, &l->out->rehearsal, error);
  hone_plan_destroy(plan);
  return status;
}

/* What the forecast rests on, and what it cost. */
static void say_basis(hone_loop *out, const hone_forecast *f) {
  const hone_rehearsal *r = &out->rehearsal;
  if (r->timed)
    snprintf(out->predicted_by, sizeof out->predicted_by,
             "%.0f %% of it measured on this machine: %u of %u new steps timed on their own (in %.1f s), "
             "what stays as in the profile; the rest by cost models, scaled by what the same kernels took",
             f->seen_pct, r->timed, r->steps, r->seconds);
  else
    snprintf(out->predicted_by, sizeof out->predicted_by,
             "cost models of the plan that was not built yet, scaled by the measured profile");
}

/* What the change will bring, before there is anything that could be measured. */
static hone_status predict(loop *l, hone_error *error) {
  hone_loop *out = l->out;
  teller t = {l, 0};
  const hone_subject subject = subject_of(l, &l->now, &t);
  const hone_recording_options o = recording(l, FIRST_RUNS, FIRST);
  hone_forecast forecast = {0};
  time_t now;
  struct tm utc;
  hone_status status = hone_subjects_record(&subject, 1, &o, &out->first, error);
  if (status == HONE_OK) status = choose_precision(l, error);
  if (status == HONE_OK) status = rehearse(l, error);
  if (status == HONE_OK) status = hone_diagnose(out->first.profile, l->o->diagnose, &out->findings, error);
  if (status != HONE_OK) return status;
  out->predicted_pct = hone_findings_predict(out->findings, HONE_REMEDY_OPTIMIZER);
  if (hone_forecast_make(out->first.profile, &forecast)) {
    out->predicted_pct = forecast.gain_pct;
    out->predicted_ms = forecast.after_ms;
    say_basis(out, &forecast);
    out->predicted_unsure_ms = forecast.unsure_ms;
    if (forecast.unsure_ms > 0)
      snprintf(out->predicted_by, sizeof out->predicted_by,
               "the change would be less than %.3f ms, which is what short steps can be told apart by on "
               "this machine",
               forecast.unsure_ms);
  }
  if (isnan(out->predicted_pct) || isnan(forecast.gain_pct))
    return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for the prediction");
  now = time(NULL);
  gmtime_r(&now, &utc);
  strftime(out->predicted_at, sizeof out->predicted_at, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return HONE_OK;
}

/* ---- proving */

static bool proving(void *arg, uint32_t done, uint32_t total) {
  const loop *l = arg;
  return hn_watch_tell(&l->watch, "verify", done, total);
}

static hone_status prove(loop *l, hone_model *optimized, hone_error *error) {
  const hone_verify_options o = {.inputs = l->o->verify_inputs,
                                 .seed = l->o->seed,
                                 .max_seconds = seconds_of(l, VERIFY),
                                 .threads = l->o->threads,
                                 .batch = l->plan.batch,
                                 .bindings = l->plan.bindings,
                                 .n_bindings = l->plan.n_bindings,
                                 .level = l->plan.level,
                                 .device = l->o->device,
                                 .precision = l->plan.precision,
                                 .f32_nodes = l->plan.f32_nodes,
                                 .n_f32_nodes = l->plan.n_f32_nodes,
                                 .progress = proving,
                                 .progress_arg = l};
  hn_watch_idle(&l->watch);
  return hone_verify(l->model, optimized, &o, &l->out->verdict, error);
}

/* The rewritten model is let go of: the memory that is measured afterwards shall not hold it. */
static hone_status change_and_prove(loop *l, hone_error *error) {
  const hone_optimize_options o = {.level = l->plan.level, .passes = l->plan.passes};
  hone_model *optimized = NULL;
  hone_status status = next(l, HONE_LOOP_OPTIMIZE, HONE_OK, error);
  if (status == HONE_OK) status = hone_model_optimize(l->model, &o, &optimized, NULL, error);
  status = next(l, HONE_LOOP_VERIFY, status, error);
  if (status == HONE_OK) status = prove(l, optimized, error);
  hone_model_release(optimized);
  return status;
}

/* ---- measuring again */

/* Before and after in alternation: the second plan lives beside the first one. */
static hone_status measure(loop *l, double rss_before, hone_error *error) {
  teller t[2] = {{l, 0}, {l, l->plan.level}};
  const hone_recording_options o = recording(l, RUNS, PROFILE);
  hone_recording made[2] = {0};
  hn_watch_idle(&l->watch);
  hone_status status = open_side(l, 0, &l->baseline, error);
  l->baseline.rss_peak = rss_before;
  if (status == HONE_OK) {
    const hone_subject subjects[2] = {subject_of(l, &l->baseline, &t[0]), subject_of(l, &l->now, &t[1])};
    status = hone_subjects_record(subjects, 2, &o, made, error);
  }
  l->out->before = made[0];
  l->out->after = made[1];
  close_side(l, &l->baseline);
  return status;
}

static bool was_quiet(const hone_facts *facts) {
  size_t n;
  const hone_counter *c = hone_facts_counters(facts, &n);
  bool quiet = false;
  for (size_t i = 0; i < n; i++)
    quiet |= strcmp(c[i].name, "others_cpu") == 0 && c[i].value <= 100 * HONE_ROOFS_QUIET;
  return quiet;
}

/* What the new plan's steps really took is what hone knows of their kernels from now on. Beside busy
 * neighbours a run says nothing of the kernels. */
static hone_status learn(const loop *l, hone_error *error) {
  const hone_profile *p = l->out->after.profile;
  const uint32_t n = hone_plan_steps(l->now.plan);
  if (!was_quiet(l->out->after.facts) || p->filtered) return HONE_OK;
  double *seconds = hn_calloc(n + 1, sizeof *seconds);
  if (!seconds) return hn_fail_memory(error, n, "what steps took");
  for (size_t i = 0; i < p->layer_count; i++)
    if (p->layers[i].step >= 0 && (uint32_t)p->layers[i].step < n)
      seconds[p->layers[i].step] = p->layers[i].stats.p50 * 1e-3;
  const hone_status status = hone_kernels_learn(l->now.plan, seconds, n, NULL, error);
  hn_free(seconds);
  return status;
}

static hone_status measure_again(loop *l, hone_error *error) {
  hone_loop *out = l->out;
  const double rss_before = l->now.rss_peak;
  out->plan = NULL;
  close_side(l, &l->now);
  hone_status status = open_side(l, l->plan.level, &l->now, error);
  out->plan = l->now.plan;
  if (status == HONE_OK) status = run_alone(l, &l->now, error);
  if (status == HONE_OK) status = measure(l, rss_before, error);
  if (status == HONE_OK) status = learn(l, error);
  if (status == HONE_OK)
    status = hone_compare(out->before.profile, out->after.profile, NULL, &out->comparison, error);
  if (status == HONE_OK) status = hone_diagnose(out->after.profile, l->o->diagnose, &out->left, error);
  if (status != HONE_OK) return status;
  return hone_findings_measure(out->findings, out->before.profile, out->after.profile, error);
}

static hone_status work(loop *l, hone_error *error) {
  l->data = hn_calloc(l->n_inputs + 1, sizeof *l->data);
  if (!l->data) return hn_fail_memory(error, l->n_inputs, "inputs");
  hone_status status = open_side(l, 0, &l->now, error);
  l->out->plan = l->now.plan;
  status = next(l, HONE_LOOP_RUN, status, error);
  if (status == HONE_OK) status = run_alone(l, &l->now, error);
  status = next(l, HONE_LOOP_DIAGNOSE, status, error);
  if (status == HONE_OK) status = predict(l, error);
  if (status == HONE_OK) status = change_and_prove(l, error);
  status = next(l, HONE_LOOP_PROFILE, status, error);
  if (status == HONE_OK) status = measure_again(l, error);
  return next(l, HONE_LOOP_DONE, status, error);
}

static loop begin(hone_engine *engine, hone_model *model, const hone_loop_options *o, hone_loop *out) {
  loop l = {.engine = engine,
            .model = model,
            .o = o,
            .out = out,
            .plan = o->plan ? *o->plan : (hone_plan_options){.level = LEVEL},
            .n_inputs = hone_model_inputs(model),
            .start_ms = hn_watch_ms()};
  if (l.plan.level < 0) l.plan.level = LEVEL;
  l.plan.precision = NULL; /* until it is chosen: the first record is of the model as it is */
  l.plan.f32_nodes = NULL;
  l.plan.n_f32_nodes = 0;
  return l;
}

hone_status hone_loop_run(hone_engine *engine, hone_model *model, const hone_loop_options *o, hone_loop *out,
                          hone_error *error) {
  static const hone_loop_options usual = {0};
  if (out) *out = (hone_loop){0};
  if (!engine || !model || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_loop_run needs an engine, a model and a place for the result");
  loop l = begin(engine, model, o ? o : &usual, out);
  l.peaks = l.o->peaks ? l.o->peaks : &l.own;
  l.watch = (hone_watch){.progress = go_on, .running = running, .arg = &l};
  const hone_status status = in_time(&l, work(&l, error), error);
  l.now.plan = NULL; /* it is in *out */
  close_side(&l, &l.now);
  for (uint32_t i = 0; l.data && i < l.n_inputs; i++) hone_data_free(&l.data[i]);
  hn_free(l.data);
  return status;
}

void hone_loop_free(hone_loop *l) {
  if (!l) return;
  hone_plan_destroy(l->plan);
  hone_comparison_destroy(l->comparison);
  hone_findings_destroy(l->findings);
  hone_findings_destroy(l->left);
  hone_recording_free(&l->first);
  hone_recording_free(&l->before);
  hone_recording_free(&l->after);
  hone_precision_choice_free(&l->precision);
  *l = (hone_loop){0};
}
