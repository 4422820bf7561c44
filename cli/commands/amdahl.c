/* hone amdahl: what a faster part means for the whole. */
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <fnmatch.h>
#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct part {
  double p, s;
  double wall_ms, part_ms; /* of a profile; 0: P was given */
  size_t layers;
} part;

static hone_status wrong(hone_error *error, const char *text) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "%s", text);
  return HONE_ERROR_USAGE;
}

/* P from the layers of a profile whose name, type or ONNX node matches; times are those of the typical run.
 */
static hone_status from_profile(const cli_args *args, part *out, hone_error *error) {
  hone_recording p = {0};
  const char *const *files = args->rest.item;
  cli_args all_layers = *args; /* the whole is all of them */
  all_layers.filter = NULL;
  hone_status status = cli_import(&all_layers, files, args->rest.n, &p, error);
  double all = 0;
  for (size_t i = 0; status == HONE_OK && i < p.profile->layer_count; i++) {
    const hone_layer *l = &p.profile->layers[i];
    double ms = l->stats.p50 > 0 ? l->stats.p50 : l->time_ms;
    bool match = strcasecmp(args->filter, l->type) == 0 || fnmatch(args->filter, l->name, 0) == 0;
    for (size_t k = 0; k < l->onnx_node_count && !match; k++)
      match = fnmatch(args->filter, l->onnx_nodes[k], 0) == 0;
    all += ms;
    if (!match) continue;
    out->part_ms += ms;
    out->layers++;
  }
  if (status == HONE_OK) {
    /* The median wall, or where nobody measured one the sum of the layers. */
    out->wall_ms = p.profile->wall.p50 > all ? p.profile->wall.p50 : all;
    if (!out->layers) {
      status = wrong(error, "no layer of this profile matches --layers");
      snprintf(error->got, sizeof error->got, "%.60s", args->filter);
    } else if (out->wall_ms > 0)
      out->p = out->part_ms / out->wall_ms;
  }
  hone_recording_free(&p);
  return status;
}

static hone_status find_part(const cli_args *args, part *out, hone_error *error) {
  *out = (part){.p = args->share, .s = args->speedup};
  if (!(args->speedup > 0))
    return wrong(error, "hone amdahl wants -s: how many times faster the part becomes (more than 0)");
  if (!args->rest.n)
    return args->share >= 0 && args->share <= 1
               ? HONE_OK
               : wrong(error, "hone amdahl wants -p: the part's share of the time, from 0 to 1, or a profile "
                              "and --layers");
  if (args->share >= 0) return wrong(error, "P comes from the profile: give --layers instead of -p");
  return args->filter
             ? from_profile(args, out, error)
             : wrong(error, "hone amdahl FILE wants --layers: an operator type or a glob over layer names");
}

static void print_text(const part *v) {
  static const double steps[] = {1.1, 1.25, 1.5, 2, 3, 5, 10};
  double whole = hone_amdahl(v->p, v->s);
  if (v->layers)
    cli_print("%zu layer%s: %.4g of %.4g ms (P = %.4f)\n", v->layers, v->layers == 1 ? "" : "s", v->part_ms,
              v->wall_ms, v->p);
  cli_print(
      "speed-up of the whole = 1 / ((1 - P) + P / S) = 1 / ((1 - %.4g) + %.4g / %.4g) = %.4f  (%+.2f %%)\n",
      v->p, v->p, v->s, whole, 100 * (whole - 1));
  cli_print("time saved: %.2f %%", 100 * (1 - 1 / whole));
  if (v->wall_ms > 0) cli_print(" (%.4g -> %.4g ms)", v->wall_ms, v->wall_ms / whole);
  cli_print("\nlimit (S without end): ");
  if (v->p < 1)
    cli_print("%.4f  (%+.2f %%)\n\n", 1 / (1 - v->p), 100 * (1 / (1 - v->p) - 1));
  else
    cli_print("none\n\n");
  cli_print("%8s %12s %10s\n", "S", "whole", "gain");
  bool own = false;
  for (size_t i = 0; i < sizeof steps / sizeof *steps + 1; i++) {
    double next = i < sizeof steps / sizeof *steps ? steps[i] : INFINITY;
    if (!own && v->s <= next) {
      cli_print("%8.4g %12.4f %+9.2f %%  <-\n", v->s, whole, 100 * (whole - 1));
      own = true;
      if (v->s == next) continue;
    }
    if (isfinite(next))
      cli_print("%8.4g %12.4f %+9.2f %%\n", next, hone_amdahl(v->p, next),
                100 * (hone_amdahl(v->p, next) - 1));
  }
}

static int run(const cli_args *args) {
  part v;
  hone_error error = {0};
  if (find_part(args, &v, &error) != HONE_OK) return cli_report(&error);
  if (!args->json) {
    print_text(&v);
    return cli_flush();
  }
  double whole = hone_amdahl(v.p, v.s);
  json_t *o =
      json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "p", cli_real(v.p), "s", cli_real(v.s), "speedup",
                cli_real(whole), "gain_pct", cli_real(100 * (whole - 1)), "saved_pct",
                cli_real(100 * (1 - 1 / whole)), "limit", cli_real(v.p < 1 ? 1 / (1 - v.p) : INFINITY));
  if (o && v.layers) {
    json_object_set_new(o, "layers", json_integer((json_int_t)v.layers));
    json_object_set_new(o, "part_ms", cli_real(v.part_ms));
    json_object_set_new(o, "wall_ms", cli_real(v.wall_ms));
    json_object_set_new(o, "saved_ms", cli_real(v.wall_ms * (1 - 1 / whole)));
  }
  return cli_print_json(o);
}

static const cli_option options[] = {
    {'p', "share", CLI_NUMBER, CLI_FIELD(share), "P", "the part's share of the time, 0 to 1"},
    {'s', "speedup", CLI_NUMBER, CLI_FIELD(speedup), "S", "how many times faster the part becomes"},
    {0, "layers", CLI_TEXT, CLI_FIELD(filter), "TYPE|GLOB",
     "with FILE: the part is these layers (type, name or ONNX node)"},
    CLI_OPT_IMPORT,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_amdahl = {
    "amdahl",
    "[FILE...]",
    "what a faster part means for the whole",
    "Amdahl's law, 1 / ((1 - P) + P / S): hone amdahl -p 0.1 -s 1.146, or with a profile (of hone or another "
    "tool) and the layers that become faster: hone amdahl facts.json --layers 'layer2*' -s 1.146.",
    options,
    0,
    100000,
    run};
