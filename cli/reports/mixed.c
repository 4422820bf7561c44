/* hone quantize --max-drop: mixed precision under two budgets, as a table and as JSON. */
#include "cli/reports/mixed.h"
#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/labelled.h"
#include "cli/reports/coverage.h"
#include "cli/reports/quantize_page.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/names.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NOT_FOUND = 1, OTHERS = 70 /* columns beside the name and the times */ };

static hone_status usage(hone_error *error, const char *what, const char *expected) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "hone quantize: %s", what);
  snprintf(error->expected, sizeof error->expected, "%s", expected);
  return HONE_ERROR_USAGE;
}

static hone_status metric_of(const cli_args *args, hone_mixed_metric *out, hone_error *error) {
  for (int i = 0; i < HONE_MIXED_METRICS; i++)
    if (strcmp(args->metric, hone_mixed_metric_name((hone_mixed_metric)i)) == 0) {
      *out = (hone_mixed_metric)i;
      return HONE_OK;
    }
  char what[100];
  snprintf(what, sizeof what, "--metric knows no '%.40s'", args->metric);
  return usage(error, what, "top1, top5, map, cosine or sqnr");
}

/* ---- JSON */

static json_t *by_type(const double *figures, bool decibels) {
  json_t *o = json_object();
  for (int t = 0; t < HONE_MIXED_TYPES; t++)
    if (!isnan(figures[t]))
      json_object_set_new(o, hone_mixed_type_name((hone_mixed_type)t),
                          cli_real(decibels ? -10 * log10(figures[t]) : figures[t]));
  return o;
}

static json_t *score_json(const hone_mixed_score *s) {
  return json_pack("{s:I, s:o, s:o, s:o}", "samples", (json_int_t)s->samples, "before", cli_real(s->before),
                   "after", cli_real(s->after), "drop", cli_real(s->drop));
}

static json_t *layer_json(const hone_mixed_layer *l) {
  return json_pack("{s:o, s:o, s:s, s:s, s:o, s:i, s:o, s:o}", "name", cli_text(l->name), "op_type",
                   cli_text(l->op_type), "type", hone_mixed_type_name(l->type), "reason",
                   hone_mixed_reason_name(l->reason), "why", cli_text(l->why), "unit", (int)l->unit, "ms",
                   by_type(l->ms, false), "sqnr_db", by_type(l->noise, true));
}

static json_t *document(const cli_args *args, const hone_mixed_report *r, bool written) {
  json_t *layers = json_array(), *warnings = json_array();
  for (uint32_t i = 0; i < r->n_layers; i++) json_array_append_new(layers, layer_json(&r->layer[i]));
  for (uint32_t i = 0; i < r->n_warnings; i++) json_array_append_new(warnings, cli_text(r->warning[i]));
  json_t *time = r->timed ? json_pack("{s:o, s:o, s:o, s:o, s:o, s:i}", "before_ms", cli_real(r->before_ms),
                                      "after_ms", cli_real(r->after_ms), "change", cli_real(r->change), "low",
                                      cli_real(r->low), "high", cli_real(r->high), "pairs", (int)r->pairs)
                          : json_null();
  return json_pack(
      "{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:o}", "model",
      cli_text(args->rest.item[0]), "output", written ? cli_text(args->output) : json_null(), "verdict",
      hone_mixed_verdict_name(r->verdict), "metric", hone_mixed_metric_name(r->metric), "max_drop",
      cli_real(r->max_drop), "all_narrow", cli_real(r->all_narrow), "chosen", score_json(&r->chosen),
      "held_out", score_json(&r->held_out), "time", time, "layers_narrow", (int)r->narrow, "models",
      (int)r->models, "returned", (int)r->returned, "held_back", (int)r->held_back, "seconds",
      cli_real(r->seconds), "layers", layers, "warnings", warnings, "samples", (int)r->calibrated, "coverage",
      cli_coverage_json(&r->coverage));
}

/* ---- text */

static const char *figure(double v, int digits, char buf[16]) {
  if (isnan(v)) return "-";
  if (isinf(v)) return "exact";
  snprintf(buf, 16, "%.*f", digits, v);
  return buf;
}

static void layer_row(const hone_mixed_layer *l, const bool *columns, int width) {
  char buf[16], name[CLI_NAME_ROOM];
  cli_print("%s %-16.16s %-5s", cli_name_cell(l->name, width, name), l->op_type,
            hone_mixed_type_name(l->type));
  for (int t = 0; t < HONE_MIXED_TYPES; t++)
    if (columns[t]) cli_print(" %9s", figure(l->ms[t], 4, buf));
  /* The error of the type that it has, or would have had. */
  double noise = l->noise[l->type];
  for (int t = HONE_MIXED_TYPES - 1; t > 0 && l->type == HONE_MIXED_F32 && isnan(noise); t--)
    noise = l->noise[t];
  cli_print(" %9s  %s\n", figure(-10 * log10(noise), 1, buf), l->why);
}

static void layer_table(const hone_mixed_report *r) {
  bool columns[HONE_MIXED_TYPES] = {false};
  uint32_t without = 0;
  int width = 0, others = OTHERS;
  cli_name_widen(&width, "layer");
  for (uint32_t i = 0; i < r->n_layers; i++) {
    if (r->layer[i].unit >= 0) cli_name_widen(&width, r->layer[i].name);
    for (int t = 0; t < HONE_MIXED_TYPES; t++) columns[t] |= !isnan(r->layer[i].ms[t]);
  }
  for (int t = 0; t < HONE_MIXED_TYPES; t++) others += columns[t] ? 10 : 0;
  width = cli_name_width(width, others);
  cli_print("%-*s %-16s %-5s", width, "layer", "operator", "type");
  for (int t = 0; t < HONE_MIXED_TYPES; t++) {
    char head[16];
    snprintf(head, sizeof head, "%s ms", hone_mixed_type_name((hone_mixed_type)t));
    if (columns[t]) cli_print(" %9s", head);
  }
  cli_print(" %9s  %s\n", "SQNR dB", "reason");
  for (uint32_t i = 0; i < r->n_layers; i++) {
    if (r->layer[i].unit >= 0)
      layer_row(&r->layer[i], columns, width);
    else
      without++;
  }
  if (without) cli_print("%u more have no narrow form\n", without);
}

