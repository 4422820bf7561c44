#include "model/ops/microsoft/generate/search_inputs.h"

#include "model/ir/search.h"

hone_status hn_search_takes(const hone_infer *io, int64_t least, int64_t most, int64_t *batch,
                            hone_error *error) {
  const hone_tensor_desc *ids = io->input[0];
  const int64_t kind = hone_node_int(io->node, "model_type", least);
  const bool sound = kind == HN_SEARCH_WHISPER;
  const int32_t rank = sound ? 3 : 2;
  *batch = ids->rank == rank ? ids->dim[0] : HONE_DIM_UNKNOWN;
  if (kind < least || kind > most) return hn_op_refuse(io->node, error, "model_type");
  if (ids->rank >= 0 && ids->rank != rank)
    return hn_op_bad(io->node, error, "the first input has %d dimensions, not %d", ids->rank, rank);
  if (ids->dtype != HONE_DTYPE_NONE &&
      (sound ? ids->dtype != HONE_DTYPE_F32 && ids->dtype != HONE_DTYPE_F16 : ids->dtype != HONE_DTYPE_I32))
    return hn_op_bad(io->node, error, sound ? "features are not floats" : "input_ids are not i32");
  return HONE_OK;
}

hone_status hn_infer_beams(const hone_infer *io, int64_t least, hone_error *error) {
  int64_t batch;
  const hone_status status = hn_search_takes(io, least, HN_SEARCH_WHISPER, &batch, error);
  if (status) return status;
  const bool sound = hone_node_int(io->node, "model_type", least) == HN_SEARCH_WHISPER;
  for (uint32_t i = 10; i < io->n_inputs && !sound; i++) /* decoder_input_ids, logits_processor */
    if (io->input[i]) return hn_op_bad(io->node, error, "input %u is for encoders of sound", i);
  const int64_t open = HONE_DIM_UNKNOWN, texts[3] = {batch, open, open},
                scores[4] = {open, batch, open, open};
  hn_infer_set(io, 0, HONE_DTYPE_I32, 3, texts);
  if (io->n_outputs > 1 && io->output[1]) hn_infer_set(io, 1, HONE_DTYPE_F32, 2, texts);
  if (io->n_outputs > 2 && io->output[2]) hn_infer_set(io, 2, HONE_DTYPE_F32, 4, scores);
  return HONE_OK;
}
