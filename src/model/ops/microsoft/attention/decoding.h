/* One step of decoding with caches: what DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention
 * share. Caches are [batch, heads, room, size] as they lie: the order that one GPU kernel gives the keys is
 * not known. */
#ifndef HN_MODEL_OPS_MICROSOFT_DECODING_H
#define HN_MODEL_OPS_MICROSOFT_DECODING_H

#include "model/ops/microsoft/attention/attend.h"

typedef struct hn_decoding {
  hone_tensor now[3];              /* Q, K and V of this step, [batch, heads, 1, size] */
  hone_tensor past[2], present[2]; /* the caches; present may lack data */
  int64_t before;                  /* tokens in the cache */
  const hone_tensor *keep, *added; /* masks, or NULL */
  const hone_tensor *beams;        /* cache_indirection, [inputs, width, room], or NULL */
  int64_t width;                   /* beams of an input */
  hone_tensor *y, *scores;         /* [batch, 1, heads x size]; scores or NULL */
} hn_decoding;

hone_status hn_decoding_run(hone_call *call, const hn_decoding *d, hone_error *error);
/* past_sequence_length (left out: `otherwise`), which must be within [0, room]. */
hone_status hn_decoding_before(hone_call *call, uint32_t input, int64_t room, int64_t otherwise, int64_t *out,
                               hone_error *error);
/* beam_width: 1 where it is left out. */
hone_status hn_decoding_beams(hone_call *call, uint32_t width, uint32_t beams, int64_t batch, int64_t room,
                              hn_decoding *d, hone_error *error);

#endif
