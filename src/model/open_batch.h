/* Opening a fixed batch. */
#ifndef HN_MODEL_OPEN_BATCH_H
#define HN_MODEL_OPEN_BATCH_H

#include "model/ir/graph.h"

/* See hone_model_open_batch. */
hone_status hn_model_open_batch(hn_model *model, hn_model **out, hone_error *error);

#endif
