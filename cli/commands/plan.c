/* hone plan: what a plan consists of; with --shapes, the plans for all sizes of its dimensions. */
#include "cli/options/options.h"
#include "cli/options/profiles.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/reports/plans.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ one plan */

static json_t *steps_json(const hone_plan *plan) {
  json_t *list = json_array();
  hone_step_info s;
  for (uint32_t i = 0; hone_plan_step(plan, i, &s); i++) {
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:b}", "name", s.name, "type", s.op_type, "what",
                  s.what, "tactic", s.tactic, "shape", s.shape, "flops", cli_real(s.flops), "bytes",
                  cli_real(s.bytes), "predicted_us", cli_real(s.predicted_s * 1e6), "tuned", (int)s.tuned);
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *plan_json(const char *path, const cli_session *s, const cli_args *args) {
  uint64_t arena = 0, constants = 0, workspace = 0;
  hone_plan_memory(s->plan, &arena, &constants, &workspace);
  return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:{s:I, s:I, s:I}, s:o}", "model", path, "device",
                   cli_device_name(args), "precision", hone_plan_precision(s->plan), "threads",
                   (json_int_t)cli_threads(s, args), "slices", (json_int_t)hone_plan_slices(s->plan),
                   "ready_ms", cli_real(s->load_ms), "memory", "activations", (json_int_t)arena, "constants",
                   (json_int_t)constants, "workspace", (json_int_t)workspace, "steps", steps_json(s->plan));
}

static void plan_text(const char *path, const cli_session *s, const cli_args *args) {
  char a[24], b[24], c[24];
  uint64_t arena = 0, constants = 0, workspace = 0;
  hone_step_info step;
  double predicted = 0;
  uint32_t tuned = 0, rows = args->rows ? (uint32_t)args->rows : hone_plan_steps(s->plan);
  hone_plan_memory(s->plan, &arena, &constants, &workspace);
  cli_print("%-12s %s  (%s, %s, threads: %u)\n", "model", path, cli_device_name(args),
            hone_plan_precision(s->plan), cli_threads(s, args));
  for (uint32_t i = 0; i < hone_plan_inputs(s->plan); i++)
    cli_print("%-12s %s  %s\n", i ? "" : "inputs", hone_plan_input_name(s->plan, i),
              hone_desc_format(hone_plan_input_desc(s->plan, i), (char[128]){0}, 128));
  if (hone_plan_slices(s->plan) > 1)
    cli_print("%-12s %u of the batch, one after the other; steps below are a slice's, with the time of all "
              "of them\n",
              "slices", hone_plan_slices(s->plan));
  cli_print("\n%-28s %-36s %-24s %-20s %10s\n", "step", "what", "tactic", "output", "us");
  for (uint32_t i = 0; hone_plan_step(s->plan, i, &step); i++) {
    if (i < rows)
      cli_print("%-28.28s %-36.36s %-24.24s %-20.20s %10.1f%s\n", step.name, step.what, step.tactic,
                step.shape, step.predicted_s * 1e6, step.tuned ? " *" : "");
    predicted += step.predicted_s;
    tuned += step.tuned;
  }
  if (rows < hone_plan_steps(s->plan)) cli_print("... and %u more\n", hone_plan_steps(s->plan) - rows);
  cli_print("\n%-12s %u, of %u node%s; %.3g ms predicted%s\n", "steps", hone_plan_steps(s->plan),
            hone_plan_source_nodes(s->plan), cli_s(hone_plan_source_nodes(s->plan)), predicted * 1e3,
            tuned ? " (*: measured by hone tune)" : "");
  cli_print("%-12s activations %s, constants %s, workspace %s\n", "memory", cli_bytes((double)arena, a),
            cli_bytes((double)constants, b), cli_bytes((double)workspace, c));
  cli_print("%-12s %.1f ms from the file to the plan\n", "ready", s->load_ms);
}

static int show_plan(const cli_args *asked) {
  cli_args own = *asked;
  own.plan_only = true; /* inputs may be larger than this machine's memory */
  const cli_args *args = &own;
  const char *path = args->rest.item[0];
  cli_session s = {0};
  hone_error error = {0};
  int code = 0;
  if (args->profiles.n) return cli_error(HONE_ERROR_USAGE, "hone plan: --profile is for --shapes");
  if (args->runs >= 0)
    return cli_error(HONE_ERROR_USAGE, "hone plan: --runs is for --shapes; hone bench measures");
  const hone_status status = cli_session_open(&s, args, path, &error);
  if (status != HONE_OK)
    code = cli_report(&error);
  else if (args->json)
    code = cli_print_json(plan_json(path, &s, args));
  else {
    plan_text(path, &s, args);
    code = cli_flush();
  }
  cli_session_close(&s);
  return code;
}

