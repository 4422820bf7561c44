/* hone quantize: weights and activations of 8 bits, as ONNX that every engine reads. */
#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/labelled.h"
#include "cli/reports/mixed.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/options/quantizing.h"
#include "cli/options/shapes.h"
#include "cli/reports/coverage.h"
#include "cli/reports/quantize_page.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/names.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OTHERS = 82 /* columns of the table beside the name */, FIRST = 60 };

static bool progress(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total) {
  (void)arg;
  static const char *const names[] = {"measure channels", "calibrate", "check"};
  cli_progress(names[stage], done, total);
  return !cli_interrupted();
}

/* A word of an option; false with the error. */
static bool word_of(const char *option, const char *word, const char *(*name)(int), int count, int *out,
                    hone_error *error) {
  size_t n = 0;
  if (!word) return true;
  for (*out = 0; *out < count; ++*out)
    if (strcmp(name(*out), word) == 0) return true;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "hone quantize: --%s knows no '%.60s'", option, word);
  for (int i = 0; i < count && n < sizeof error->expected; i++)
    n += (size_t)snprintf(error->expected + n, sizeof error->expected - n, "%s%s", i ? ", " : "", name(i));
  return false;
}

static const char *method_name(int i) { return hone_calibration_name((hone_calibration)i); }
static const char *target_name(int i) { return hone_quantize_target_name((hone_quantize_target)i); }

static const char *type_name(int i) { return hone_quantize_type_name((hone_quantize_type)i); }

static double file_bytes(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 ? (double)s.st_size : 0;
}

/* ---- what was done */

static json_t *layer_json(const hone_quantize_layer *l) {
  json_t *o = json_pack("{s:s, s:s, s:b}", "name", l->name, "op_type", l->op_type, "quantized", l->quantized);
  if (!l->quantized) {
    json_object_set_new(o, "reason", cli_text(l->reason));
    return o;
  }
  json_object_set_new(o, "input", cli_text(l->input));
  json_object_set_new(o, "seen", json_pack("[o, o]", cli_real(l->least), cli_real(l->most)));
  json_object_set_new(o, "range", json_pack("[o, o]", cli_real(l->low), cli_real(l->high)));
  json_object_set_new(o, "clipped", cli_real(l->clipped));
  json_object_set_new(o, "scale", cli_real(l->scale));
  json_object_set_new(o, "zero_point", json_integer(l->zero_point));
  if (l->channels)
    json_object_set_new(o, "weights",
                        json_pack("{s:i, s:[o, o]}", "channels", (int)l->channels, "scales",
                                  cli_real(l->scale_low), cli_real(l->scale_high)));
  return o;
}

static json_t *document(const cli_args *args, const hone_quantize_report *r) {
  json_t *layers = json_array(), *outputs = json_array(), *warnings = json_array();
  for (uint32_t i = 0; i < r->n_layers; i++) json_array_append_new(layers, layer_json(&r->layer[i]));
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    const hone_quantize_output *o = &r->output[i];
    json_array_append_new(outputs,
                          json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "name", cli_text(o->name), "sqnr_db",
                                    cli_real(o->sqnr_db), "mean_error", cli_real(o->mean_error), "max_error",
                                    cli_real(o->max_error), "rows", (json_int_t)o->rows, "same_top1",
                                    (json_int_t)o->same_top1));
  }
  for (uint32_t i = 0; i < r->n_warnings; i++) json_array_append_new(warnings, cli_text(r->warning[i]));
  return json_pack(
      "{s:o, s:o, s:s, s:s, s:s, s:i, s:i, s:i, s:b, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "model",
      cli_text(args->rest.item[0]), "output", cli_text(args->output), "to", hone_quantize_type_name(r->to),
      "method", hone_calibration_name(r->method), "target", hone_quantize_target_name(r->target), "samples",
      (int)r->samples, "samples_wanted", (int)r->samples_wanted, "checks", (int)r->checks, "ranges_read",
      r->ranges_read, "pairs_equalized", (int)r->equalized, "layers_quantized", (int)r->quantized,
      "layers_float", (int)(r->n_layers - r->quantized), "bytes_before",
      cli_real(file_bytes(args->rest.item[0])), "bytes_after", cli_real(file_bytes(args->output)), "layers",
      layers, "outputs", outputs, "warnings", warnings, "coverage",
      r->to == HONE_QUANTIZE_INT8 ? cli_coverage_json(&r->coverage) : json_null());
}

