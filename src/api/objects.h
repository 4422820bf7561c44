/* What is behind the public names of engines and plans. */
#ifndef HN_API_OBJECTS_H
#define HN_API_OBJECTS_H

#include "api/lines.h"
#include "optimize/plan/plan.h"
#include "optimize/step/tuned.h"

#include <hone/session.h>

#include <stdatomic.h>

struct hone_engine {
  const hn_backend *backend;
  hn_device *device;
  char *tactics;
  hn_tuned *tuned;
  hn_tuned_source tuned_source;
};

struct hone_plan {
  hone_engine *engine;
  hn_plan *plan;
  hn_model *source;        /* as it was loaded: names of bound shapes are borrowed from it */
  hone_bound_shape *bound; /* by plan input */
  hone_rewrites rewrites;
  hn_lined *lined;         /* of plans that may become others, or NULL */
  _Atomic uint32_t in_use; /* contexts */
};

#endif
