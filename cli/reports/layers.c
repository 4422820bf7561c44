/* Error by layer, as a table and as JSON. */
#include "cli/reports/layers.h"

#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/reports/layers_page.h"
#include "cli/terminal/names.h"
#include "cli/terminal/plot.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS = 20, OTHERS = 104 /* columns beside the name */ };

static bool progress(void *arg, uint32_t done, uint32_t total) {
  (void)arg;
  cli_progress("layers", done, total);
  return !cli_interrupted();
}

/* ---- JSON */

static json_t *layer_json(const hone_layer_error *l) {
  json_t *o = json_pack(
      "{s:o, s:o, s:o, s:o, s:i, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o}", "name",
      cli_text(l->name), "op_type", cli_text(l->op_type), "value", cli_text(l->value), "quantized",
      cli_text(l->quantized), "step", (int)l->depth, "by_place", l->by_place, "elements",
      (json_int_t)l->elements, "snr_db", cli_real(l->snr_db), "cosine", cli_real(l->cosine), "max_error",
      cli_real(l->max_error), "own_snr_db", cli_real(l->own_snr_db), "own_max_error",
      cli_real(l->own_max_error), "range", json_pack("[o, o]", cli_real(l->least), cli_real(l->most)),
      "beyond_6_sigma", cli_real(l->beyond_6_sigma), "peak", cli_real(l->peak), "bad", l->bad, "reason",
      hone_layer_reason_name(l->reason), "why", cli_text(l->why));
  json_object_set_new(o, "channel_snr_db", cli_real(l->channel_snr_db));
  json_object_set_new(o, "codes",
                      l->codes ? json_pack("{s:o, s:i, s:o, s:o, s:i, s:i, s:o}", "scale", cli_real(l->scale),
                                           "zero_point", (int)l->zero_point, "saturated",
                                           cli_real(l->saturated), "at_ends", cli_real(l->at_ends), "used",
                                           (int)l->codes_used, "available", (int)l->codes_available,
                                           "range_used", cli_real(l->range_used))
                               : json_null());
  json_object_set_new(o, "weights",
                      l->channels ? json_pack("{s:i, s:b, s:o}", "channels", (int)l->channels, "one_scale",
                                              l->one_scale, "imbalance", cli_real(l->imbalance))
                                  : json_null());
  return o;
}

static json_t *place_json(const hone_layers_report *r, int32_t i) {
  return i < 0 ? json_null() : cli_text(r->layer[i].name);
}

static json_t *document(const cli_args *args, const hone_layers_report *r, const cli_dump *dump) {
  json_t *layers = json_array();
  for (uint32_t i = 0; i < r->n_layers; i++) json_array_append_new(layers, layer_json(&r->layer[i]));
  return json_pack("{s:o, s:o, s:i, s:i, s:b, s:i, s:o, s:o, s:o, s:O?}", "model",
                   cli_text(args->rest.item[0]), "quantized", cli_text(args->rest.item[1]), "samples",
                   (int)r->samples, "groups", (int)r->groups, "by_place", r->by_place, "unmatched",
                   (int)r->unmatched, "first_bad", place_json(r, r->first), "worst", place_json(r, r->worst),
                   "layers", layers, "dumped", dump->files);
}

/* ---- text */

/* What a layer adds comes first, then what has come together. */
static int worse(const void *a, const void *b) {
  const hone_layer_error *x = *(const hone_layer_error *const *)a, *y = *(const hone_layer_error *const *)b;
  if (x->bad != y->bad) return y->bad - x->bad;
  if (x->own_snr_db != y->own_snr_db) return x->own_snr_db < y->own_snr_db ? -1 : 1;
  return (x->depth > y->depth) - (x->depth < y->depth);
}

static const char *number(char buf[16], const char *format, double v) {
  if (isinf(v)) return v > 0 ? "exact" : "-";
  snprintf(buf, 16, format, v);
  return buf;
}

static void row(const hone_layer_error *l, int width) {
  char shown[CLI_NAME_ROOM], own[16], whole[16], saturated[16] = "-", used[16] = "-", imbalance[16] = "-";
  if (l->codes) {
    snprintf(saturated, sizeof saturated, "%.2f", 100 * l->saturated);
    snprintf(used, sizeof used, "%u/%u", l->codes_used, l->codes_available);
  }
  if (l->channels) snprintf(imbalance, sizeof imbalance, "%.3g%s", l->imbalance, l->one_scale ? "*" : "");
  cli_print("%s %-14.14s %7s %7s %8.5f %9.3g %7s %8s %7s %7.4f %6.3g  %s\n",
            cli_name_cell(l->name, width, shown), l->op_type, number(own, "%.1f", l->own_snr_db),
            number(whole, "%.1f", l->snr_db), l->cosine, l->max_error, saturated, used, imbalance,
            100 * l->beyond_6_sigma, l->peak,
            l->reason == HONE_LAYER_HEALTHY ? "" : hone_layer_reason_name(l->reason));
}

