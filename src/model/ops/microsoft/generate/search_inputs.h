/* What the searches of com.microsoft refuse before they run. */
#ifndef HN_MODEL_OPS_MICROSOFT_GENERATE_SEARCH_INPUTS_H
#define HN_MODEL_OPS_MICROSOFT_GENERATE_SEARCH_INPUTS_H

#include "model/ops/control/bodies.h"

/* HONE_OK, and in *batch how many texts there are. */
static inline hone_status hn_search_takes(const hone_infer *io, int64_t *batch, hone_error *error) {
  const hone_tensor_desc *ids = io->input[0];
  *batch = ids->rank == 2 ? ids->dim[0] : HONE_DIM_UNKNOWN;
  if (hone_node_int(io->node, "model_type", 0) != 0) return hn_op_refuse(io->node, error, "model_type");
  if ((ids->dtype != HONE_DTYPE_NONE && ids->dtype != HONE_DTYPE_I32) || (ids->rank >= 0 && ids->rank != 2))
    return hn_op_bad(io->node, error, "input_ids are not i32 [batch, length]");
  return HONE_OK;
}

/* What every search is told. */
#define HN_SEARCH_ATTRIBUTES                                                                                 \
  {.name = "decoder", .type = HONE_ATTR_GRAPH, .required = true},                                            \
      {.name = "init_decoder", .type = HONE_ATTR_GRAPH},                                                     \
      {.name = "eos_token_id", .type = HONE_ATTR_INT, .required = true},                                     \
      {.name = "pad_token_id", .type = HONE_ATTR_INT, .required = true},                                     \
      {.name = "decoder_start_token_id", .type = HONE_ATTR_INT},                                             \
      {.name = "no_repeat_ngram_size", .type = HONE_ATTR_INT},                                               \
      {.name = "model_type", .type = HONE_ATTR_INT}, {                                                       \
    .name = "vocab_size", .type = HONE_ATTR_INT                                                              \
  }

#endif
