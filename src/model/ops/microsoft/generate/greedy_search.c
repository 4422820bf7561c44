/* GreedySearch: a decoder's graph in a loop, its likeliest word each time. Run by the evaluator
 * (ir/eval_search.c). What follows when all texts have ended early is pad_token_id. */
#include "model/ir/search.h"
#include "model/ops/microsoft/generate/search_inputs.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t batch;
  const hone_status status = hn_search_takes(io, HN_SEARCH_ALONE, HN_SEARCH_T5, &batch, error);
  if (!status) hn_infer_set(io, 0, HONE_DTYPE_I32, 2, (const int64_t[]){batch, HONE_DIM_UNKNOWN});
  return status;
}

static const hone_attr_desc attrs[] = {HN_SEARCH_ATTRIBUTES, {0}};

HN_OP(greedy_search) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "GreedySearch",
                        .since = 1,
                        .flags = HONE_OP_CONTROL,
                        HN_INPUTS(2, 7),
                        HN_OUTPUTS(1, 1),
                        .attrs = attrs,
                        .infer = infer};
