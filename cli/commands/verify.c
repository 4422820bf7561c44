/* hone verify A [B]: are the answers still right? */
#include "cli/reports/dump.h"
#include "cli/terminal/interrupts.h"
#include "cli/reports/layers.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/options/preprocess.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"
#include "cli/reports/verdict.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static bool progress(void *arg, uint32_t done, uint32_t total) {
  (void)arg;
  cli_progress("verify", done, total);
  return !cli_interrupted();
}

/* Inputs that were wanted and say nothing. */
static void left_out(const hone_verify_result *r) {
  const uint32_t late = r->edge_inputs_wanted - r->edge_inputs - r->edge_inputs_unjudged;
  if (r->inputs < r->inputs_wanted || late)
    cli_print("no time (--max-seconds) for %u random and %u edge input%s\n", r->inputs_wanted - r->inputs,
              late, cli_s(late));
  if (r->edge_inputs_unjudged)
    cli_print(
        "%u edge input%s not judged: the reference refuses them, overflows, or moves as much when they move "
        "in their last place\n",
        r->edge_inputs_unjudged, r->edge_inputs_unjudged == 1 ? "" : "s");
}

/* The step's own arithmetic against the bound of its class. */
static void judged(const hone_step_judgement *j) {
  char terms[48] = "";
  if (!j->kind) return;
  if (j->terms) snprintf(terms, sizeof terms, ", K = %llu", (unsigned long long)j->terms);
  cli_print("on its own inputs: %.3g apart at element %lld, bound %.3g (%s%s): %s\n", j->measured,
            (long long)j->element, j->bound, j->kind, terms,
            j->over ? "it computes wrongly"
                    : "within it, so its inputs or constants differ, or roundings add up");
}

static void explain(const hone_verify_result *r) {
  cli_print(
      "bounds for another order of the same f32 arithmetic (u = 2^-24, the largest K of each class):\n");
  for (uint32_t i = 0; i < r->n_tolerances; i++) {
    const hone_tolerance *t = &r->tolerances[i];
    char terms[48] = "", share[96] = "the bound of the whole answer";
    if (t->terms) snprintf(terms, sizeof terms, ", K = %llu", (unsigned long long)t->terms);
    if (t->share >= 0) snprintf(share, sizeof share, "%.3g of %s", t->share, t->of);
    cli_print("  %-17s %4u node%s%s: %s\n", t->kind, t->nodes, t->nodes == 1 ? "" : "s", terms, share);
  }
}

static int text(const hone_verify_result *r, const cli_args *args, const cli_dump *dump) {
  cli_color(stdout, r->verdict == HONE_VERDICT_SAME ? CLI_GREEN : CLI_RED);
  cli_print("%s", cli_verdict_name(r->verdict));
  cli_color(stdout, CLI_PLAIN);
  cli_print("  on %u %s", r->inputs, args->data.n ? "sample" : "random");
  if (r->edge_inputs) cli_print(" and %u edge", r->edge_inputs);
  cli_print(" input%s: largest difference %.3g, %.3g of the output's range",
            r->inputs + r->edge_inputs == 1 ? "" : "s", r->max_abs, r->max_rel);
  if (r->judged_steps)
    cli_print(" (roundings amplify: judged step by step)\n");
  else
    cli_print(" (tolerance %.3g)\n", r->tolerance);
  if (r->verdict != HONE_VERDICT_DIFFERENT) left_out(r);
  if (r->steps_compared)
    cli_print(
        "step by step, each on the reference's values: %u value%s in codes, at most %g level%s apart, in at "
        "most %.2g %% of a value's elements (%.2g %% where nothing was to be rounded either way)\n",
        r->steps_compared, cli_s(r->steps_compared), r->worst_levels, r->worst_levels == 1 ? "" : "s",
        100 * r->differing, 100 * r->astray);
  cli_print("reference: %s\n", r->reference);
  if (r->reason[0]) cli_print("reason: %s\n", r->reason);
  if (r->first_different_node[0]) cli_print("first different node: %s\n", r->first_different_node);
  judged(&r->judgement);
  if (args->explain) explain(r);
  cli_dump_say(dump);
  return cli_flush();
}

