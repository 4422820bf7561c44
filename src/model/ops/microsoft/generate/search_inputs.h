/* What the searches of com.microsoft take, and refuse before they run. */
#ifndef HN_MODEL_OPS_MICROSOFT_GENERATE_SEARCH_INPUTS_H
#define HN_MODEL_OPS_MICROSOFT_GENERATE_SEARCH_INPUTS_H

#include "model/ops/common/op.h"

/* HONE_OK, and in *batch how many texts there are. `kind` is the least that model_type must be, `most` the
 * greatest. */
hone_status hn_search_takes(const hone_infer *io, int64_t least, int64_t most, int64_t *batch,
                            hone_error *error);

/* Outputs of BeamSearch and WhisperBeamSearch. */
hone_status hn_infer_beams(const hone_infer *io, int64_t least, hone_error *error);

/* What every search is told. */
#define HN_SEARCH_ATTRIBUTES                                                                                 \
  {.name = "encoder", .type = HONE_ATTR_GRAPH},                                                              \
      {.name = "decoder", .type = HONE_ATTR_GRAPH, .required = true},                                        \
      {.name = "init_decoder", .type = HONE_ATTR_GRAPH},                                                     \
      {.name = "eos_token_id", .type = HONE_ATTR_INT, .required = true},                                     \
      {.name = "pad_token_id", .type = HONE_ATTR_INT, .required = true},                                     \
      {.name = "decoder_start_token_id", .type = HONE_ATTR_INT},                                             \
      {.name = "no_repeat_ngram_size", .type = HONE_ATTR_INT},                                               \
      {.name = "model_type", .type = HONE_ATTR_INT}, {                                                       \
    .name = "vocab_size", .type = HONE_ATTR_INT                                                              \
  }

#endif
