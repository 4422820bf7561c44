/* What embeddings with a normalisation share, of floats and of codes. */
#ifndef HN_OPS_MICROSOFT_EMBED_H
#define HN_OPS_MICROSOFT_EMBED_H

#include "model/ops/microsoft/common/inner.h"

/* Output `index`, where it is wanted: the words of each text that input `mask` keeps; 0 without a mask. */
static inline void hn_count_mask(hone_call *call, uint32_t mask, uint32_t index, int64_t batch,
                                 int64_t words) {
  hone_tensor *out = call->n_outputs > index ? call->output[index] : NULL;
  for (int64_t b = 0; out && b < batch; b++) {
    int32_t kept = 0;
    for (int64_t i = 0; i < words && hn_call_has(call, mask); i++)
      kept += hn_get_i64(call->input[mask], b * words + i) == 1;
    ((int32_t *)out->data)[b] = kept;
  }
}

#endif
