/* Packed weights that plans of one model have in common, for who makes the plans one by one. */
#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/plan/packed.h"

struct hone_weights {
  const hone_engine *engine;
  hn_model *model; /* keys are addresses of its weights */
  hn_packed_store *store; /* NULL: on devices with memory of their own */
};

hone_status hone_weights_create(hone_engine *engine, hone_model *model, hone_weights **out,
                                hone_error *error) {
  if (!engine || !model || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_weights_create needs an engine, a model and a place for the result");
  *out = NULL;
  hn_device *device = NULL;
  const hn_backend *backend = hn_api_backend(engine, &device);
  hone_weights *w = hn_calloc(1, sizeof *w);
  if (w && !backend->asynchronous && !(w->store = hn_packed_store_create(backend, device))) {
    hn_free(w);
    w = NULL;
  }
  if (!w) return hn_fail_memory(error, sizeof *w, "packed weights");
  w->engine = engine;
  w->model = hn_model_retain(model);
  *out = w;
  return HONE_OK;
}

void hone_weights_destroy(hone_weights *w) {
  if (!w) return;
  hn_packed_store_drop(w->store);
  hn_model_destroy(w->model);
  hn_free(w);
}

uint64_t hone_weights_bytes(const hone_weights *w) {
  return w && w->store ? hn_packed_store_bytes(w->store, NULL) : 0;
}

hone_status hn_api_store(const hone_weights *w, const hone_engine *engine, const hone_model *model,
                         hn_packed_store **store, hone_error *error) {
  *store = NULL;
  if (!w) return HONE_OK;
  if (w->engine != engine || w->model != model)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_create: the packed weights belong to another model or engine");
  *store = w->store;
  return HONE_OK;
}