/* The model that a saved plan was made of, which is the reference. */
static hone_status source_of(const cli_args *args, const char *plan, char *buf, size_t size,
                             hone_error *error) {
  hone_engine *engine = NULL;
  hone_plan *p = NULL;
  uint32_t threads = (uint32_t)args->threads;
  hone_status status = threads ? HONE_OK : hone_plan_saved_threads(plan, &threads, error);
  if (status == HONE_OK)
    status = hone_engine_create(
        &(hone_engine_options){.device = cli_device_name(args), .threads = threads, .tuning = ""}, &engine,
        error);
  if (status == HONE_OK) status = hone_plan_open(engine, plan, &p, error);
  if (status == HONE_OK) snprintf(buf, size, "%s", hone_plan_source_path(p));
  if (status == HONE_OK && !*buf) {
    *error = (hone_error){.status = status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what, "a saved plan has no reference in it: name its model");
    snprintf(error->hint, sizeof error->hint, "hone verify MODEL %.100s", plan);
  }
  hone_plan_destroy(p);
  hone_engine_destroy(engine);
  return status;
}

/* The model, its bindings, and the inputs that are given. */
static hone_status open_model(const cli_args *args, const char *path, cli_session *s, hone_error *error) {
  if (args->inputs.n && args->data.n && args->layers) {
    *error = (hone_error){.status = HONE_ERROR_USAGE, .what = "--layers wants --input or --data, not both"};
    return HONE_ERROR_USAGE;
  }
  if (args->inputs.n) return cli_session_load(s, args, path, error);
  hone_status status = cli_load(args, path, &s->model, error);
  if (status == HONE_OK) status = cli_bindings(args, s->model, &s->bindings, &s->n_bindings, error);
  return status;
}

/* Layer by layer: a float model and its quantised one. */
static int layers(const cli_args *args) {
  cli_session a = {0};
  hone_model *b = NULL;
  hone_error error = {0};
  hone_preprocess preprocess;
  cli_dump dump = {0};
  if (args->rest.n < 2)
    return cli_error(HONE_ERROR_USAGE, "hone verify --layers wants two models: FLOAT.onnx QUANTIZED.onnx");
  hone_status status = cli_preprocess(args, &preprocess, &error);
  if (status == HONE_OK) status = open_model(args, args->rest.item[0], &a, &error);
  if (status == HONE_OK) status = cli_load(args, args->rest.item[1], &b, &error);
  if (status == HONE_OK) status = cli_dump_open(args, &dump, &error);
  const hone_layers_options o = {.data = args->data.n ? args->data.item[0] : NULL,
                                 .preprocess = &preprocess,
                                 .samples = (uint32_t)args->count,
                                 .seed = (uint64_t)args->seed,
                                 .level = (int)args->level,
                                 .threads = (uint32_t)args->threads,
                                 .batch = args->batch,
                                 .given = a.data};
  const int code = status == HONE_OK ? cli_layers(args, a.model, b, a.bindings, a.n_bindings, &o, &dump)
                                     : cli_report(&error);
  cli_dump_close(&dump, code < 2);
  hone_model_release(b);
  cli_session_close(&a);
  return code;
}

static json_t *document(const cli_args *args, const hone_verify_result *r, const hone_preprocess *preprocess,
                        const cli_dump *dump) {
  json_t *doc = cli_verification_json(r);
  json_object_set_new(doc, "preprocess", args->data.n ? cli_preprocess_json(preprocess) : json_null());
  if (dump->files) json_object_set(doc, "dumped", dump->files);
  return doc;
}

/* Labels do not matter here. */
static hone_status open_data(const cli_args *args, hone_dataset **set, hone_error *error) {
  return hone_dataset_open(
      &(hone_dataset_options){.paths = args->data.item, .n_paths = (uint32_t)args->data.n}, set, error);
}

static hone_status both_given(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_USAGE, .what = "--input and --data both give the first input"};
  return HONE_ERROR_USAGE;
}

