/* GreedySearch: a decoder's graph in a loop, its likeliest word each time. Run by the evaluator
 * (ir/eval_search.c). What follows when all texts have ended early is pad_token_id. */
#include "model/ops/control/bodies.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *ids = io->input[0];
  if ((ids->dtype != HONE_DTYPE_NONE && ids->dtype != HONE_DTYPE_I32) || (ids->rank >= 0 && ids->rank != 2))
    return hn_op_bad(io->node, error, "input_ids are not i32 [batch, length]");
  if (hone_node_int(io->node, "model_type", 0) != 0) return hn_op_refuse(io->node, error, "model_type");
  const int64_t batch = ids->rank == 2 ? ids->dim[0] : HONE_DIM_UNKNOWN;
  return hn_infer_set(io, 0, HONE_DTYPE_I32, 2, (const int64_t[]){batch, HONE_DIM_UNKNOWN}), HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "decoder", .type = HONE_ATTR_GRAPH, .required = true},
                                       {.name = "init_decoder", .type = HONE_ATTR_GRAPH},
                                       {.name = "eos_token_id", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "pad_token_id", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "decoder_start_token_id", .type = HONE_ATTR_INT},
                                       {.name = "no_repeat_ngram_size", .type = HONE_ATTR_INT},
                                       {.name = "model_type", .type = HONE_ATTR_INT},
                                       {.name = "vocab_size", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(greedy_search) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "GreedySearch",
                        .since = 1,
                        .flags = HONE_OP_CONTROL,
                        HN_INPUTS(2, 7),
                        HN_OUTPUTS(1, 1),
                        .attrs = attrs,
                        .infer = infer};
