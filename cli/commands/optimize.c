/* hone optimize: rewrite the graph and write it back as ONNX. */
#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { LEVEL = 2, SHOWN = 32 }; /* the default; near misses of a pass */

/* What is told: the rewrites, and the fusions of lowering that nearly happened. */
typedef struct story {
  const hone_rewrites *rewrites;
  const hone_rewrites *lowering; /* of a plan; NULL: not asked for, or the same */
  const char *no_plan;           /* why there is none; "" */
} story;

/* Record i of all; NULL: behind the last one. */
static const hone_rewrite *record(const story *s, uint32_t i) {
  if (i < s->rewrites->n) return &s->rewrites->record[i];
  i -= s->rewrites->n;
  for (uint32_t k = 0; s->lowering && k < s->lowering->n; k++)
    if (s->lowering->record[k].by != HONE_REWRITE_PASS && i-- == 0) return &s->lowering->record[k];
  return NULL;
}

static json_t *document(const cli_args *args, const story *s) {
  const hone_rewrites *r = s->rewrites;
  json_t *records = json_array();
  const hone_rewrite *w;
  uint32_t hits = 0, n = 0;
  for (; (w = record(s, n)); n++) {
    hits += w->hit;
    json_array_append_new(records, json_pack("{s:s, s:b, s:s, s:s}", "pass", w->pass, "hit", w->hit, "nodes",
                                             w->nodes, "reason", w->reason));
  }
  return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "model", args->rest.item[0], "level",
                   args->level < 0 ? LEVEL : (int)args->level, "nodes_before", (int)r->nodes_before,
                   "nodes_after", (int)r->nodes_after, "hits", (int)hits, "near_misses", (int)(n - hits),
                   "output", args->output ? json_string(args->output) : json_null(), "rewrites", records);
}

/* How many records of this pass stand before record i. */
static uint32_t earlier(const story *s, uint32_t i, const hone_rewrite *w) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < i; k++)
    n += record(s, k)->hit == w->hit && strcmp(record(s, k)->pass, w->pass) == 0;
  return n;
}

static void explain(const story *s, bool hits) {
  cli_print("\n%s\n", hits ? "rewrites:" : "near misses:");
  const hone_rewrite *w;
  uint32_t n = 0, more = 0;
  for (uint32_t i = 0; (w = record(s, i)); i++) {
    if (w->hit != hits) continue;
    n++;
    if (!hits && earlier(s, i, w) >= SHOWN && *w->nodes)
      more++;
    else
      cli_print("  %-28s %-40.40s %s\n", w->pass, w->nodes, w->reason);
  }
  if (more) cli_print("  ... and %u more (--json lists them)\n", more);
  if (!n) cli_print("  none\n");
  if (!hits && *s->no_plan) cli_print("  fusions of lowering: not known: %s\n", s->no_plan);
}

static void text(const cli_args *args, const story *s) {
  const hone_rewrites *r = s->rewrites;
  const char *passes[128];
  uint32_t counts[128], n = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    if (!r->record[i].hit) continue;
    uint32_t k = 0;
    while (k < n && strcmp(passes[k], r->record[i].pass) != 0) k++;
    if (k == 128) continue;
    if (k == n) passes[n] = r->record[i].pass, counts[n++] = 0;
    counts[k]++;
  }
  cli_print("%u node%s -> %u node%s\n", r->nodes_before, cli_s(r->nodes_before), r->nodes_after,
            cli_s(r->nodes_after));
  for (uint32_t k = 0; k < n; k++) cli_print("  %-28s %u time%s\n", passes[k], counts[k], cli_s(counts[k]));
  if (args->explain) {
    explain(s, true);
    explain(s, false);
  }
  if (!args->output) return;
  char model[4096];
  const size_t length = cli_quote(args->rest.item[0], model, sizeof model, 0);
  if (args->explain) cli_print("\n");
  cli_print("written to %s\n", args->output);
  if (!args->open_batch &&
      length < sizeof model) /* another bench of what was written shows no gain: loading rewrites, too */
    cli_print("the gain: hone bench %s --level 0, then without --level (hone rewrites whatever it loads)\n",
              model);
}

/* -o M.hone: the plan itself. */
static bool wants_plan(const cli_args *args) {
  size_t n = args->output ? strlen(args->output) : 0;
  return n > 5 && strcmp(args->output + n - 5, ".hone") == 0;
}

static int save_plan(const cli_args *args) {
  cli_session s = {0};
  hone_error error = {0};
  int code = 0;
  hone_status status = cli_session_open(&s, args, args->rest.item[0], &error);
  const story told = {.rewrites = status == HONE_OK ? hone_plan_rewrites(s.plan) : NULL, .no_plan = ""};
  if (status == HONE_OK) {
    cli_hold(true);
    status = hone_plan_save(s.plan, args->output, &error);
    cli_hold(false);
  }
  if (status != HONE_OK)
    code = cli_report(&error);
  else if (cli_interrupted())
    code = cli_end_interrupted(args->output);
  else if (args->json)
    code = cli_print_json(document(args, &told));
  else {
    const uint32_t threads = cli_threads(&s, args);
    text(args, &told);
    if (strcmp(cli_device_name(args), "cpu") == 0)
      cli_print("a plan for %u thread%s of this kind of processor\n", threads, cli_s(threads));
    else
      cli_print("a plan for this kind of device (%s) and %u thread%s of the host\n", cli_device_name(args),
                threads, cli_s(threads));
    code = cli_flush();
  }
  cli_session_close(&s);
  return code;
}

