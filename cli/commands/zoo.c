/* hone zoo [NAME -o m.onnx]: built-in networks. */
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int list(const cli_args *args) {
  json_t *all = json_array();
  for (uint32_t i = 0; i < hone_zoo_count(); i++) {
    if (args->json)
      json_array_append_new(all,
                            json_pack("{s:s, s:s}", "name", hone_zoo_name(i), "about", hone_zoo_about(i)));
    else
      cli_print("%-12s %s\n", hone_zoo_name(i), hone_zoo_about(i));
  }
  if (args->json) return cli_print_json(json_pack("{s:o}", "networks", all));
  json_decref(all);
  return cli_flush();
}

static int unknown(const char *name) {
  const char *names[64];
  size_t n = 0;
  for (; n < hone_zoo_count() && n < 64; n++) names[n] = hone_zoo_name((uint32_t)n);
  const char *near = cli_nearest(name, names, n);
  return near ? cli_error(HONE_ERROR_USAGE, "no built-in network is called '%s'; did you mean '%s'?", name,
                          near)
              : cli_error(HONE_ERROR_USAGE, "no built-in network is called '%s' (hone zoo lists them)", name);
}

static int run(const cli_args *args) {
  if (!args->rest.n) return list(args);
  const char *name = args->rest.item[0];
  bool known = false;
  for (uint32_t i = 0; i < hone_zoo_count(); i++) known = known || strcmp(hone_zoo_name(i), name) == 0;
  if (!known) return unknown(name);
  if (!args->output)
    return cli_error(HONE_ERROR_USAGE, "hone zoo: say where to write the model: -o %s.onnx", name);
  hone_zoo_options o = {.batch = args->batch,
                        .width = args->width,
                        .size = args->size,
                        .seed = (uint64_t)args->seed,
                        .round = args->round,
                        .boxes = args->with_boxes};
  hone_model *model = NULL;
  hone_error error = {0};
  int code = 0;
  hone_status status = hone_zoo_build(name, &o, &model, &error);
  if (status == HONE_OK) {
    cli_hold(true);
    status = hone_model_save(model, args->output, &error);
    cli_hold(false);
  }
  if (status != HONE_OK)
    code = cli_report(&error);
  else if (args->json)
    code = cli_print_json(json_pack("{s:s, s:s, s:I}", "name", name, "file", args->output, "nodes",
                                    (json_int_t)hone_model_nodes(model)));
  else
    cli_print("%s: %s, %u node%s\n", args->output, name, hone_model_nodes(model),
              cli_s(hone_model_nodes(model)));
  hone_model_release(model);
  if (code) return code;
  return cli_interrupted() ? cli_end_interrupted(args->output) : cli_flush();
}

static const cli_option options[] = {
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "where to write the model"},
    {'b', "batch", CLI_SOME, CLI_FIELD(batch), "N", "fixed batch size (symbolic)"},
    {0, "width", CLI_NUMBER, CLI_FIELD(width), "X", "channel multiplier (1); odd channel counts stay"},
    {0, "round", CLI_SOME, CLI_FIELD(round), "N", "make scaled channel counts multiples of N (1)"},
    {0, "size", CLI_SOME, CLI_FIELD(size), "N", "image side or sequence length (the network's own)"},
    {0, "boxes", CLI_FLAG, CLI_FIELD(with_boxes), NULL,
     "yolov3: decoded heads and NonMaxSuppression behind the network"},
    {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of the weights (1)"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_zoo = {
    "zoo",
    "[NAME -o FILE]",
    "write a built-in network as ONNX",
    "Without a name the networks are listed. Weights are random but seeded; batch normalisation stays "
    "separate, as exporters write it. The same options give the same bytes. Image networks take any --size "
    "(yolov3: multiples of 32); bert_base scales its attention heads (64 channels each), and --size is its "
    "sequence length, at most 512.",
    options,
    0,
    1,
    run};
