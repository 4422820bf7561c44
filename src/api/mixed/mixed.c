/* hone_mix: each layer in the fastest type that a budget of accuracy allows, and the whole not slower than
 * before. */
#include "api/mixed/mixed.h"
#include "api/api.h"
#include "api/measure/watch.h"

#include "base/error.h"
#include "base/os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEWEST_SAMPLES = 8, RANDOM_SAMPLES = 16, SECONDS = 600 };

/* ---- names */

const char *hone_mixed_metric_name(hone_mixed_metric metric) {
  static const char *const names[HONE_MIXED_METRICS] = {"top1", "top5", "map", "cosine", "sqnr"};
  return (unsigned)metric < HONE_MIXED_METRICS ? names[metric] : "";
}

bool hone_mixed_metric_labelled(hone_mixed_metric metric) { return metric <= HONE_MIXED_MAP; }

const char *hone_mixed_type_name(hone_mixed_type type) {
  static const char *const names[HONE_MIXED_TYPES] = {"f32", "f16", "bf16", "int8"};
  return (unsigned)type < HONE_MIXED_TYPES ? names[type] : "";
}

const char *hone_mixed_reason_name(hone_mixed_reason reason) {
  static const char *const names[HONE_MIXED_REASONS] = {"faster",     "together", "follows",  "no_time",
                                                        "not_faster", "error",    "held_out", "no_form"};
  return (unsigned)reason < HONE_MIXED_REASONS ? names[reason] : "";
}

const char *hone_mixed_verdict_name(hone_mixed_verdict verdict) {
  static const char *const names[HONE_MIXED_VERDICTS] = {"met", "no_budget", "no_gain", "slower"};
  return (unsigned)verdict < HONE_MIXED_VERDICTS ? names[verdict] : "";
}

/* ---- what the stages share */

bool hn_mix_tell(const hn_mixing *m, const char *what, uint32_t done, uint32_t total) {
  return hn_watch_tell(m->o->watch, what, done, total);
}

static double seconds_of(const hn_mixing *m) { return (double)(hn_now_ns() - m->begun) * 1e-9; }

bool hn_mix_late(const hn_mixing *m) {
  return seconds_of(m) > (m->o->max_seconds > 0 ? m->o->max_seconds : SECONDS);
}

hone_status hn_mix_open(hn_mixing *m, hone_model *model, bool apart, hn_mix_side *out, hone_error *error) {
  const hone_plan_options o = {.level = 2,
                               .chains = apart ? HONE_CHAINS_NEVER : HONE_CHAINS_FASTER,
                               .batch = m->q.batch,
                               .bindings = m->q.bindings,
                               .n_bindings = m->q.n_bindings};
  *out = (hn_mix_side){.model = hn_model_retain(model)};
  hone_status status = hone_plan_create(m->engine, model, &o, &out->plan, error);
  if (status == HONE_OK) status = hone_context_create(out->plan, &out->context, error);
  return status;
}

void hn_mix_close(hn_mix_side *side) {
  hone_context_destroy(side->context);
  hone_plan_destroy(side->plan);
  hone_model_release(side->model);
  *side = (hn_mix_side){0};
}

hone_status hn_mix_read(hn_mixing *m, int half, uint32_t i, const hone_tensor **in, hone_error *error) {
  const hn_feed *feeds;
  const hone_status status = hn_quantize_samples_read(m->samples[half], i, &feeds, error);
  for (uint32_t k = 0; status == HONE_OK && k < hone_plan_inputs(m->wide.plan); k++)
    in[k] = &feeds[k].data.tensor;
  return status;
}

/* ---- samples */