static void layer_table(const hone_quantize_report *r) {
  int width = 0;
  cli_name_widen(&width, "layer");
  for (uint32_t i = 0; i < r->n_layers; i++)
    if (r->layer[i].quantized) cli_name_widen(&width, r->layer[i].name);
  width = cli_name_width(width, OTHERS);
  cli_print("%-*s %-18s %-23s %8s %11s %5s %11s\n", width, "layer", "operator", "input range", "clipped",
            "scale", "zero", "weights");
  for (uint32_t i = 0; i < r->n_layers; i++) {
    const hone_quantize_layer *l = &r->layer[i];
    char name[CLI_NAME_ROOM], range[48] = "", weights[32] = "-";
    if (!l->quantized) continue;
    if (l->channels)
      snprintf(weights, sizeof weights, "%u scale%s", l->channels, l->channels == 1 ? "" : "s");
    if (!l->input[0]) { /* nothing that it reads is quantised */
      cli_print("%s %-18.18s %-23s %8s %11s %5s %11s\n", cli_name_cell(l->name, width, name), l->op_type, "-",
                "-", "-", "-", weights);
      continue;
    }
    snprintf(range, sizeof range, "%.4g .. %.4g", l->low, l->high);
    cli_print("%s %-18.18s %-23s %7.3f%% %11.4g %5d %11s\n", cli_name_cell(l->name, width, name), l->op_type,
              range, 100 * l->clipped, l->scale, (int)l->zero_point, weights);
  }
}

/* Operators that stayed float, by type and reason. */
static void float_table(const hone_quantize_report *r) {
  bool any = false;
  for (uint32_t i = 0; i < r->n_layers; i++) {
    const hone_quantize_layer *l = &r->layer[i];
    uint32_t same = 0;
    bool first = !l->quantized;
    char name[CLI_NAME_ROOM];
    for (uint32_t k = 0; k < r->n_layers && first; k++) {
      const hone_quantize_layer *m = &r->layer[k];
      if (m->quantized || strcmp(m->op_type, l->op_type) != 0 || strcmp(m->reason, l->reason) != 0) continue;
      first = k >= i;
      same++;
    }
    if (!first) continue;
    if (!any) cli_print("stayed float:\n");
    any = true;
    cli_print("  %4u %-22.22s %s%s%s\n", same, l->op_type, l->reason,
              same == 1 ? ": " : ", first: ", cli_name_cut(l->name, FIRST, name));
  }
}

static void output_table(const hone_quantize_report *r) {
  if (r->checks)
    cli_print("against the float model, on %u sample%s:\n", r->checks, r->checks == 1 ? "" : "s");
  int width = 0;
  for (uint32_t i = 0; i < r->n_outputs; i++) cli_name_widen(&width, r->output[i].name);
  width = cli_name_width(width, OTHERS);
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    const hone_quantize_output *o = &r->output[i];
    char name[CLI_NAME_ROOM];
    cli_print("  %s SQNR %.1f dB, mean error %.3g, largest %.3g", cli_name_cell(o->name, width, name),
              o->sqnr_db, o->mean_error, o->max_error);
    if (o->rows)
      cli_print(", same top 1 in %llu of %llu rows", (unsigned long long)o->same_top1,
                (unsigned long long)o->rows);
    cli_print("\n");
  }
}

static void text(const cli_args *args, const hone_quantize_report *r) {
  char before[24], after[24];
  if (r->to == HONE_QUANTIZE_INT8) layer_table(r);
  float_table(r);
  if (r->to != HONE_QUANTIZE_INT8)
    cli_print("%u operator%s in %s, %u in f32\n", r->quantized, cli_s(r->quantized),
              hone_quantize_type_name(r->to), r->n_layers - r->quantized);
  else
    cli_print("%u layer%s quantised, %u float; %s, %u sample%s%s, for %s\n", r->quantized,
              cli_s(r->quantized), r->n_layers - r->quantized, hone_calibration_name(r->method), r->samples,
              r->samples == 1 ? "" : "s", r->ranges_read ? " (ranges read)" : "",
              hone_quantize_target_name(r->target));
  char line[300];
  if (r->to == HONE_QUANTIZE_INT8 && !r->coverage.problems)
    cli_print("samples: %s\n", cli_coverage_line(&r->coverage, r->samples, line, sizeof line));
  if (r->equalized)
    cli_print("channels equalised between %u pair%s of layers\n", r->equalized, r->equalized == 1 ? "" : "s");
  output_table(r);
  cli_print("written to %s: %s, was %s\n", args->output, cli_bytes(file_bytes(args->output), after),
            cli_bytes(file_bytes(args->rest.item[0]), before));
}

/* ---- */

