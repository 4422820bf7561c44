/* WhisperBeamSearch: BeamSearch of sound, whose words may be moments (logits_processor 1: they come in pairs
 * and never go back). Run by the evaluator (ir/eval_beams.c). cross_qk is not made. */
#include "model/ir/search.h"
#include "model/ops/microsoft/generate/search_inputs.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (io->n_outputs > 3 && io->output[3]) return hn_op_bad(io->node, error, "cross_qk is not made");
  const hone_status status = hn_infer_beams(io, HN_SEARCH_WHISPER, error);
  const int64_t batch = io->input[0]->rank == 3 ? io->input[0]->dim[0] : HONE_DIM_UNKNOWN;
  if (!status && io->n_outputs > 4 && io->output[4]) hn_infer_set(io, 4, HONE_DTYPE_F32, 1, &batch);
  return status;
}

static const hone_attr_desc attrs[] = {HN_SEARCH_ATTRIBUTES,
                                       {.name = "early_stopping", .type = HONE_ATTR_INT},
                                       {.name = "decoder_output_cross_qk", .type = HONE_ATTR_INT},
                                       {.name = "translate_token_id", .type = HONE_ATTR_INT},
                                       {.name = "transcribe_token_id", .type = HONE_ATTR_INT},
                                       {.name = "start_of_lm_token_id", .type = HONE_ATTR_INT},
                                       {.name = "no_speech_token_id", .type = HONE_ATTR_INT},
                                       {.name = "no_timestamps_token_id", .type = HONE_ATTR_INT},
                                       {.name = "beginning_timestamp_token_id", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(whisper_beam_search) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "WhisperBeamSearch",
                              .since = 1,
                              .flags = HONE_OP_CONTROL,
                              HN_INPUTS(2, 15),
                              HN_OUTPUTS(1, 5),
                              .attrs = attrs,
                              .infer = infer};
