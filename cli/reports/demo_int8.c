/* hone demo int8: one classifier in f32, 16 bits, 8 bits and mixed, as a table. */
#include "cli/reports/demo.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct int8_demo {
  const cli_args *args;
  cli_demo_machine machine;
  const char *path; /* NULL: of the zoo */
  hone_model *model;
  hone_dataset *set;
  hone_preprocess preprocess;
  hone_int8_table table;
} int8_demo;

static const char *network_of(const int8_demo *d) {
  return d->path ? d->path : "mobilenetv2 of the zoo, random weights";
}

/* ---- text */

static void print_row(const int8_demo *d, const hone_int8_row *r) {
  if (!r->measured) {
    cli_print("%-6s not measured: %s\n", r->label, r->why);
    return;
  }
  char weights[24], activations[24];
  const hone_int8_row *first = &d->table.row[0];
  cli_print("%-6s %7.2f %% (%5.1f to %5.1f) %10.3f %10.1f %10s %10s ", r->label, 100 * r->share, 100 * r->low,
            100 * r->high, r->ms, (double)d->table.batch * 1e3 / r->ms,
            cli_bytes((double)r->weights, weights), cli_bytes((double)r->activations, activations));
  if (first->measured)
    cli_print("%6.2fx\n", first->ms / r->ms);
  else
    cli_print("\n");
}

static void print_notes(const int8_demo *d) {
  const hone_int8_table *t = &d->table;
  if (t->labelled)
    cli_print("\nTop-1 of %llu labelled samples, with its 95 %% interval.",
              (unsigned long long)t->row[0].samples);
  else
    cli_print("\nAs FP32: of %llu generated inputs, to which FP32 gives %u different answer%s, those that "
              "get the same. "
              "That is no accuracy: hone demo int8 MODEL --data PATH measures Top-1.",
              (unsigned long long)t->row[0].samples, t->answers, t->answers == 1 ? "" : "s");
  if (!d->args->calib)
    cli_print(t->labelled ? " Calibrated on some of them: --calib takes others.\n"
                          : " Calibrated on generated inputs, too.\n");
  else
    cli_print("\n");
  cli_print("Mixed: of %u layer%s in 8 bits %u stay%s %s, those that lose most:", t->layers, cli_s(t->layers),
            t->kept, t->kept == 1 ? "s" : "", d->machine.of.narrow);
  for (uint32_t i = 0; i < t->kept; i++) cli_print("%s %s", i ? "," : "", t->name[i]);
  cli_print(".\n");
}

/* The layers that stay wide are not chosen by answers: where that was the wrong choice, it is said. */
static void print_mixed(const hone_int8_table *t) {
  const hone_int8_row *int8 = &t->row[2], *mixed = &t->row[3];
  const hone_eval_change *c = &t->mixed;
  if (!int8->measured || !mixed->measured) return;
  if (c->only_a > c->only_b)
    cli_print(
        "Mixed is right %llu time%s less often than INT8 (%llu only INT8, %llu only mixed): %s (p = %.2g). "
        "Its layers are those with the largest error of their own, which need not be what answers hang on: "
        "%s\n",
        (unsigned long long)(c->only_a - c->only_b), c->only_a - c->only_b == 1 ? "" : "s",
        (unsigned long long)c->only_a, (unsigned long long)c->only_b,
        c->real ? "more than chance" : "no more than chance", c->p,
        t->labelled ? "hone quantize --max-drop X --metric top1 chooses by Top-1."
                    : "INT8 is the better choice.");
  else if (c->only_a == c->only_b && mixed->ms > int8->ms)
    cli_print("Mixed is slower than INT8 and right no more often: INT8 is the better choice.\n");
}

static int print_text(const int8_demo *d) {
  cli_print("%s\n%s (%s), batch %lld, medians of %u run%s\n\n", network_of(d), d->machine.name,
            d->machine.of.device, (long long)d->table.batch, d->machine.of.runs, cli_s(d->machine.of.runs));
  cli_print("%-6s %-26s %10s %10s %10s %10s\n", "", d->table.labelled ? "   Top-1" : " as FP32", "ms",
            "samples/s", "weights", "activ.");
  for (int i = 0; i < HONE_INT8_ROWS; i++) print_row(d, &d->table.row[i]);
  print_notes(d);
  print_mixed(&d->table);
  return cli_flush();
}

