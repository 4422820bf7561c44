/* Packed weights that plans of one model have in common, for who makes the plans one by one. */
#include "api/api.h"
#include "api/lines.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/passes/optimize.h"
#include "optimize/plan/packed.h"

#include <pthread.h>

struct hone_weights {
  const hone_engine *engine;
  hn_model *model;      /* keys are addresses of its weights */
  hn_model *prepared;   /* what plans are made of; NULL: none was yet */
  pthread_mutex_t lock; /* for it */
  hn_packed_store *store;
  hn_lines *lines; /* what plans made with it have in common beside their weights; NULL: on devices with
                      memory of their own */
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
  if (w && (!(w->store = hn_packed_store_create(backend, device)) ||
            (!backend->asynchronous && !(w->lines = hn_lines_create())))) {
    hn_packed_store_drop(w->store);
    hn_free(w);
    w = NULL;
  }
  if (!w) return hn_fail_memory(error, sizeof *w, "packed weights");
  pthread_mutex_init(&w->lock, NULL);
  w->engine = engine;
  w->model = hn_model_retain(model);
  *out = w;
  return HONE_OK;
}

void hone_weights_destroy(hone_weights *w) {
  if (!w) return;
  hn_lines_drop(w->lines);
  hn_packed_store_drop(w->store);
  if (w->prepared) hn_model_destroy(w->prepared);
  hn_model_destroy(w->model);
  pthread_mutex_destroy(&w->lock);
  hn_free(w);
}

uint64_t hone_weights_bytes(const hone_weights *w) { return w ? hn_packed_store_bytes(w->store, NULL) : 0; }

/* The model with what moves its weights done: a Transpose of an embedding that is the last layer's matrix,
 * too, would else be made anew for every plan, with bytes that no key can name by their address. Nothing but
 * moves: they come before or behind all other passes alike. When anything is against it, it is the model
 * itself. */
static hn_model *prepare(hn_model *model) {
  hn_model *m = NULL;
  if (hn_model_clone(model, &m, NULL) != HONE_OK) return hn_model_retain(model);
  const hn_optimize_options options = {
      .level = 1, .passes = "freeze_initializers,fold_constants", .moves = true, .lowered = true};
  if (hn_model_infer(m, NULL) == HONE_OK && hn_optimize(m, &options, NULL, NULL) == HONE_OK) return m;
  hn_model_destroy(m);
  return hn_model_retain(model);
}

hone_status hn_api_weights(const hone_weights *given, const hone_engine *engine, hone_model *model,
                           bool folds, hn_model **prepared, hn_packed_store **store, hn_lines **lines,
                           hone_error *error) {
  hone_weights *w = (hone_weights *)(uintptr_t)given; /* what it keeps changes no plan */
  *store = NULL;
  *lines = NULL;
  *prepared = model;
  if (!w) return HONE_OK;
  if (w->engine != engine || w->model != model)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_create: the packed weights belong to another model or engine");
  *store = w->store;
  *lines = w->lines;
  if (!folds) return HONE_OK;
  pthread_mutex_lock(&w->lock);
  if (!w->prepared) w->prepared = prepare(model);
  *prepared = w->prepared;
  pthread_mutex_unlock(&w->lock);
  return HONE_OK;
}