/* Options that only make sense for a plan. */
static int misplaced(const cli_args *args) {
  const char *option = args->precision  ? "precision"
                       : args->prefer   ? "prefer"
                       : args->slices   ? "slices"
                       : args->threads  ? "threads"
                       : args->shapes.n ? "shape"
                       : args->batch    ? "batch"
                                        : NULL;
  if (!option) return 0;
  return cli_error(HONE_ERROR_USAGE, "hone optimize: --%s is for saved plans (-o M.hone)", option);
}

static hone_status load(const cli_args *args, hone_model **model, hone_error *error) {
  hone_model *fixed = NULL;
  hone_status status = cli_load(args, args->rest.item[0], args->open_batch ? &fixed : model, error);
  if (status == HONE_OK && args->open_batch) status = hone_model_open_batch(fixed, model, error);
  hone_model_release(fixed);
  return status;
}

/* What a plan for the device would fuse, and nearly would: one that is decided and not built. */
typedef struct preview {
  hone_engine *engine;
  hone_plan *plan;
  char no_plan[200];
} preview;

static void preview_open(const cli_args *args, hone_model *model, preview *p) {
  hone_error error = {0};
  hone_plan_options o = {.level = args->level < 0 ? LEVEL : (int)args->level,
                         .passes = args->passes,
                         .fold_seconds = args->max_seconds,
                         .preview = true};
  hone_status status = hone_engine_create(&(hone_engine_options){.device = args->device}, &p->engine, &error);
  if (status == HONE_OK) status = hone_plan_create(p->engine, model, &o, &p->plan, &error);
  if (status != HONE_OK) snprintf(p->no_plan, sizeof p->no_plan, "%.199s", error.what);
}

static void preview_close(preview *p) {
  hone_plan_destroy(p->plan);
  hone_engine_destroy(p->engine);
}

static int run(const cli_args *args) {
  if (!args->output && !args->explain && !args->json)
    return cli_error(HONE_ERROR_USAGE,
                     "hone optimize: say where to write the model (-o FILE) or ask for --explain");
  hone_error error = {0}; /* a graph is the same for all devices, but one that is not there is told */
  if (args->device && cli_check_device(args, &error) != HONE_OK) return cli_report(&error);
  if (cli_keep_inputs(args, args->output, &error) != HONE_OK) return cli_report(&error);
  if (wants_plan(args) && args->open_batch)
    return cli_error(HONE_ERROR_USAGE,
                     "hone optimize: --open-batch is for models; a saved plan (-o M.hone) has one batch");
  if (wants_plan(args)) return save_plan(args);
  int wrong = misplaced(args);
  if (wrong) return wrong;
  hone_model *model = NULL, *out = NULL;
  hone_rewrites rewrites = {0};
  preview plan = {0};
  int code = 0;
  hone_optimize_options o = {.level = args->level < 0 ? LEVEL : (int)args->level,
                             .verify_passes = args->verify_passes,
                             .passes = args->passes,
                             .max_seconds = args->max_seconds};
  hone_status status = load(args, &model, &error);
  if (status == HONE_OK) status = hone_model_optimize(model, &o, &out, &rewrites, &error);
  if (status == HONE_OK && args->output) {
    cli_hold(true);
    status = hone_model_save(out, args->output, &error);
    cli_hold(false);
  }
  if (status == HONE_OK && args->explain) preview_open(args, model, &plan);
  const story told = {&rewrites, plan.plan ? hone_plan_rewrites(plan.plan) : NULL, plan.no_plan};
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else if (cli_interrupted()) {
    code = cli_end_interrupted(args->output);
  } else if (args->json) {
    code = cli_print_json(document(args, &told));
  } else {
    text(args, &told);
    code = cli_flush();
  }
  preview_close(&plan);
  hone_rewrites_free(&rewrites);
  hone_model_release(out);
  hone_model_release(model);
  return code;
}

static const cli_option options[] = {
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "write the rewritten model; M.hone: a saved plan"},
    {0, "level", CLI_LEVEL, CLI_FIELD(level), "0..3", "optimisation level (2)"},
    {0, "explain", CLI_FLAG, CLI_FIELD(explain), NULL,
     "list every rewrite, and every near miss with its reason"},
    CLI_OPT_PASSES,
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda",
     "that a saved plan is for: cpu, cuda or cuda:N (cpu); ONNX is the same for all"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "of a saved plan (all processors)"},
    CLI_OPT_SHAPES,
    CLI_OPT_PRECISION,
    CLI_OPT_PREFER,
    CLI_OPT_SLICES,
    {0, "open-batch", CLI_FLAG, CLI_FIELD(open_batch), NULL,
     "let a model that was exported for one batch size take any"},
    {0, "verify-passes", CLI_FLAG, CLI_FIELD(verify_passes), NULL, "prove equal answers after every pass"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "budget of constant folding (20)"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_optimize = {
    "optimize",
    "MODEL -o FILE",
    "rewrite the graph and write it back",
    "The result is plain ONNX without private operators: other engines take it, and it gives the same "
    "answers. hone itself rewrites every model that it loads, so hone bench says the same of both: the gain "
    "is between hone bench MODEL --level 0 and hone bench MODEL; hone MODEL measures both side by side. -o "
    "M.hone writes a saved plan instead: decisions and packed weights for this processor or --device, which "
    "run, bench, profile and verify load without packing again. --precision, --prefer and -t are for saved "
    "plans only.",
    options,
    1,
    1,
    run};
