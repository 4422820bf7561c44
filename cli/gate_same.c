/* A gate between two models is one between two versions of one network: what goes in and what comes out has
 * to be the same, or the times say nothing of each other. */
#include "cli/gate.h"

#include <stdlib.h>
#include <string.h>

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

typedef bool (*port_of)(const hone_model *, uint32_t, hone_port *);

static bool find_port(const hone_model *model, port_of get, const char *name, hone_port *port) {
  for (uint32_t i = 0; get(model, i, port); i++)
    if (strcmp(port->name, name) == 0) return true;
  return false;
}

/* What is not known before a run fits everything. */
static bool fits(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  bool same = a->dtype == b->dtype && (a->rank == b->rank || a->rank < 0 || b->rank < 0);
  for (int32_t k = 0; same && k < a->rank && k < b->rank; k++)
    same = a->dim[k] == b->dim[k] || a->dim[k] < 0 || b->dim[k] < 0;
  return same;
}

static hone_status refuse(const network *a, const char *kind, const char *name, const char *in_a,
                          const char *in_b, hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_INPUT};
  snprintf(error->what, sizeof error->what,
           "these are two different networks: %s '%.80s' is %s in the baseline and %s in the candidate", kind,
           name, in_a, in_b);
  snprintf(error->where, sizeof error->where, "%.200s", a->path);
  snprintf(error->hint, sizeof error->hint,
           "--baseline-cmd and --candidate-cmd compare the times of anything");
  return error->status;
}

/* The first of a's inputs (or outputs) that b has not, or has otherwise. An input with a value of its own is
 * none that anybody has to feed. */
static hone_status compare_ports(const network *a, const network *b, port_of get, const char *kind,
                                 bool backwards, hone_error *error) {
  hone_port mine, theirs;
  for (uint32_t i = 0; get(a->ports, i, &mine); i++) {
    char text[2][128];
    if (mine.optional) continue;
    hone_desc_format(&mine.desc, text[0], sizeof text[0]);
    const bool found = find_port(b->ports, get, mine.name, &theirs);
    if (found && fits(&mine.desc, &theirs.desc)) continue;
    if (found)
      hone_desc_format(&theirs.desc, text[1], sizeof text[1]);
    else
      snprintf(text[1], sizeof text[1], "missing");
    return backwards ? refuse(b, kind, mine.name, text[1], text[0], error)
                     : refuse(a, kind, mine.name, text[0], text[1], error);
  }
  return HONE_OK;
}

hone_status gate_same_network(const cli_args *args, const char *old, const char *new, hone_error *error) {
  network a = {0}, b = {0};
  hone_status status = open_network(&a, args, old, error);
  if (status == HONE_OK) status = open_network(&b, args, new, error);
  static const struct {
    port_of get;
    const char *kind;
  } sides[] = {{hone_model_input, "input"}, {hone_model_output, "output"}};
  for (size_t i = 0; i < 2 && status == HONE_OK; i++) {
    status = compare_ports(&a, &b, sides[i].get, sides[i].kind, false, error);
    if (status == HONE_OK) status = compare_ports(&b, &a, sides[i].get, sides[i].kind, true, error);
  }
  close_network(&a);
  close_network(&b);
  return status;
}