static void table(const cli_args *args, const hone_layers_report *r) {
  const hone_layer_error **order = malloc((r->n_layers + 1) * sizeof *order);
  if (!order) return;
  for (uint32_t i = 0; i < r->n_layers; i++) order[i] = &r->layer[i];
  qsort(order, r->n_layers, sizeof *order, worse);
  const uint32_t n = args->all || r->n_layers < ROWS ? r->n_layers : ROWS;
  int width = 0;
  for (uint32_t i = 0; i < n; i++) cli_name_widen(&width, order[i]->name);
  cli_name_widen(&width, "layer");
  width = cli_name_width(width, OTHERS);
  cli_print("%-*s %-14s %7s %7s %8s %9s %7s %8s %7s %7s %6s  %s\n", width, "layer", "operator", "own dB",
            "sum dB", "cosine", "max error", "clip %", "codes", "imbal.", "6 sig %", "peak", "what");
  for (uint32_t i = 0; i < n; i++) row(order[i], width);
  if (n < r->n_layers) cli_print("%u more with --all\n", r->n_layers - n);
  free(order);
}

static void name(const char *what, const hone_layers_report *r, int32_t i) {
  const hone_layer_error *l = &r->layer[i];
  cli_print("%s: %s (%s, layer %d of %u), %s: %s\n", what, l->name, l->op_type, i + 1, r->n_layers,
            hone_layer_reason_name(l->reason), l->why);
}

static void depths(const hone_layers_report *r) {
  double *y = malloc((r->n_layers + 1) * sizeof *y);
  for (uint32_t i = 0; y && i < r->n_layers; i++) y[i] = fmin(r->layer[i].snr_db, 100);
  if (y && r->n_layers > 2) {
    cli_print("\nsignal to noise over depth (dB)\n");
    cli_plot(y, r->n_layers, r->layer[0].name, r->layer[r->n_layers - 1].name);
  }
  free(y);
}

static int text(const cli_args *args, const hone_layers_report *r, const cli_dump *dump) {
  table(args, r);
  cli_print("own: what the layer adds, on the float model's values; sum: as it came out. clip: float values "
            "outside of "
            "the codes; imbal.: of the weights' channels (*: one scale); peak: over the 99.9th percentile\n");
  if (args->plot) depths(r);
  const bool random = !args->data.n && !args->inputs.n;
  cli_print("\n%u layer%s on %u %ssample%s", r->n_layers, cli_s(r->n_layers), r->samples,
            random ? "random " : "", r->samples == 1 ? "" : "s");
  if (r->by_place) cli_print(", paired by their place: the names differ");
  if (r->unmatched)
    cli_print(", %u value%s of 8 bits without a float value", r->unmatched, cli_s(r->unmatched));
  cli_print("\n");
  if (r->first < 0) cli_print("no layer is bad\n");
  if (r->first >= 0) name("first bad", r, r->first);
  if (r->worst >= 0 && r->worst != r->first) name("worst", r, r->worst);
  if (random)
    cli_print("random values are none that the ranges were chosen for: --data DIR or --input FILE gives real "
              "ones\n");
  cli_dump_say(dump);
  return cli_flush();
}

int cli_layers(const cli_args *args, hone_model *exact, hone_model *quantized, const hone_binding *bindings,
               uint32_t n, const hone_layers_options *options, const cli_dump *dump) {
  hone_layers_options o = *options;
  hone_layers_report r;
  hone_error error = {0};
  if (args->html && cli_keep_inputs(args, args->html, &error) != HONE_OK) return cli_report(&error);
  o.bindings = bindings;
  o.n_bindings = n;
  o.progress = progress;
  o.dump = cli_dump_of(dump);
  const hone_status status = hone_layers(exact, quantized, &o, &r, &error);
  cli_progress_end();
  if (status != HONE_OK) return cli_report(&error);
  if (args->html && cli_layers_page(args, &r, &error) != HONE_OK) {
    hone_layers_report_free(&r);
    return cli_report(&error);
  }
  int code = args->json ? cli_print_json(document(args, &r, dump)) : text(args, &r, dump);
  if (code == 0 && r.first >= 0) code = 1;
  hone_layers_report_free(&r);
  return code;
}