static int run(const cli_args *args) {
  hone_preprocess preprocess;
  hone_dataset *set = NULL;
  cli_session a = {0};
  hone_model *b = NULL;
  hone_error error = {0};
  hone_verify_result result;
  cli_precision precision = {0};
  cli_dump dump = {0};
  int code = 0;
  if (args->level == 0)
    return cli_error(HONE_ERROR_USAGE, "hone verify: --level wants 1 to 3: level 0 changes nothing");
  if (args->html && !args->layers) return cli_error(HONE_ERROR_USAGE, "--html goes with --layers");
  if (args->layers) return layers(args);
  hone_status status = cli_check_device(args, &error);
  const char *path = args->rest.item[0], *other = args->rest.n > 1 ? args->rest.item[1] : NULL, *plan = NULL;
  char source[4096];
  if (other && hone_plan_is_saved(other)) {
    plan = other;
    other = NULL;
  } else if (!other && hone_plan_is_saved(path)) {
    plan = path;
    path = source;
    if (status == HONE_OK) status = source_of(args, plan, source, sizeof source, &error);
  }
  if (status == HONE_OK) status = open_model(args, path, &a, &error);
  if (status == HONE_OK && other) status = cli_load(args, other, &b, &error);
  if (status == HONE_OK)
    status = cli_precision_make(args, b ? b : a.model, a.bindings, a.n_bindings, &precision, &error);
  if (status == HONE_OK) status = cli_preprocess(args, &preprocess, &error);
  if (status == HONE_OK && args->data.n) status = open_data(args, &set, &error);
  if (status == HONE_OK && set && a.data && a.data[0].impl) status = both_given(&error);
  if (status == HONE_OK) status = cli_dump_open(args, &dump, &error);
  if (status == HONE_OK) {
    hone_verify_options o = {.inputs = (uint32_t)args->count,
                             .seed = (uint64_t)args->seed,
                             .tolerance = args->tolerance,
                             .max_seconds = args->max_seconds,
                             .threads = (uint32_t)args->threads,
                             .batch = args->batch,
                             .bindings = a.bindings,
                             .n_bindings = a.n_bindings,
                             .level = (int)args->level,
                             .device = args->device,
                             .precision = precision.name,
                             .f32_nodes = (const char *const *)precision.choice.f32_nodes,
                             .n_f32_nodes = precision.choice.n_f32_nodes,
                             .plan = plan,
                             .data = set,
                             .preprocess = &preprocess,
                             .given = a.data,
                             .dump = cli_dump_of(&dump),
                             .progress = progress};
    status = hone_verify(a.model, b, &o, &result,
                         &error); /* nothing is being written: Ctrl-C may end the process */
    cli_progress_end();
  }
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else {
    code =
        args->json ? cli_print_json(document(args, &result, &preprocess, &dump)) : text(&result, args, &dump);
    if (code == 0) code = cli_verdict_exit(result.verdict);
  }
  cli_dump_close(&dump, status == HONE_OK);
  hone_precision_choice_free(&precision.choice);
  hone_dataset_close(set);
  hone_model_release(b);
  cli_session_close(&a);
  return code;
}

static const cli_option options[] = {
    {'n', "inputs", CLI_SOME, CLI_FIELD(count), "N",
     "random inputs (100, fewer where time is up; below 8 no edge values)"},
    {0, "tolerance", CLI_NUMBER, CLI_FIELD(tolerance), "X",
     "largest difference relative to an output's range (by dtype)"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    CLI_OPT_SHAPES,
    {0, "level", CLI_LEVEL, CLI_FIELD(level), "1..3", "optimisation level of what is proved (2)"},
    CLI_OPT_PRECISION,
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},
    {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of random inputs (1)"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S",
     "time for random inputs; edge values take up to a quarter more (30)"},
    {0, "layers", CLI_FLAG, CLI_FIELD(layers), NULL,
     "A is a float model and B the same in 8 bits: the error of each layer, and why"},
    {0, "all", CLI_FLAG, CLI_FIELD(all), NULL, "--layers: all of them, not the 20 worst"},
    {0, "plot", CLI_FLAG, CLI_FIELD(plot), NULL, "--layers: the signal to noise ratio over depth"},
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "--layers: write a page with bars over depth"},
    {0, "data", CLI_LIST, CLI_FIELD(data), "DIR|FILE.npz",
     "real inputs instead of random ones: pictures or arrays for the first input; --layers: as quantize "
     "--calib"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE",
     "an input instead of random values: .npy, .npz, .pb, .jpg, .png, or a number"},
    {0, "dump", CLI_LIST, CLI_FIELD(dump), "NODE",
     "write what this node or value is on both sides, on the first input, as .npy"},
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR", "where --dump goes (.)"},
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    {0, "explain", CLI_FLAG, CLI_FIELD(explain), NULL, "list the bounds of each class of operators"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_verify = {
    "verify",
    "A [B]",
    "prove that answers are right",
    "Compares model B (or A itself) as hone runs it with the reference side of A: the operators' scalar "
    "definitions, or an independent instruction tier for large networks. Exit code 0: same, 1: different, 5: "
    "mistrusted (the outputs say too little: constant, zero or not finite). A saved plan (M.hone) in place "
    "of B, or alone, runs as it is.",
    options,
    1,
    2,
    run};