static hone_status options_of(const cli_args *args, hone_quantize_options *o, hone_error *error) {
  int method = 0, target = 0, to = 0;
  if (!word_of("method", args->method, method_name, HONE_CALIBRATIONS, &method, error) ||
      !word_of("to", args->to, type_name, HONE_QUANTIZE_TYPES, &to, error) ||
      !word_of("target", args->target, target_name, HONE_QUANTIZE_TARGETS, &target, error))
    return HONE_ERROR_USAGE;
  if (args->symmetric && args->asymmetric) {
    *error = (hone_error){.status = HONE_ERROR_USAGE,
                          .what = "hone quantize: --symmetric and --asymmetric contradict each other"};
    return HONE_ERROR_USAGE;
  }
  *o = (hone_quantize_options){.calib = args->calib,
                               .to = (hone_quantize_type)to,
                               .narrow_io = args->narrow_io,
                               .method = (hone_calibration)method,
                               .percentile = args->percentile,
                               .target = (hone_quantize_target)target,
                               .zero = args->symmetric    ? HONE_QUANTIZE_SYMMETRIC
                                       : args->asymmetric ? HONE_QUANTIZE_ASYMMETRIC
                                                          : HONE_QUANTIZE_ZERO_OF_TARGET,
                               .equalize = args->equalize,
                               .bias_correction = args->bias_correction,
                               .again = args->again,
                               .skip = args->skip.item,
                               .n_skip = (uint32_t)args->skip.n,
                               .only = args->only.item,
                               .n_only = (uint32_t)args->only.n,
                               .samples = (uint32_t)args->count,
                               .seed = (uint64_t)args->seed,
                               .threads = (uint32_t)args->threads,
                               .batch = args->batch,
                               .progress = progress};
  return HONE_OK;
}

/* int8.ranges.json of int8.onnx; NULL: the output is no file of that ending. */
static const char *beside(const char *output, char *buf, size_t size) {
  const size_t n = strlen(output);
  if (n < 6 || strcmp(output + n - 5, ".onnx") != 0) return NULL;
  const int len = snprintf(buf, size, "%.*s.ranges.json", (int)(n - 5), output);
  return len > 0 && (size_t)len < size ? buf : NULL;
}

static int run(const cli_args *args) {
  if (!args->output)
    return cli_error(HONE_ERROR_USAGE, "hone quantize: say where to write the model (-o FILE)");
  const bool int8 = !args->to || strcmp(args->to, "int8") == 0;
  if (int8 && !args->calib && !args->ranges && !args->data.n && !args->labels)
    return cli_error(HONE_ERROR_USAGE,
                     "hone quantize: --calib wants samples: a folder, a .npz file or 'random'");
  hone_model *model = NULL, *out = NULL;
  hone_binding *bindings = NULL;
  hone_error error = {0};
  hone_quantize_options o;
  hone_quantize_report report = {0};
  uint32_t n = 0;
  int code = 0;
  bool mixed = false;
  hone_status status = options_of(args, &o, &error);
  if (status == HONE_OK) status = cli_quantizing_check(args, cli_find("quantize")->options, &mixed, &error);
  char ranges[4096];
  hone_preprocess preprocess;
  if (status == HONE_OK) status = cli_preprocess(args, &preprocess, &error);
  o.preprocess = &preprocess;
  o.ranges = !int8                   ? NULL
             : args->ranges || mixed ? args->ranges
                                     : beside(args->output, ranges, sizeof ranges);
  if (status == HONE_OK) status = cli_output_ready(args->output, &error);
  if (status == HONE_OK) status = cli_output_ready(args->ranges, &error);
  if (status == HONE_OK) status = cli_output_ready(args->html, &error);
  if (status == HONE_OK) status = cli_keep_inputs(args, args->html, &error);
  if (status == HONE_OK) status = cli_keep_inputs(args, args->output, &error);
  if (status == HONE_OK) status = cli_keep_inputs(args, o.ranges, &error);
  if (status == HONE_OK) status = cli_load(args, args->rest.item[0], &model, &error);
  if (status == HONE_OK) status = cli_bindings(args, model, &bindings, &n, &error);
  if (status == HONE_OK) {
    o.bindings = bindings;
    o.n_bindings = n;
  }
  if (status == HONE_OK && mixed) {
    code = cli_mixed(args, model, &o);
    free(bindings);
    hone_model_release(model);
    return code;
  }
  if (status == HONE_OK) {
    cli_hold(true); /* Ctrl-C ends the calibration, and what was seen is used */
    status = hone_quantize(model, &o, &out, &report, &error);
    cli_progress_end();
    if (status == HONE_OK) status = hone_model_save(out, args->output, &error);
    if (status == HONE_OK) status = cli_quantize_page(args, &report, &error);
    cli_hold(false);
  }
  for (uint32_t i = 0; i < report.n_warnings; i++) cli_note("warning: %s", report.warning[i]);
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else if (args->json) {
    code = cli_print_json(document(args, &report));
  } else {
    text(args, &report);
    code = cli_flush();
  }
  if (status == HONE_OK && code == 0 && cli_interrupted()) code = cli_end_interrupted(args->output);
  hone_quantize_report_free(&report);
  free(bindings);
  hone_model_release(out);
  hone_model_release(model);
  return code;
}

