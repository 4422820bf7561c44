/* hone run: one inference on given or random inputs. */
#include "cli/terminal/clock.h"
#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"
#include "cli/options/labels.h"
#include "cli/reports/memory.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tensor as an array; what is in a sequence or optional as one each. */
static hone_status save_value(const hone_tensor *t, const char *name, const char *folder, json_t *taken,
                              json_t *o, hone_error *error) {
  json_object_set_new(o, "name", json_string(name));
  if (!hone_dtype_is_tensor(t->desc.dtype)) {
    const hone_items *items = t->data;
    json_t *list = json_array();
    hone_status status = HONE_OK;
    json_object_set_new(o, "items", list);
    for (size_t i = 0; i < items->count && status == HONE_OK; i++) {
      char inner[300];
      json_t *p = cli_desc_json(&items->item[i]->desc);
      json_array_append_new(list, p);
      snprintf(inner, sizeof inner, "%.270s.%zu", name, i);
      status = save_value(items->item[i], inner, folder, taken, p, error);
    }
    return status;
  }
  char file[256], path[4096 + 260];
  cli_array_name(name, taken, file, sizeof file);
  snprintf(path, sizeof path, "%s/%s", folder, file);
  cli_hold(true);
  hone_status status = hone_data_save_npy(t, path, error);
  cli_hold(false);
  if (status == HONE_OK && cli_interrupted()) status = error->status = HONE_ERROR_CANCELLED;
  json_object_set_new(o, "file", json_string(file));
  return status;
}

static hone_status save_outputs(const cli_session *s, const char *folder, hone_error *error) {
  json_t *list = json_array(), *taken = json_object();
  size_t made = 0;
  hone_status status = cli_make_folder(folder, &made, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_outputs(s->plan); i++) {
    const hone_tensor *t = hone_context_output(s->context, i);
    json_t *o = cli_desc_json(&t->desc);
    status = save_value(t, hone_plan_output_name(s->plan, i), folder, taken, o, error);
    json_array_append_new(list, o);
  }
  if (status == HONE_OK) {
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/outputs.json", folder);
    status = cli_file_json(path, json_pack("{s:O}", "outputs", list), error);
  }
  if (status != HONE_OK) cli_drop_folder(folder, made);
  json_decref(taken);
  json_decref(list);
  return status;
}

/* Range and mean of the finite numbers of an output. */
typedef struct summary {
  double min, max, mean;
  int64_t bad; /* NaN or infinite */
  bool known;
} summary;

/* Of every fourth number, or so. */
typedef struct part {
  double sum;
  float low, high;
  int64_t good;
} part;

static inline void take_in(part *p, float v) {
  const bool fine = fabsf(v) < INFINITY;
  p->sum += fine ? (double)v : 0;
  p->low = fine && v < p->low ? v : p->low;
  p->high = fine && v > p->high ? v : p->high;
  p->good += fine;
}

/* Outputs are mostly of this type, and some are large: four sums, since one would wait for itself. */
static summary summarise_f32(const float *at, int64_t n) {
  part a = {0, INFINITY, -INFINITY, 0}, b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    take_in(&a, at[i]);
    take_in(&b, at[i + 1]);
    take_in(&c, at[i + 2]);
    take_in(&d, at[i + 3]);
  }
  for (; i < n; i++) take_in(&a, at[i]);
  const int64_t good = a.good + b.good + c.good + d.good;
  return (summary){.min = fminf(fminf(a.low, b.low), fminf(c.low, d.low)),
                   .max = fmaxf(fmaxf(a.high, b.high), fmaxf(c.high, d.high)),
                   .mean = good ? (a.sum + b.sum + (c.sum + d.sum)) / (double)good : 0,
                   .bad = n - good,
                   .known = good > 0};
}

static summary summarise(const hone_tensor *t) {
  summary s = {INFINITY, -INFINITY, 0, 0, false};
  int64_t n = hone_desc_count(&t->desc), good = 0;
  if (t->desc.dtype == HONE_DTYPE_F32) return summarise_f32(t->data, n);
  for (int64_t i = 0; i < n; i++) {
    double v;
    switch (t->desc.dtype) {
    case HONE_DTYPE_F64: v = ((const double *)t->data)[i]; break;
    case HONE_DTYPE_I64: v = (double)((const int64_t *)t->data)[i]; break;
    case HONE_DTYPE_I32: v = ((const int32_t *)t->data)[i]; break;
    case HONE_DTYPE_U8:
    case HONE_DTYPE_BOOL: v = ((const uint8_t *)t->data)[i]; break;
    default: return s;
    }
    if (!isfinite(v)) {
      s.bad++;
      continue;
    }
    if (v < s.min) s.min = v;
    if (v > s.max) s.max = v;
    s.mean += v;
    good++;
  }
  s.known = good > 0;
  if (good) s.mean /= (double)good;
  return s;
}