/* ---- JSON */

static json_t *row_json(const int8_demo *d, const hone_int8_row *r) {
  if (!r->measured) return json_pack("{s:s, s:s}", "label", r->label, "not_measured", r->why);
  return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:[o,o]}", "label", r->label, "ms",
                   cli_real(r->ms), "end_to_end_ms", cli_real(r->end_ms), "fps",
                   cli_real((double)d->table.batch * 1e3 / r->ms), "weight_bytes", (json_int_t)r->weights,
                   "activation_bytes", (json_int_t)r->activations, "right", (json_int_t)r->right, "samples",
                   (json_int_t)r->samples, d->table.labelled ? "top1" : "as_fp32", cli_real(r->share),
                   "interval", cli_real(r->low), cli_real(r->high));
}

static int print_json(const int8_demo *d) {
  const hone_int8_table *t = &d->table;
  json_t *rows = json_array(), *kept = json_array();
  for (int i = 0; i < HONE_INT8_ROWS; i++) json_array_append_new(rows, row_json(d, &t->row[i]));
  for (uint32_t i = 0; i < t->kept; i++) json_array_append_new(kept, cli_text(t->name[i]));
  const hone_eval_change *c = &t->mixed;
  json_t *mixed = c->samples
                      ? json_pack("{s:I, s:I, s:o, s:b}", "only_int8", (json_int_t)c->only_a, "only_mixed",
                                  (json_int_t)c->only_b, "p", cli_real(c->p), "real", c->real)
                      : json_null();
  return cli_print_json(json_pack("{s:s, s:s, s:s, s:o, s:I, s:b, s:i, s:i, s:o, s:o, s:o}", "demo", "int8",
                                  "device", d->machine.of.device, "name", d->machine.name, "network",
                                  cli_text(network_of(d)), "batch", (json_int_t)t->batch, "labelled",
                                  t->labelled, "fp32_answers", (int)t->answers, "int8_layers", (int)t->layers,
                                  "kept", kept, "rows", rows, "mixed_against_int8", mixed));
}

/* ---- */

static hone_status open_data(int8_demo *d, hone_error *error) {
  const cli_args *a = d->args;
  d->path = a->rest.n > 1 ? a->rest.item[1] : NULL;
  if (a->data.n && !d->path) {
    *error = (hone_error){.status = HONE_ERROR_USAGE,
                          .what = "--data is for a model: hone demo int8 MODEL --data PATH"};
    return HONE_ERROR_USAGE;
  }
  hone_status status = cli_preprocess(a, &d->preprocess, error);
  if (status == HONE_OK && a->data.n)
    status = hone_dataset_open(
        &(hone_dataset_options){.paths = a->data.item, .n_paths = (uint32_t)a->data.n, .labels = a->labels},
        &d->set, error);
  if (status == HONE_OK && d->path) status = hone_model_load(d->path, &d->model, error);
  return status;
}

int cli_demo_int8(const cli_args *args) {
  int8_demo d = {.args = args};
  hone_error error = {0};
  hone_status status = open_data(&d, &error);
  if (status == HONE_OK) status = cli_demo_machine_find(args, &d.machine, &error);
  if (status == HONE_OK) {
    const hone_int8_options o = {.model = d.model,
                                 .set = d.set,
                                 .preprocess = &d.preprocess,
                                 .calib = args->calib,
                                 .batch = args->batch,
                                 .watch = cli_watch()};
    status = hone_int8_measure(&d.machine.of, &o, &d.table, &error);
    cli_progress_end();
  }
  cli_cancellable(NULL);
  const int code = status != HONE_OK ? cli_report(&error) : args->json ? print_json(&d) : print_text(&d);
  hone_dataset_close(d.set);
  hone_model_release(d.model);
  return code;
}
