/* Fixing the shapes of a model's inputs. */
#ifndef HN_MODEL_BIND_H
#define HN_MODEL_BIND_H

#include "model/ir/graph.h"

/* See hone_model_bind. bound may be NULL, else has an entry for every graph input without a constant. */
hone_status hn_model_bind(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          hn_model **out, hone_bound_shape *bound, hone_error *error);

/* ---- between bind.c (one attempt) and bind_search.c (which attempts) */

/* What is assumed of dimensions that neither the model nor the caller fixes. */
typedef struct hn_guess {
  uint32_t k;        /* which of the sizes that are usual for such inputs, below hn_guess_count() */
  uint32_t ones;     /* bit v: open dimension v is as long as the batch instead */
  uint32_t open;     /* out: how many dimensions were open */
  bool contradicted; /* out: these shapes contradict each other inside the model */
} hn_guess;

uint32_t hn_guess_count(void);

hone_status hn_model_bind_once(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                               hn_guess *guess, hn_model **out, hone_bound_shape *bound, hone_error *error);

#endif