/* A file for ranges, which the first model writes, so that samples are run once. */
static hone_status name_ranges(hn_mixing *m, hone_error *error) {
  if (m->q.ranges) return HONE_OK;
  const char *folder = getenv("TMPDIR");
  const int n =
      snprintf(m->ranges, sizeof m->ranges, "%s/hone-ranges-%ld-%llu.json",
               folder && *folder ? folder : "/tmp", (long)getpid(), (unsigned long long)hn_now_ns());
  if (n < 0 || (size_t)n >= sizeof m->ranges) {
    m->ranges[0] = 0;
    hn_fail(error, HONE_ERROR_IO, "the name of the folder for temporary files is too long");
    hn_error_where(error, "%s", folder);
    return HONE_ERROR_IO;
  }
  m->q.ranges = m->ranges;
  return HONE_OK;
}

static hone_status too_few(uint64_t have, const char *where, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT,
          "too few samples to choose on one half and to check the budget on the other");
  if (where) hn_error_where(error, "%s", where);
  hn_error_expected(error, "at least %d", FEWEST_SAMPLES);
  hn_error_got(error, "%llu", (unsigned long long)have);
  return HONE_ERROR_INPUT;
}

/* Even ones choose, odd ones are held out; so it is in labelled data, too. */
static hone_status open_samples(hn_mixing *m, hone_error *error) {
  hone_quantize_options o = m->q;
  const bool labelled = hone_mixed_metric_labelled(m->o->metric);
  hone_status status = HONE_OK;
  uint64_t all = 0;
  for (int half = 0; half < 2 && status == HONE_OK; half++) {
    o.first = (uint32_t)half;
    o.every = !o.calib || !labelled ? 2 : 1;
    if (half && o.every == 1) break; /* the labelled data is what is halved */
    status = hn_quantize_samples_open(&o, m->wide.model, hn_api_plan(m->wide.plan), &m->samples[half], error);
    if (status == HONE_OK) all += hn_quantize_samples_count(m->samples[half]);
  }
  if (status != HONE_OK) return status;
  if (labelled) all = hone_dataset_samples(m->o->set);
  return all < FEWEST_SAMPLES ? too_few(all, labelled ? NULL : o.calib, error) : HONE_OK;
}

static hone_status warn(hn_mixing *m, const char *text, hone_error *error) {
  const char *copy = hn_arena_strdup(&m->arena, text);
  return copy && hn_vec_push(&m->warnings, copy) ? HONE_OK : hn_fail_memory(error, 0, "a warning");
}

/* One sample of so many moves a share by 1 / n. */
static hone_status warn_of_steps(hn_mixing *m, hone_error *error) {
  const double n = floor((double)(m->o->set ? hone_dataset_samples(m->o->set) : 0) / 2);
  char text[200];
  if (m->o->metric > HONE_MIXED_TOP5 || n * m->o->max_drop >= 1) return HONE_OK;
  snprintf(text, sizeof text,
           "%.0f samples are held out: one of them is a drop of %.4g, so a budget of %.4g means none", n,
           1 / n, m->o->max_drop);
  return warn(m, text, error);
}

/* ---- layers */

/* What has the codes of its input costs neither time nor accuracy. */
static bool only_moves(const char *op_type) {
  return hone_quantisation_of(op_type) == HONE_QUANTISATION_MOVES || strcmp(op_type, "MaxPool") == 0;
}

static hone_status take_coverage(hn_mixing *m, const hone_quantize_report *made, hone_error *error) {
  hone_quantize_coverage *to = &m->report->coverage;
  const char **names[] = {&to->most_grown, &to->rarest, &to->commonest, &to->absent};
  *to = made->coverage;
  m->report->calibrated = made->samples;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(*names[i] = hn_arena_strdup(&m->arena, *names[i]))) return hn_fail_memory(error, 0, "a report");
  return HONE_OK;
}