static json_t *value_json(const hone_tensor *t, const char *name) {
  json_t *o = cli_desc_json(&t->desc);
  json_object_set_new(o, "name", json_string(name));
  if (!hone_dtype_is_tensor(t->desc.dtype)) {
    const hone_items *items = t->data;
    json_t *list = json_array();
    for (size_t i = 0; i < items->count; i++) {
      char inner[300];
      snprintf(inner, sizeof inner, "%.270s.%zu", name, i);
      json_array_append_new(list, value_json(items->item[i], inner));
    }
    json_object_set_new(o, "items", list);
    return o;
  }
  summary u = summarise(t);
  json_object_set_new(o, "min", u.known ? cli_real(u.min) : json_null());
  json_object_set_new(o, "max", u.known ? cli_real(u.max) : json_null());
  json_object_set_new(o, "mean", u.known ? cli_real(u.mean) : json_null());
  json_object_set_new(o, "not_finite", json_integer(u.bad));
  return o;
}

static json_t *document(const cli_args *args, const cli_session *s, double ms, json_t *top5,
                        const hone_memory_stats *memory) {
  json_t *outputs = json_array();
  for (uint32_t i = 0; i < hone_plan_outputs(s->plan); i++)
    json_array_append_new(outputs,
                          value_json(hone_context_output(s->context, i), hone_plan_output_name(s->plan, i)));
  json_t *doc = json_pack("{s:o, s:o, s:o}", "outputs", outputs, "run_ms", cli_real(ms), "load_ms",
                          cli_real(s->load_ms));
  if (top5) json_object_set(doc, "top5", top5);
  if (memory) json_object_set_new(doc, "memory", memory_json(memory));
  json_object_set_new(doc, "preprocess", cli_preprocess_of_inputs(args));
  return doc;
}

static void value_text(const hone_tensor *t, const char *name) {
  const hone_items *items = hone_dtype_is_tensor(t->desc.dtype) ? NULL : t->data;
  char d[128], inner[300];
  cli_print("%-24s %-24s", name, hone_desc_format(&t->desc, d, sizeof d));
  if (items) {
    cli_print(" %zu inside\n", items->count);
    for (size_t i = 0; i < items->count; i++) {
      snprintf(inner, sizeof inner, "%.270s.%zu", name, i);
      value_text(items->item[i], inner);
    }
    return;
  }
  summary u = summarise(t);
  if (u.known) cli_print(" min %.6g  max %.6g  mean %.6g", u.min, u.max, u.mean);
  if (u.bad) cli_print("  %lld not finite", (long long)u.bad);
  cli_print("\n");
}

static void text(const cli_session *s, double ms) {
  for (uint32_t i = 0; i < hone_plan_outputs(s->plan); i++)
    value_text(hone_context_output(s->context, i), hone_plan_output_name(s->plan, i));
  cli_print("\nload %.1f ms, run %.2f ms\n", s->load_ms, ms);
}

static int run(const cli_args *asked) {
  cli_args own = *asked;
  own.no_peak = !own.memory; /* what it takes is a hundredth of a small model's run */
  const cli_args *args = &own;
  cli_session s = {0};
  cli_labels labels = {0};
  hone_error error = {0};
  hone_memory_stats memory = {0};
  json_t *top5 = NULL;
  int code = 0;
  hone_status status = HONE_OK;
  if (args->labels) status = cli_labels_read(args->labels, &labels, &error);
  if (status == HONE_OK) status = cli_session_open(&s, args, args->rest.item[0], &error);
  double start = cli_now_ms();
  if (status == HONE_OK) status = cli_session_run(&s, args, &error);
  double ms = cli_now_ms() - start;
  if (status == HONE_OK && args->output_dir) {
    cli_cancellable(NULL);
    status = save_outputs(&s, args->output_dir, &error);
  }
  if (status == HONE_OK && args->memory) status = hone_engine_memory(s.engine, &memory, &error);
  for (uint32_t i = 0; status == HONE_OK && labels.n && !top5 && i < hone_plan_outputs(s.plan); i++)
    top5 = cli_labels_top5(&labels, hone_context_output(s.context, i));
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else if (args->json) {
    code = cli_print_json(document(args, &s, ms, top5, args->memory ? &memory : NULL));
  } else {
    text(&s, ms);
    if (top5) cli_labels_print(top5);
    if (args->memory) {
      cli_print("\n");
      memory_text(&memory);
    }
    if (labels.n && !top5) cli_note("--labels: no output holds class scores");
    code = cli_flush();
  }
  hone_memory_stats_free(&memory);
  json_decref(top5);
  cli_labels_free(&labels);
  cli_session_leave(&s, args);
  return code;
}

static const cli_option options[] = {
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE",
     "an input: .npy, .npz, .pb, .jpg, .png, or a number (seeded random)"},
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR",
     "write every output as DIR/<name>.npy, and DIR/outputs.json"},
    {0, "labels", CLI_TEXT, CLI_FIELD(labels), "FILE",
     "print the five most likely classes; one label a line"},
    {0, "memory", CLI_FLAG, CLI_FIELD(memory), NULL, "show who holds how much memory when the run is over"},
    CLI_OPT_RUN,
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_run = {
    "run",
    "MODEL [--input [NAME=]FILE]...",
    "run a model once",
    "Inputs without a file are random but seeded; integers respect embedding tables, masks are ones, and "
    "what an If compares with a constant to choose its branch is that constant (--input sr=8000 says "
    "otherwise). Pictures are stretched to the input's size and normalised as for ImageNet unless options "
    "say otherwise. NAME may be left out for a model with one input. In file names every character of an "
    "output's name outside A-Za-z0-9._- becomes _.",
    options,
    1,
    1,
    run};