static void score_line(const char *what, const hone_mixed_report *r, const hone_mixed_score *s) {
  char a[16], b[16];
  if (!s->samples) return;
  cli_print("%-10s %s %s before, %s after: a drop of %.4g of the %.4g allowed, on %llu samples\n", what,
            hone_mixed_metric_name(r->metric), figure(s->before, 6, a), figure(s->after, 6, b), s->drop,
            r->max_drop, (unsigned long long)s->samples);
}

/* Why nothing was written; "" where something was. */
static const char *said(hone_mixed_verdict verdict) {
  static const char *const words[HONE_MIXED_VERDICTS] = {
      "", "no mixture keeps the budget on the samples held out", "no layer is faster in a narrower type here",
      "the result is not faster than the input beyond doubt"};
  return words[verdict];
}

static void text(const cli_args *args, const hone_mixed_report *r) {
  char line[300];
  layer_table(r);
  if (r->calibrated && !r->coverage.problems)
    cli_print("%-10s %s\n", "samples", cli_coverage_line(&r->coverage, r->calibrated, line, sizeof line));
  if (r->all_narrow > r->max_drop)
    cli_print("%-10s a drop of %.4g of the %.4g allowed, with all layers narrow\n", "narrow", r->all_narrow,
              r->max_drop);
  if (r->verdict == HONE_MIXED_MET || r->verdict == HONE_MIXED_SLOWER) score_line("chosen", r, &r->chosen);
  score_line("held out", r, &r->held_out);
  if (r->timed) { /* the change is no quotient of the medians: pairs are compared within themselves */
    cli_print("%-10s %+.1f %% in %u pair%s of runs in turn (95 %%: %+.1f to %+.1f %%)\n", "time",
              100 * r->change, r->pairs, cli_s(r->pairs), 100 * r->low, 100 * r->high);
    cli_print("%-10s %.4g ms before, %.4g ms after, each by itself\n", "medians", r->before_ms, r->after_ms);
  }
  cli_print(
      "%-10s %u model%s in %.1f s; %u step%s back to wider types, %u of them for the samples held out\n",
      "search", r->models, cli_s(r->models), r->seconds, r->returned, cli_s(r->returned), r->held_back);
  if (r->verdict == HONE_MIXED_MET)
    cli_print("%u of %u layer%s narrow; written to %s\n", r->narrow, r->n_layers,
              r->n_layers == 1 ? " is" : "s are", args->output);
  else
    cli_print("nothing written: %s\n", said(r->verdict));
}

/* ---- */

static bool is_folder(const char *path) {
  struct stat s;
  return path && stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* --data; else --labels where that is a folder; else the pictures of --calib. What is calibrated on is then
 * the half that chooses, so that nothing of the other half is seen. */
static hone_status open_set(const cli_args *args, hone_mixed_options *o, hone_dataset **out,
                            hone_error *error) {
  const char *path = args->data.n              ? NULL
                     : is_folder(args->labels) ? args->labels
                     : args->labels            ? args->calib
                                               : NULL;
  if (!path && !args->data.n)
    return usage(error, "this metric needs labelled data", "--labels DIR, or --data PATH");
  const char *data = path ? path : args->data.item[0];
  const hone_status status = cli_labelled_open(args, path, out, error);
  o->set = *out;
  if (args->calib && args->data.n <= 1 && strcmp(args->calib, data) == 0) o->quantize.calib = NULL;
  return status;
}

static int answer(const cli_args *args, const hone_mixed_report *r) {
  const bool met = r->verdict == HONE_MIXED_MET;
  int code = 0;
  for (uint32_t i = 0; i < r->n_warnings; i++) cli_note("warning: %s", r->warning[i]);
  if (args->json) {
    code = cli_print_json(document(args, r, met));
  } else {
    text(args, r);
    code = cli_flush();
  }
  return code ? code : met ? 0 : NOT_FOUND;
}

int cli_mixed(const cli_args *args, hone_model *model, const hone_quantize_options *quantize) {
  hone_mixed_options o = {.quantize = *quantize,
                          .max_drop = args->max_drop,
                          .untimed = args->untimed,
                          .max_seconds = args->max_seconds,
                          .watch = cli_watch()};
  hone_dataset *set = NULL;
  hone_model *out = NULL;
  hone_mixed_report report = {0};
  hone_error error = {0};
  cli_hold(true);
  hone_status status = metric_of(args, &o.metric, &error);
  if (status == HONE_OK) status = cli_labelled_boxes(args, &o.boxes, &error);
  if (status == HONE_OK && hone_mixed_metric_labelled(o.metric)) status = open_set(args, &o, &set, &error);
  if (status == HONE_OK) status = hone_mix(model, &o, &out, &report, &error);
  cli_progress_end();
  if (status == HONE_OK && out) status = hone_model_save(out, args->output, &error);
  cli_hold(false);
  if (status == HONE_OK) status = cli_mixed_page(args, &report, said(report.verdict), &error);
  const int code = status == HONE_OK ? answer(args, &report) : cli_report(&error);
  hone_mixed_report_free(&report);
  hone_model_release(out);
  hone_dataset_close(set);
  return code;
}