static hone_status take_layers(hn_mixing *m, const hone_quantize_report *made, hone_error *error) {
  hone_status status = take_coverage(m, made, error);
  for (uint32_t i = 0; i < made->n_layers && status == HONE_OK; i++) {
    const hone_quantize_layer *l = &made->layer[i];
    if (l->quantized && only_moves(l->op_type)) continue;
    uint32_t *nodes = HN_NEW_ARRAY(&m->arena, uint32_t, l->n_nodes + 1);
    if (nodes && l->n_nodes) memcpy(nodes, l->nodes, l->n_nodes * sizeof *nodes);
    const hn_mix_layer to = {.name = hn_arena_strdup(&m->arena, l->name),
                             .op_type = hn_arena_strdup(&m->arena, l->op_type),
                             .why = hn_arena_strdup(&m->arena, l->reason),
                             .nodes = nodes,
                             .n_nodes = l->n_nodes,
                             .unit = l->quantized ? 0 : -1};
    if (!nodes || !to.name || !to.op_type || !to.why || !hn_vec_push(&m->layers, to))
      status = hn_fail_memory(error, sizeof to, "layers");
  }
  for (uint32_t i = 0; i < made->n_warnings && status == HONE_OK; i++)
    status = warn(m, made->warning[i], error);
  return status;
}

/* Everything in 8 bits, and where time decides in 16, beside the input. */
static hone_status make_sides(hn_mixing *m, hn_mix_side *sides, hone_error *error) {
  hone_status status = hn_mix_open(m, m->wide.model, true, &sides[HONE_MIXED_F32], error);
  for (int t = HONE_MIXED_TYPES - 1; t > HONE_MIXED_F32 && status == HONE_OK; t--) {
    hone_model *model = NULL;
    hone_quantize_report made = {0};
    if (t != HONE_MIXED_INT8 && m->o->untimed) continue;
    status = hn_mix_uniform(m, (hone_mixed_type)t, &model, &made, error);
    if (status == HONE_OK && t == HONE_MIXED_INT8) status = take_layers(m, &made, error);
    if (status == HONE_OK && model) status = hn_mix_open(m, model, true, &sides[t], error);
    if (made.stopped && status == HONE_OK) status = hn_watch_stopped(error);
    hone_quantize_report_free(&made);
    hone_model_release(model);
    m->q.again = false;
  }
  return status;
}

static hone_status make_ladders(hn_mixing *m, hone_error *error) {
  hn_mix_side sides[HONE_MIXED_TYPES] = {{0}};
  hone_status status = make_sides(m, sides, error);
  if (status == HONE_OK) status = hn_mix_make_units(m, sides, error);
  for (uint32_t u = 0; u < m->n_units; u++)
    for (int t = 0; t < HONE_MIXED_TYPES; t++) m->unit[u].median[t] = m->unit[u].noise[t] = (double)NAN;
  if (status == HONE_OK && !m->o->untimed) status = hn_mix_time_units(m, sides, error);
  for (uint32_t u = 0; u < m->n_units && status == HONE_OK; u++) hn_mix_climb(&m->unit[u], m->o->untimed);
  if (status == HONE_OK && !m->o->untimed) status = hn_mix_try_together(m, error);
  for (int t = 0; t < HONE_MIXED_TYPES; t++) hn_mix_close(&sides[t]);
  return status;
}

/* ---- the report */

static hone_mixed_reason reason_of(const hn_mixing *m, const hn_mix_unit *u) {
  if (u->rung) return u->held_back ? HONE_MIXED_HELD_OUT : HONE_MIXED_ERROR;
  if (u->rungs == 1) return HONE_MIXED_NOT_FASTER;
  if (u->together) return HONE_MIXED_TOGETHER;
  return m->o->untimed ? HONE_MIXED_NO_TIME : u->follows ? HONE_MIXED_FOLLOWS : HONE_MIXED_FASTER;
}

static const char *words_of(hone_mixed_reason reason) {
  static const char *const words[HONE_MIXED_REASONS] = {
      "the fastest, within the budget",
      "not faster alone, but between others that are narrow",
      "as what is around it",
      "as narrow as the budget allows",
      "no narrower type is faster here",
      "a narrower type costs too much accuracy",
      "a narrower type costs too much on the samples held out",
      ""};
  return words[reason];
}

