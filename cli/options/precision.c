/* --precision: what the plan may round, and for "auto" the measured choice. */
#include "cli/options/precision.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define AUTO_SECONDS 60.0

const char *cli_precision_name(const cli_args *args) { return args->precision ? args->precision : "f32"; }

static bool is_auto(const cli_args *args) { return strcmp(cli_precision_name(args), "auto") == 0; }

static bool progress(void *arg, uint32_t done, uint32_t total) {
  (void)arg;
  cli_progress("choose precision", done, total);
  return !cli_interrupted();
}

hone_status cli_precision_options(const cli_args *args, hone_precision_options *out, bool *automatic,
                                  hone_error *error) {
  *automatic = is_auto(args);
  *out = (hone_precision_options){.budget = args->budget,
                                  .seed = (uint64_t)args->seed,
                                  .threads = (uint32_t)args->threads,
                                  .batch = args->batch,
                                  .max_seconds = args->max_seconds > 0 ? args->max_seconds : AUTO_SECONDS,
                                  .device = args->device,
                                  .progress = progress};
  if (!*automatic || args->budget != 0) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what,
           "--budget wants more than 0: without any error everything is f32");
  return HONE_ERROR_USAGE;
}

hone_status cli_precision_make(const cli_args *args, hone_model *model, const hone_binding *bindings,
                               uint32_t n_bindings, cli_precision *out, hone_error *error) {
  hone_precision_options o;
  bool automatic;
  if (out->made) return HONE_OK;
  out->made = true;
  out->name = args->precision;
  hone_status status = cli_precision_options(args, &o, &automatic, error);
  if (status != HONE_OK || !automatic) return status;
  o.bindings = bindings;
  o.n_bindings = n_bindings;
  status = hone_precision_choose(model, &o, &out->choice, error);
  cli_progress_end();
  out->name = out->choice.narrow;
  return status;
}

json_t *cli_precision_json(const cli_args *args, const cli_precision *p) {
  if (!is_auto(args)) return json_null();
  const hone_precision_choice *c = &p->choice;
  json_t *nodes = json_array();
  for (uint32_t i = 0; i < c->n_f32_nodes; i++) json_array_append_new(nodes, json_string(c->f32_nodes[i]));
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:o}", "narrow", c->narrow, "budget",
                   cli_real(c->budget), "error_bf16", cli_real(c->error_bf16), "error", cli_real(c->error),
                   "error_held_out", cli_real(c->error_held_out), "candidates", (int)c->candidates, "samples",
                   (int)c->samples, "held_out", (int)c->held_out, "returned", (int)c->returned, "plans",
                   (int)c->plans, "f32_nodes", nodes);
}

void cli_precision_text(const cli_args *args, const cli_precision *p) {
  if (!is_auto(args)) return;
  const hone_precision_choice *c = &p->choice;
  cli_print(
      "precision   auto: %u of %u steps in %s, error %.2g of the output's range on %u samples that did not "
      "choose (budget %.2g; on the %u that did %.2g, all in %s %.2g)\n",
      c->candidates - c->n_f32_nodes, c->candidates, c->narrow, c->error_held_out, c->held_out, c->budget,
      c->samples, c->error, c->narrow, c->error_bf16);
}
