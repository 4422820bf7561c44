/* Tokens of several inputs one after the other, without padding: what PackedAttention and
 * PackedMultiHeadAttention share. */
#ifndef HN_MODEL_OPS_MICROSOFT_PACKED_H
#define HN_MODEL_OPS_MICROSOFT_PACKED_H

#include "model/ops/microsoft/attention/attend.h"

typedef struct hn_packed {
  hn_tokens part[3];                 /* Q, K and V, heads within a token */
  const hone_tensor *bias;           /* of Q, K and V, or NULL */
  int64_t tokens, heads, size, wide; /* wide: a head of V */
  const hone_tensor *offsets, *ends; /* token_offset, [inputs, longest]; cumulative_sequence_length */
  const hone_tensor *added;          /* attention_bias, or NULL */
} hn_packed;

/* Inputs `offsets`, `offsets` + 1 and `offsets` + 2 (token_offset, cumulative_sequence_length and
 * attention_bias), as far as they are known. */
hone_status hn_packed_check(const hone_infer *io, uint32_t offsets, hone_error *error);
/* Attention of each input among its own tokens; y: [tokens, heads x wide]. */
hone_status hn_packed_run(hone_call *call, const hn_packed *p, hone_tensor *y, hone_error *error);

#endif
