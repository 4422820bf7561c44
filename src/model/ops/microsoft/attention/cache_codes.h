/* Caches of keys and values as codes: i8, two codes of 4 bits (8 is 0) in a byte, the first one low, or
 * f8e4m3fn, where what is too large becomes the largest. One scale for all, or one for each channel of each
 * head. */
#ifndef HN_MODEL_OPS_MICROSOFT_CACHE_CODES_H
#define HN_MODEL_OPS_MICROSOFT_CACHE_CODES_H

#include "model/ops/microsoft/common/inner.h"

typedef struct hn_cache_codes {
  int64_t bits;             /* 8 or 4; 0: the cache has no codes */
  hone_dtype type;          /* of the cache's elements */
  const hone_tensor *scale; /* of a run */
} hn_cache_codes;

/* What the attribute `name` and the cache say; HONE_ERROR_INPUT where they contradict each other. past NULL:
 * there is none. */
hone_status hn_cache_codes_of(const hone_node *node, const char *name, const hone_tensor_desc *past,
                              hn_cache_codes *out, hone_error *error);
/* Whether input `scale` has one number, or one for each of `channels` values. */
hone_status hn_cache_codes_check(const hone_infer *io, uint32_t scale, const hn_cache_codes *codes,
                                 int64_t channels, hone_error *error);
/* x, [1, heads, tokens, size], as codes, [1, heads, tokens, bytes]. */
bool hn_cache_encode(hone_call *call, const hn_cache_codes *codes, const hone_tensor *x, hone_tensor *out,
                     hone_error *error);
/* The other way, as `dtype`; the first `zeros` tokens of each head become 0. */
bool hn_cache_decode(hone_call *call, const hn_cache_codes *codes, const hone_tensor *x, int64_t zeros,
                     hone_dtype dtype, hone_tensor *out, hone_error *error);

#endif
