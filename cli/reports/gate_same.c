/* A gate between two models is one between two versions of one network: what goes in and what comes out has
 * to be the same, or the times say nothing of each other. */
#include "cli/reports/gate.h"
#include "cli/options/options.h"
#include "cli/options/shapes.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>

/* A model with its shapes as a run would have them, or a saved plan. */
typedef struct network {
  const char *path;
  const hone_model *ports; /* what the other members own */
  hone_model *model, *bound;
  hone_engine *engine;
  hone_plan *plan;
} network;

static void close_network(network *n) {
  hone_model_release(n->bound);
  hone_model_release(n->model);
  hone_plan_destroy(n->plan);
  hone_engine_destroy(n->engine);
}

static hone_status open_saved(network *n, const cli_args *args, hone_error *error) {
  uint32_t threads = (uint32_t)args->threads;
  hone_status status = threads ? HONE_OK : hone_plan_saved_threads(n->path, &threads, error);
  hone_engine_options o = {.device = cli_device_name(args), .threads = threads, .tuning = ""};
  if (status == HONE_OK) status = hone_engine_create(&o, &n->engine, error);
  if (status == HONE_OK) status = hone_plan_open(n->engine, n->path, &n->plan, error);
  if (status == HONE_OK) n->ports = hone_plan_model(n->plan);
  return status;
}

/* Where input files settle the shapes, what a model leaves open stays open here. */
static hone_status open_network(network *n, const cli_args *args, const char *path, hone_error *error) {
  hone_binding *bindings = NULL;
  uint32_t count = 0;
  *n = (network){.path = path};
  if (hone_plan_is_saved(path)) return open_saved(n, args, error);
  hone_status status = cli_load(args, path, &n->model, error);
  n->ports = n->model;
  if (status != HONE_OK || args->inputs.n) return status;
  status = cli_bindings(args, n->model, &bindings, &count, error);
  if (status == HONE_OK)
    status = hone_model_bind(n->model, bindings, count, args->batch, &n->bound, NULL, error);
  n->ports = n->bound;
  free(bindings);
  return status;
}

hone_status gate_same_network(const cli_args *args, const char *old, const char *new, hone_error *error) {
  network a = {0}, b = {0};
  hone_status status = open_network(&a, args, old, error);
  if (status == HONE_OK) status = open_network(&b, args, new, error);
  if (status == HONE_OK) {
    status = hone_same_ports(a.ports, old, b.ports, new, error);
    if (status == HONE_ERROR_INPUT)
      snprintf(error->hint, sizeof error->hint,
               "--baseline-cmd and --candidate-cmd compare the times of anything");
  }
  close_network(&a);
  close_network(&b);
  return status;
}
