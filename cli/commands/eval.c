/* hone eval: how much of labelled data a model gets right. */
#include "cli/reports/eval.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/labelled.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/options/session.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBLEMS_SHOWN = 20 };

static bool progress(void *arg, uint64_t done, uint64_t total) {
  (void)arg;
  cli_progress("eval", done, total);
  return !cli_interrupted();
}

/* Files that were left out: each a line, as far as somebody reads them. */
static void left_out(void *arg, const char *sample, const hone_error *why) {
  uint64_t *told = arg;
  char line[1400];
  (void)sample;
  if ((*told)++ >= PROBLEMS_SHOWN) return;
  hone_error_format(why, line, sizeof line);
  cli_note("left out: %s", line);
}

static void tell_problems(const hone_dataset *set, uint64_t *told) {
  const char *line;
  for (uint64_t i = 0; (line = hone_dataset_problem(set, i)); i++)
    if ((*told)++ < PROBLEMS_SHOWN) cli_note("left out: %s", line);
}

static hone_status measure(const cli_args *args, const char *path, const hone_dataset *set,
                           const hone_preprocess *preprocess, uint64_t *told, cli_evaluation *out,
                           hone_error *error) {
  cli_session s = {0};
  uint32_t input = 0;
  hone_boxes_options boxes;
  hone_status status = cli_labelled_boxes(args, &boxes, error);
  if (status == HONE_OK) status = cli_session_open(&s, args, path, error);
  if (status == HONE_OK) status = cli_session_open_input(&s, args, "data", &input, error);
  if (status == HONE_OK) {
    const hone_eval_options o = {.preprocess = preprocess,
                                 .max_samples = (uint64_t)args->max_samples,
                                 .max_seconds = args->max_seconds,
                                 .input = input,
                                 .others = s.feeds,
                                 .boxes = boxes,
                                 .progress = progress,
                                 .left_out = left_out,
                                 .arg = told};
    status = hone_eval_run(s.context, set, &o, &out->result, error);
    cli_progress_end();
    out->path = path;
    out->batch = cli_batch(&s);
    snprintf(out->precision, sizeof out->precision, "%s", hone_plan_precision(s.plan));
    hone_desc_format(hone_plan_input_desc(s.plan, input), out->input, sizeof out->input);
  }
  cli_session_close(&s);
  return status;
}

/* 1: the second model is worse, and that is not luck. */
static int verdict(const cli_evaluation *pair, const hone_eval_change *change) {
  return pair[1].path && pair[0].result.truth == HONE_TRUTH_CLASS && change->real &&
         change->only_a > change->only_b;
}

static int answer(const cli_args *args, const cli_evaluation *pair, const hone_dataset *set,
                  const hone_preprocess *preprocess, uint64_t problems) {
  hone_eval_change change = {0};
  hone_error error = {0};
  const bool two = pair[1].path != NULL, tested = two && pair[0].result.truth == HONE_TRUTH_CLASS;
  if (tested && hone_eval_compare(&pair[0].result, &pair[1].result, &change, &error) != HONE_OK)
    return cli_report(&error);
  const cli_eval_report r = {args, pair, set, preprocess, tested ? &change : NULL, problems};
  int code = args->json ? cli_print_json(cli_eval_json(&r)) : cli_eval_text(&r);
  if (code == 0) code = verdict(pair, &change);
  return code;
}

static int run(const cli_args *args) {
  cli_evaluation pair[2] = {0};
  hone_dataset *set = NULL;
  hone_preprocess preprocess;
  hone_error error = {0};
  uint64_t problems = 0, told = 0;
  int code;
  if (!args->data.n)
    return cli_error(HONE_ERROR_USAGE, "hone eval: --data wants labelled pictures: a folder with a folder a "
                                       "class, or MNIST's files");
  hone_status status = cli_preprocess(args, &preprocess, &error);
  if (status == HONE_OK) status = cli_labelled_open(args, NULL, &set, &error);
  if (status == HONE_OK) tell_problems(set, &told);
  problems = told;
  if (status == HONE_OK)
    status = measure(args, args->rest.item[0], set, &preprocess, &told, &pair[0], &error);
  const uint64_t first = told;
  if (status == HONE_OK && args->against && !pair[0].result.stopped) {
    told = PROBLEMS_SHOWN; /* the same files again */
    status = measure(args, args->against, set, &preprocess, &told, &pair[1], &error);
  }
  if (first > PROBLEMS_SHOWN) cli_note("left out: %llu more", (unsigned long long)first - PROBLEMS_SHOWN);
  cli_cancellable(NULL);
  code = status == HONE_OK ? answer(args, pair, set, &preprocess, problems) : cli_report(&error);
  if (status == HONE_OK && cli_interrupted() && code == 0) {
    char kept[80];
    snprintf(kept, sizeof kept, "the %llu samples until then count",
             (unsigned long long)pair[0].result.samples);
    code = cli_end_interrupted(kept);
  }
  hone_eval_free(&pair[0].result);
  hone_eval_free(&pair[1].result);
  hone_dataset_close(set);
  return code;
}

static const cli_option options[] = {
    {0, "data", CLI_LIST, CLI_FIELD(data), "PATH",
     "labelled data: a folder, or files (all that follow the model)"},
    {0, "labels", CLI_TEXT, CLI_FIELD(labels), "FILE",
     "lines \"PATH CLASS\", or a class a line in the order of the outputs, or MNIST's labels"},
    {0, "names", CLI_TEXT, CLI_FIELD(names), "FILE",
     "a class a line in the order of the outputs, where --labels is something else"},
    CLI_OPT_BOXES,
    {0, "compare", CLI_TEXT, CLI_FIELD(against), "MODEL",
     "measure this one, too: is the difference real or noise?"},
    {0, "max-samples", CLI_SOME, CLI_FIELD(max_samples), "N", "so many, evenly spread over the data (all)"},
    {'n', "rows", CLI_SOME, CLI_FIELD(rows), "N", "of the table of classes, the worst ones (10)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "NAME=FILE", "an input that the data does not fill"},
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    CLI_OPT_RUN,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_eval = {
    "eval",
    "MODEL --data PATH...",
    "measure accuracy on labelled data",
    "Top-1 with its 95 % interval, Top-5 and F1 on pictures or arrays whose class is known: DIR/CLASS/*.jpg "
    "(classes are numbered in the order of their names, or as --labels lists them), a list of labels, "
    "MNIST's and CIFAR's files. mAP and F1 of a detector on pictures with boxes: YOLO's texts, COCO's JSON "
    "(--labels). Files that cannot be read are told and left out. Pictures are stretched to the input's size "
    "and normalised as for ImageNet unless options say otherwise. Exit code 1: the model of --compare is "
    "worse, by McNemar's test and not by luck.",
    options,
    1,
    1000000000,
    run};