static bool fill_layers(hn_mixing *m, hone_mixed_report *out) {
  out->layer = HN_NEW_ARRAY(&m->arena, hone_mixed_layer, m->layers.len + 1);
  if (!out->layer) return false;
  for (size_t i = 0; i < m->layers.len; i++) {
    const hn_mix_layer *l = &m->layers.ptr[i];
    const hn_mix_unit *u = l->unit >= 0 ? &m->unit[l->unit] : NULL;
    hone_mixed_layer *to = &out->layer[out->n_layers++];
    const hone_mixed_reason reason = u ? reason_of(m, u) : HONE_MIXED_NO_FORM;
    *to = (hone_mixed_layer){.name = l->name,
                             .op_type = l->op_type,
                             .type = u ? u->ladder[u->rung] : HONE_MIXED_F32,
                             .reason = reason,
                             .why = u ? words_of(reason) : l->why,
                             .unit = l->unit};
    out->narrow += to->type != HONE_MIXED_F32;
    for (int t = 0; t < HONE_MIXED_TYPES; t++) {
      to->ms[t] = u ? u->median[t] : (double)NAN;
      to->noise[t] = u ? u->noise[t] : (double)NAN;
    }
  }
  return true;
}

static hone_status fill_report(hn_mixing *m, hone_error *error) {
  hone_mixed_report *out = m->report;
  out->warning = HN_NEW_ARRAY(&m->arena, const char *, m->warnings.len + 1);
  if (!out->warning || !fill_layers(m, out)) return hn_fail_memory(error, m->layers.len, "a report");
  for (size_t i = 0; i < m->warnings.len; i++) out->warning[out->n_warnings++] = m->warnings.ptr[i];
  out->metric = m->o->metric;
  out->max_drop = m->o->max_drop;
  out->seconds = seconds_of(m);
  return HONE_OK;
}

/* ---- the way through */

static bool any_ladder(const hn_mixing *m) {
  for (uint32_t u = 0; u < m->n_units; u++)
    if (m->unit[u].rungs > 1 && !m->unit[u].follows) return true;
  return false;
}

/* The result is made, and held against the input. */
static hone_status finish(hn_mixing *m, hone_model **out, hone_error *error) {
  hn_mix_side side = {0};
  bool faster = m->o->untimed;
  hone_status status = hn_mix_build(m, out, error);
  if (status == HONE_OK && !faster) status = hn_mix_open(m, *out, false, &side, error);
  if (status == HONE_OK && !faster) status = hn_mix_race(m, &side, &faster, error);
  hn_mix_close(&side);
  if (status == HONE_OK && faster) return status;
  hone_model_release(*out);
  *out = NULL;
  m->report->verdict = HONE_MIXED_SLOWER;
  return status;
}

static hone_status mix(hn_mixing *m, hone_model *model, hone_model **out, hone_error *error) {
  bool met = false;
  hone_status status = hn_quantize_refuse_quantised(model, error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = m->q.threads}, &m->engine, error);
  if (status == HONE_OK) status = hn_mix_open(m, model, false, &m->wide, error);
  if (status == HONE_OK) status = open_samples(m, error);
  if (status == HONE_OK) status = name_ranges(m, error);
  if (status == HONE_OK) status = warn_of_steps(m, error);
  if (status == HONE_OK) status = make_ladders(m, error);
  if (status == HONE_OK && !any_ladder(m)) {
    m->report->verdict = HONE_MIXED_NO_GAIN;
    return HONE_OK;
  }
  if (status == HONE_OK) status = hn_mix_search(m, &met, error);
  if (status != HONE_OK) return status;
  if (met) return finish(m, out, error);
  m->report->verdict = HONE_MIXED_NO_BUDGET;
  return HONE_OK;
}

static void close_all(hn_mixing *m) {
  if (m->ranges[0]) unlink(m->ranges);
  hn_quantize_samples_close(m->samples[0]);
  hn_quantize_samples_close(m->samples[1]);
  hn_mix_close(&m->wide);
  hone_engine_destroy(m->engine);
  m->samples[0] = m->samples[1] = NULL;
  m->engine = NULL;
  hn_watch_idle(m->o->watch);
}

