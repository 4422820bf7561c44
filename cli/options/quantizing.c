/* Which options of hone quantize go together. */
#include "cli/options/quantizing.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <string.h>

/* What an option is for: it means nothing where none of these is asked for. */
enum {
  FOR_8_BITS = 1,     /* not --to fp16, bf16 */
  FOR_16_BITS = 2,    /* those alone */
  FOR_BUDGET = 4,     /* --max-drop */
  FOR_BOXES = 8,      /* --max-drop --metric map */
  FOR_SAMPLES = 16,   /* --calib, or labelled data */
  FOR_PERCENTILE = 32 /* --method percentile */
};

static const struct {
  const char *option;
  unsigned use;
} uses[] = {{"io", FOR_16_BITS},         {"method", FOR_8_BITS},
            {"equalize", FOR_8_BITS},    {"bias-correction", FOR_8_BITS},
            {"ranges", FOR_8_BITS},      {"again", FOR_8_BITS},
            {"target", FOR_8_BITS},      {"symmetric", FOR_8_BITS},
            {"asymmetric", FOR_8_BITS},  {"percentile", FOR_PERCENTILE},
            {"labels", FOR_BUDGET},      {"data", FOR_BUDGET},
            {"names", FOR_BUDGET},       {"untimed", FOR_BUDGET},
            {"max-seconds", FOR_BUDGET}, {"boxes", FOR_BOXES},
            {"box-order", FOR_BOXES},    {"relative", FOR_BOXES},
            {"min-score", FOR_BOXES},    {"nms-iou", FOR_BOXES},
            {"samples", FOR_SAMPLES},    {"seed", FOR_SAMPLES},
            {"scale", FOR_SAMPLES},      {"mean", FOR_SAMPLES},
            {"std", FOR_SAMPLES},        {"bgr", FOR_SAMPLES},
            {"resize", FOR_SAMPLES},     {"crop", FOR_SAMPLES},
            {"letterbox", FOR_SAMPLES},  {"pad", FOR_SAMPLES},
            {"layout", FOR_SAMPLES}};

static hone_status usage(hone_error *error, const char *what, const char *expected) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "hone quantize: %s", what);
  snprintf(error->expected, sizeof error->expected, "%s", expected);
  return HONE_ERROR_USAGE;
}

/* Half of a budget, or one beside types that it would choose. */
static hone_status check_budget(const cli_args *args, bool asked, hone_error *error) {
  if (!asked) return HONE_OK;
  if (args->max_drop < 0) return usage(error, "--metric wants a budget", "--max-drop X");
  if (!args->metric) return usage(error, "--max-drop wants a metric", "top1, top5, map, cosine or sqnr");
  if (args->to) return usage(error, "--max-drop chooses the types itself", "no --to");
  /* Who means points of a hundred would get any loss allowed. */
  const bool share = strncmp(args->metric, "top", 3) == 0 || strcmp(args->metric, "map") == 0;
  if (share && args->max_drop >= 0.1 && args->max_drop <= 1)
    cli_note("--max-drop %g allows %s to lose %g points of 100; half a point is 0.005", args->max_drop,
             args->metric, 100 * args->max_drop);
  return HONE_OK;
}

static size_t size_of(cli_kind kind) {
  static const size_t sizes[] = {
      [CLI_FLAG] = sizeof(bool),         [CLI_COUNT] = sizeof(int64_t),   [CLI_SOME] = sizeof(int64_t),
      [CLI_LEVEL] = sizeof(int64_t),     [CLI_THREADS] = sizeof(int64_t), [CLI_NUMBER] = sizeof(double),
      [CLI_TEXT] = sizeof(const char *), [CLI_LIST] = sizeof(cli_list)};
  return sizes[kind];
}

static bool is_given(const cli_args *args, const cli_option *options, const char *name) {
  static const cli_args unset = CLI_UNSET;
  const cli_option *o = options;
  while (o->name && strcmp(o->name, name) != 0) o++;
  return o->name &&
         memcmp((const char *)args + o->field, (const char *)&unset + o->field, size_of(o->kind)) != 0;
}

static hone_status refuse(unsigned use, const char *option, const cli_args *args, hone_error *error) {
  char what[120], without[60];
  if (use == FOR_8_BITS) {
    snprintf(what, sizeof what, "--%s means nothing with --to %s", option, args->to);
    snprintf(without, sizeof without, "no --%s", option);
    return usage(error, what, without);
  }
  snprintf(what, sizeof what, "--%s is for %s", option,
           use == FOR_16_BITS   ? "--to fp16 and --to bf16"
           : use == FOR_BUDGET  ? "--max-drop"
           : use == FOR_BOXES   ? "--max-drop with --metric map"
           : use == FOR_SAMPLES ? "samples, and none are given"
                                : "--method percentile");
  return usage(error, what,
               use == FOR_16_BITS   ? "--to fp16 or --to bf16"
               : use == FOR_BUDGET  ? "--max-drop X --metric M"
               : use == FOR_BOXES   ? "--max-drop X --metric map"
               : use == FOR_SAMPLES ? "--calib DIR, FILE or 'random'"
                                    : "--method percentile");
}

hone_status cli_quantizing_check(const cli_args *args, const cli_option *options, bool *mixed,
                                 hone_error *error) {
  const bool half = args->to && strcmp(args->to, "int8") != 0;
  *mixed = args->max_drop >= 0 || args->metric;
  hone_status status = check_budget(args, *mixed, error);
  const bool labelled = *mixed && (args->data.n || args->labels);
  const unsigned use =
      (half ? FOR_16_BITS : FOR_8_BITS) | (*mixed ? FOR_BUDGET : 0) |
      (*mixed && args->metric && strcmp(args->metric, "map") == 0 ? FOR_BOXES : 0) |
      (args->calib || labelled ? FOR_SAMPLES : 0) |
      (!half && args->method && strcmp(args->method, "percentile") == 0 ? FOR_PERCENTILE : 0);
  for (size_t i = 0; i < sizeof uses / sizeof *uses && status == HONE_OK; i++)
    if (!(use & uses[i].use) && is_given(args, options, uses[i].option))
      status = refuse(uses[i].use, uses[i].option, args, error);
  if (status == HONE_OK && half && args->narrow_io && args->calib)
    status = usage(error, "--calib checks the result, and with --io nothing is checked", "one of them");
  return status;
}