/* ------------------------------------------------------------------ plans by size */

/* Without any --profile: each symbol of the inputs, from 1 to 32. */
static void assume_profiles(const hone_model *model, hone_size_profile *out, uint32_t *n) {
  hone_port port;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++)
    for (int32_t k = 0; k < port.desc.rank && *n < HONE_PROFILES; k++) {
      bool known = !port.symbol[k] || k > 0; /* sizes of other dimensions are the model's to say */
      for (uint32_t j = 0; !known && j < *n; j++) known = strcmp(out[j].symbol, port.symbol[k]) == 0;
      if (known) continue;
      out[(*n)++] = (hone_size_profile){.symbol = port.symbol[k], .min = 1, .opt = 1, .max = 32};
      cli_note("dimension '%s' from 1 to 32; --profile %s=MIN:OPT:MAX changes it", port.symbol[k],
               port.symbol[k]);
    }
}

static int show_shapes(const cli_args *args) {
  const char *path = args->rest.item[0];
  cli_session s = {0};
  hone_size_profile profile[HONE_PROFILES];
  hone_shapes *shapes = NULL;
  hone_error error = {0};
  uint32_t n = 0;
  int code = 0;
  char **texts = calloc(args->profiles.n + 1, sizeof *texts);
  if (!texts) return cli_error(HONE_ERROR_MEMORY, "out of memory");
  hone_status status = cli_profiles(args, texts, profile, &n, &error);
  if (status == HONE_OK) status = cli_check_device(args, &error);
  if (status == HONE_OK && hone_plan_is_saved(path)) {
    error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error.what, sizeof error.what, "a saved plan has one shape: --shapes wants the model");
    status = HONE_ERROR_USAGE;
  }
  if (status == HONE_OK) status = cli_session_load(&s, args, path, &error);
  if (status == HONE_OK && !n) assume_profiles(s.model, profile, &n);
  if (status == HONE_OK) {
    const hone_plan_options o = cli_session_options(&s, args, (int)args->level);
    const hone_shapes_options options = {
        .profiles = profile, .n_profiles = n, .plan = &o, .capacity = UINT32_MAX};
    status = hone_shapes_create(s.engine, s.model, &options, &shapes, &error);
    const cli_plans plans = {path, args, &s, shapes, profile, n};
    if (status == HONE_OK) status = cli_plans_prepare(&plans, &error);
    if (status == HONE_OK && cli_interrupted())
      code = cli_end_interrupted(NULL);
    else if (status == HONE_OK)
      code = cli_plans_show(&plans, &error, &status);
    hone_shapes_destroy(shapes);
  }
  if (status != HONE_OK) code = cli_report(&error);
  cli_session_close(&s);
  for (size_t i = 0; i < args->profiles.n; i++) free(texts[i]);
  free(texts);
  return code;
}

static int run(const cli_args *args) { return args->dynamic ? show_shapes(args) : show_plan(args); }

static const cli_option options[] = {
    {0, "shapes", CLI_FLAG, CLI_FIELD(dynamic), NULL,
     "a table of plans for the sizes of its open dimensions"},
    {0, "profile", CLI_LIST, CLI_FIELD(profiles), "N=MIN:OPT:MAX",
     "sizes of a dimension, for --shapes; powers of two, or multiples of a fourth number"},
    {'n', "runs", CLI_COUNT, CLI_FIELD(runs), "N", "with --shapes: measure N runs of each plan (0: predict)"},
    CLI_OPT_RUN,
    CLI_OPT_PASSES,
    {0, "rows", CLI_COUNT, CLI_FIELD(rows), "N", "print at most N steps (all)"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_plan = {
    "plan",
    "MODEL",
    "show the steps of a plan, or the plans for many sizes",
    "Steps, their tactics, predicted times and memory of the plan that run and bench would use. With "
    "--shapes, every size of the dimensions that --profile names: what its plan costs, what it shares with "
    "the others, and whether inputs may be padded to it, with what stands against that.",
    options,
    1,
    1,
    run};
