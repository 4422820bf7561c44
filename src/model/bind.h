/* Fixing the shapes of a model's inputs. */
#ifndef HN_MODEL_BIND_H
#define HN_MODEL_BIND_H

#include "model/ir/graph.h"

/* See hone_model_bind. bound may be NULL, else has an entry for every graph input without a constant. */
hone_status hn_model_bind(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          hn_model **out, hone_bound_shape *bound, hone_error *error);

#endif