static bool calibrates(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total) {
  static const char *const names[] = {"measure channels", "calibrate", "check"};
  return hn_mix_tell(arg, names[stage], done, total);
}

static hone_status wrong_options(const hone_mixed_options *o, hone_error *error) {
  const bool labelled = hone_mixed_metric_labelled(o->metric);
  if ((unsigned)o->metric >= HONE_MIXED_METRICS)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_mix: no such metric");
  if (!(o->max_drop >= 0 && o->max_drop <= 1)) {
    hn_fail(error, HONE_ERROR_USAGE, "a drop of %s lies between 0 and 1, %g does not",
            hone_mixed_metric_name(o->metric), o->max_drop);
    if (o->metric == HONE_MIXED_SQNR)
      hn_error_hint(error, "it is the power of the error over that of the values: 0.001 is 30 dB");
    else
      hn_error_hint(error, "0.01 is one point of a hundred");
    return HONE_ERROR_USAGE;
  }
  if (labelled && !o->set)
    return hn_fail(error, HONE_ERROR_USAGE, "%s needs labelled data", hone_mixed_metric_name(o->metric));
  if (labelled && (hone_dataset_truth(o->set) == HONE_TRUTH_BOXES) != (o->metric == HONE_MIXED_MAP))
    return hn_fail(error, HONE_ERROR_USAGE, "%s wants data with %s", hone_mixed_metric_name(o->metric),
                   o->metric == HONE_MIXED_MAP ? "boxes" : "classes");
  if (!o->untimed && o->quantize.target != HONE_QUANTIZE_HONE) {
    hn_fail(error, HONE_ERROR_USAGE, "times measured here say nothing of %s",
            hone_quantize_target_name(o->quantize.target));
    hn_error_hint(error, "--untimed lets the budget alone decide");
    return HONE_ERROR_USAGE;
  }
  if (!o->quantize.calib && !o->set)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_mix needs samples: quantize.calib or set");
  return HONE_OK;
}

/* 8 bits come from the half that chooses; of a calibration set beside labelled data from all of it. */
static void set_up(hn_mixing *m) {
  const hone_mixed_options *o = m->o;
  m->q = o->quantize;
  m->q.to = HONE_QUANTIZE_INT8;
  m->q.set = o->quantize.calib ? NULL : o->set;
  m->q.first = 0;
  m->q.every = m->q.calib && hone_mixed_metric_labelled(o->metric) ? 1 : 2;
  if (m->q.samples && m->q.every == 2) m->q.samples = (m->q.samples + 1) / 2;
  if (!m->q.samples && m->q.calib && strcmp(m->q.calib, "random") == 0) m->q.samples = RANDOM_SAMPLES;
  m->q.checks = 1;
  m->q.progress = calibrates;
  m->q.progress_arg = m;
}

hone_status hone_mix(hone_model *model, const hone_mixed_options *o, hone_model **out,
                     hone_mixed_report *report, hone_error *error) {
  if (!model || !o || !out || !report)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_mix needs a model, options and places for the results");
  *out = NULL;
  *report = (hone_mixed_report){0};
  hone_status status = wrong_options(o, error);
  if (status != HONE_OK) return status;
  const uint64_t lost = hn_mem_lost();
  hn_mixing *m = hn_calloc(1, sizeof *m);
  if (!m) return hn_fail_memory(error, sizeof *m, "a mixed model");
  *m = (hn_mixing){.o = o, .report = report, .begun = hn_now_ns()};
  report->impl = m;
  set_up(m);
  status = mix(m, model, out, error);
  close_all(m);
  if (status == HONE_OK) status = fill_report(m, error);
  if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", model->path);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK) return status;
  hone_model_release(*out);
  *out = NULL;
  return status;
}

void hone_mixed_report_free(hone_mixed_report *report) {
  hn_mixing *m = report ? report->impl : NULL;
  if (!m) return;
  hn_vec_free(&m->layers);
  hn_vec_free(&m->warnings);
  hn_arena_free(&m->arena);
  hn_free(m);
  *report = (hone_mixed_report){0};
}
