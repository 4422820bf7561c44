/* BeamSearch: a decoder's graph in a loop, of every text the num_beams likeliest ways to go on. Run by the
 * evaluator (ir/eval_beams.c). Rows of scores (output 2) are zero for steps that were not needed. */
#include "model/ops/microsoft/generate/search_inputs.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t batch;
  const hone_status status = hn_search_takes(io, &batch, error);
  if (status) return status;
  for (uint32_t i = 10; i < io->n_inputs; i++) /* decoder_input_ids, logits_processor */
    if (io->input[i]) return hn_op_bad(io->node, error, "input %u is for encoders and their decoders", i);
  const int64_t open = HONE_DIM_UNKNOWN, texts[3] = {batch, open, open},
                scores[4] = {open, batch, open, open};
  hn_infer_set(io, 0, HONE_DTYPE_I32, 3, texts);
  if (io->n_outputs > 1 && io->output[1]) hn_infer_set(io, 1, HONE_DTYPE_F32, 2, texts);
  if (io->n_outputs > 2 && io->output[2]) hn_infer_set(io, 2, HONE_DTYPE_F32, 4, scores);
  return HONE_OK;
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
