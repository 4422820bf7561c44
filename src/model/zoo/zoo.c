/* hone_zoo_*: finds a built-in network, checks its options and builds it. */
#include "model/zoo/common/build.h"

#include "model/operators.h"

#include <math.h>
#include <string.h>

#define ZOO(name) extern const struct hn_zoo_unit hn_zoo_##name;
#include "model/zoo/zoo.def"
#undef ZOO

static const struct hn_zoo_unit *const units[] = {
#define ZOO(name) &hn_zoo_##name,
#include "model/zoo/zoo.def"
#undef ZOO
};
enum { UNITS = sizeof units / sizeof *units };

uint32_t hone_zoo_count(void) { return UNITS; }
const char *hone_zoo_name(uint32_t i) { return i < UNITS ? units[i]->name : NULL; }
const char *hone_zoo_about(uint32_t i) { return i < UNITS ? units[i]->about : NULL; }

static hone_status check(const struct hn_zoo_unit *unit, const hone_zoo_options *o, hone_error *error) {
  if (o->batch < 0 || o->batch > 65536)
    return hn_fail(error, HONE_ERROR_USAGE, "batch %lld is not in 0..65536", (long long)o->batch);
  if (!(o->width >= 0.01 && o->width <= 8))
    return hn_fail(error, HONE_ERROR_USAGE, "width %g is not in 0.01..8", o->width);
  if (o->round < 1 || o->round > 1024)
    return hn_fail(error, HONE_ERROR_USAGE, "round %lld is not in 1..1024", (long long)o->round);
  if (o->size < unit->multiple || o->size > unit->max_size)
    return hn_fail(error, HONE_ERROR_USAGE, "%s: size %lld is not in %lld..%lld", unit->name,
                   (long long)o->size, (long long)unit->multiple, (long long)unit->max_size);
  if (o->size % unit->multiple)
    return hn_fail(error, HONE_ERROR_USAGE, "%s: size %lld is not a multiple of %lld", unit->name,
                   (long long)o->size, (long long)unit->multiple);
  if (o->boxes && !unit->detects)
    return hn_fail(error, HONE_ERROR_USAGE, "%s finds no boxes: yolov3 does", unit->name);
  return HONE_OK;
}

/* The file's nodes, as a reader would record them: every node stands for itself. */
static bool record_sources(hn_model *model) {
  for (hone_node *n = model->graph->first; n; n = n->next) {
    uint32_t index = (uint32_t)model->source.len;
    if (!hn_vec_push(&model->source, (hn_source_node){n->name, n->op_type}) ||
        !hn_node_set_origin(n, &index, 1))
      return false;
  }
  return true;
}

hone_status hone_zoo_build(const char *name, const hone_zoo_options *options, hone_model **out,
                           hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_zoo_build: out is NULL");
  *out = NULL;
  const struct hn_zoo_unit *unit = NULL;
  for (size_t i = 0; name && i < UNITS && !unit; i++)
    if (strcmp(units[i]->name, name) == 0) unit = units[i];
  if (!unit) {
    hn_fail(error, HONE_ERROR_USAGE, "no built-in network is called '%s'", name ? name : "(null)");
    hn_error_hint(error, "hone zoo lists them");
    return HONE_ERROR_USAGE;
  }
  hn_zoo z = {.opt = options ? *options : (hone_zoo_options){0}};
  if (z.opt.width == 0) z.opt.width = 1;
  if (z.opt.size == 0) z.opt.size = unit->size;
  if (z.opt.seed == 0) z.opt.seed = 1;
  if (z.opt.round == 0) z.opt.round = 1;
  hone_status status = check(unit, &z.opt, error);
  if (status != HONE_OK) goto done;

  z.model = hn_model_create("");
  if (!z.model) {
    status = hn_fail_memory(error, sizeof *z.model, "a model");
    goto done;
  }
  z.graph = z.model->graph;
  z.graph->name = unit->name;
  z.model->ir_version = 8;
  z.model->producer = "hone zoo";
  z.batch = z.opt.batch ? z.opt.batch : hn_model_symbol(z.model, "N");
  if (!hn_vec_push(&z.model->opsets, (hn_opset){"", 17}) || z.batch == HONE_DIM_UNKNOWN) z.failed = true;
  unit->build(&z);
  if (z.failed || !record_sources(z.model)) {
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while building %s", unit->name);
    goto done;
  }
  status = hn_model_ready(z.model, error);
done:
  if (status == HONE_OK)
    *out = z.model;
  else if (z.model)
    hn_model_destroy(z.model);
  return status;
}