static const cli_option options[] = {
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "write the quantised model"},
    {0, "calib", CLI_TEXT, CLI_FIELD(calib), "DIR|FILE.npz|random",
     "samples: a file each, rows of arrays, or MNIST's files; random: of no real data"},
    {'n', "samples", CLI_SOME, CLI_FIELD(count), "N", "use N samples at most (all; random: 16)"},
    {0, "to", CLI_TEXT, CLI_FIELD(to), "int8|fp16|bf16", "type of weights and activations (int8)"},
    {0, "io", CLI_FLAG, CLI_FIELD(narrow_io), NULL, "fp16, bf16: inputs and outputs, too"},
    {0, "method", CLI_TEXT, CLI_FIELD(method), "minmax|kl|percentile|mse",
     "how ranges of activations are chosen (minmax)"},
    {0, "percentile", CLI_NUMBER, CLI_FIELD(percentile), "P",
     "of the values that --method percentile keeps (99.99)"},
    {0, "equalize", CLI_FLAG, CLI_FIELD(equalize), NULL,
     "bring the channels of a tensor to one range, where weights can take it"},
    {0, "bias-correction", CLI_FLAG, CLI_FIELD(bias_correction), NULL,
     "take the mean error of rounded weights off the biases"},
    {0, "ranges", CLI_TEXT, CLI_FIELD(ranges), "FILE",
     "keep what samples held there, and read it instead of a run (beside the output)"},
    {0, "again", CLI_FLAG, CLI_FIELD(again), NULL, "run, whatever the file of ranges holds"},
    {0, "target", CLI_TEXT, CLI_FIELD(target), "hone|ort|tensorrt|openvino", "who is to run the file (hone)"},
    {0, "symmetric", CLI_FLAG, CLI_FIELD(symmetric), NULL,
     "activations i8 with zero point 0 (tensorrt: always)"},
    {0, "asymmetric", CLI_FLAG, CLI_FIELD(asymmetric), NULL, "activations u8 (the default)"},
    {0, "skip", CLI_LIST, CLI_FIELD(skip), "GLOB", "nodes or operator types that stay float"},
    {0, "only", CLI_LIST, CLI_FIELD(only), "GLOB", "the only ones that are quantised"},
    {0, "max-drop", CLI_NUMBER, CLI_FIELD(max_drop), "X",
     "mixed precision: a layer goes back to a wider type until the metric drops by X at most"},
    {0, "metric", CLI_TEXT, CLI_FIELD(metric), "top1|top5|map|cosine|sqnr", "of --max-drop"},
    {0, "labels", CLI_TEXT, CLI_FIELD(labels), "PATH",
     "labelled data: a folder; or the labels of --data's or --calib's pictures, as for hone eval"},
    {0, "data", CLI_LIST, CLI_FIELD(data), "PATH", "labelled data, as for hone eval"},
    {0, "names", CLI_TEXT, CLI_FIELD(names), "FILE", "a class a line in the order of the outputs"},
    CLI_OPT_BOXES,
    {0, "untimed", CLI_FLAG, CLI_FIELD(untimed), NULL,
     "--max-drop: the file is for another machine; time decides nothing"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "--max-drop: of the search (600)"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    CLI_OPT_SHAPES,
    CLI_OPT_PREPROCESS,
    {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of random samples (1)"},
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "write what was done to each layer as a page, too"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_quantize = {
    "quantize",
    "MODEL -o FILE --calib DIR|FILE.npz|random",
    "write the model in 8 bits",
    "Runs the float model on the samples one by one, chooses a range for every activation, and writes plain "
    "ONNX with QuantizeLinear and DequantizeLinear (opset 13 or newer), weights i8 with a scale a channel. "
    "Batch normalisation is folded first. Ctrl-C while it calibrates: the samples so far count, and the file "
    "is written with a warning. --to fp16 and --to bf16 write weights and activations of 16 bits, and need "
    "no samples. --max-drop X --metric M gives each layer the fastest type that the budget allows, on "
    "samples that did not choose, and writes nothing (exit code 1) where that is not possible or not faster "
    "than the input.",
    options,
    1,
    1,
    run};
