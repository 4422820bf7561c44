/* A layer of trtexec --exportLayerInfo (all dialects up to TensorRT 11) as a step of facts. */
#ifndef HN_INSIGHT_IMPORT_TRTEXEC_LAYERS_H
#define HN_INSIGHT_IMPORT_TRTEXEC_LAYERS_H

#include "insight/import/import.h"

typedef struct hn_trt_layer {
  const char *name; /* as the profile spells it, see hn_trt_name */
  hone_step_fact step;
  const char *const *nodes;         /* names of the ONNX nodes that it executes */
  size_t node_count, anchor;        /* anchor: the one that decides the cost */
  struct hn_trt_layer *next, *last; /* others of the same name; last: of the first of them */
} hn_trt_layer;

/* A layer's name in the arena, so that profile and layer information agree: separators 0x1E and 0x1F become
 * blanks, a suffix " [profile N]" goes. NULL when out of memory. */
const char *hn_trt_name(hn_import *in, const char *name);

/* From an element of "Layers" (a text, or an object of the detailed form), or from the name alone (NULL).
 * NULL when out of memory or when the element is neither. */
hn_trt_layer *hn_trt_layer_make(hn_import *in, const char *name, const hn_jvalue *value);

/* Dimensions of a tensor; returns how many. */
size_t hn_trt_dims(const hn_jvalue *tensor, int64_t dims[16]);

#endif
