/* Inputs of another type or layout. */
#ifndef HN_MODEL_TAKE_H
#define HN_MODEL_TAKE_H

#include "model/ir/graph.h"

#include <hone/data.h>

typedef struct hn_arriving {
  hone_dtype dtype;
  hone_pixels pixels;
  bool normalise;     /* as `by` says */
  hone_preprocess by; /* pixels: of the model's input */
} hn_arriving;

/* See hone_model_take (hone/pictures.h). */
hone_status hn_model_take(hn_model *model, const char *input, const hn_arriving *arriving, hn_model **out,
                          hone_error *error);

#endif
