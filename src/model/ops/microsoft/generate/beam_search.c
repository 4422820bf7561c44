/* BeamSearch: a decoder's graph in a loop, alone or behind an encoder's, of every text the num_beams
 * likeliest ways to go on. Run by the evaluator (ir/eval_beams.c). Rows of scores (output 2) are zero for
 * steps that were not needed. */
#include "model/ir/search.h"
#include "model/ops/microsoft/generate/search_inputs.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_infer_beams(io, HN_SEARCH_ALONE, error);
}

static const hone_attr_desc attrs[] = {
    HN_SEARCH_ATTRIBUTES, {.name = "early_stopping", .type = HONE_ATTR_INT}, {0}};

HN_OP(beam_search) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "BeamSearch",
                      .since = 1,
                      .flags = HONE_OP_CONTROL,
                      HN_INPUTS(2, 12),
                      HN_OUTPUTS(1, 3),
                      .attrs = attrs,
                      .infer = infer};
