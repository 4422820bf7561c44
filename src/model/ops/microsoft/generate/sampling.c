/* Sampling: a decoder's graph in a loop, each time a word drawn of those that are likeliest together (top_p).
 * Run by the evaluator (ir/eval_search.c). Draws follow the input seed (0 where it is left out) and are not
 * those of other libraries. filtered_logits are those of the last step. */
#include "model/ir/search.h"
#include "model/ops/microsoft/generate/search_inputs.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t batch;
  const hone_status status = hn_search_takes(io, HN_SEARCH_ALONE, HN_SEARCH_T5, &batch, error);
  if (status) return status;
  const int64_t dim[2] = {batch, HONE_DIM_UNKNOWN};
  hn_infer_set(io, 0, HONE_DTYPE_I32, 2, dim);
  if (io->n_outputs > 1 && io->output[1]) hn_infer_set(io, 1, HONE_DTYPE_F32, 2, dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {HN_SEARCH_ATTRIBUTES,
                                       {.name = "temperature", .type = HONE_ATTR_FLOAT},
                                       {.name = "top_p", .type = HONE_ATTR_FLOAT},
                                       {.name = "filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "min_tokens_to_keep", .type = HONE_ATTR_INT},
                                       {.name = "presence_penalty", .type = HONE_ATTR_FLOAT},
                                       {.name = "custom", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(sampling) = {HONE_DESC_HEAD(hone_op_desc),
                   .domain = "com.microsoft",
                   .op_type = "Sampling",
                   .since = 1,
                   .flags = HONE_OP_CONTROL | HONE_OP_RANDOM,
                   HN_INPUTS(2, 9),
                   HN_OUTPUTS(1, 2),
                   .attrs = attrs,
                   .infer = infer};
