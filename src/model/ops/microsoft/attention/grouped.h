/* What attention with several heads of Q for each of K and V shares: its sizes, caches in which each input of
 * a batch has its own length, and turning by positions. */
#ifndef HN_MODEL_OPS_MICROSOFT_GROUPED_H
#define HN_MODEL_OPS_MICROSOFT_GROUPED_H

#include "model/ops/microsoft/attention/attend.h"

typedef struct hn_grouped {
  int64_t batch, heads, kv_heads, queries, size, room; /* room: tokens of the cache that is given */
  bool packed;                                         /* Q, K and V in one */
} hn_grouped;

/* Of attributes and descriptors; k NULL: packed, past NULL: there is no cache. Unknown numbers are below 0.
 */
hone_status hn_grouped_read(const hone_node *node, const hone_tensor_desc *q, const hone_tensor_desc *k,
                            const hone_tensor_desc *past, hn_grouped *out, hone_error *error);
/* Q, K and V of the call's first three inputs as [batch, heads, tokens, size]. */
hone_status hn_grouped_split(hone_call *call, const hn_grouped *z, hone_tensor part[3], hone_error *error);
/* x, [batch, heads, tokens, size], turned by positions [batch, tokens]. */
hone_status hn_grouped_turn(hone_call *call, const hn_grouped *z, const hone_tensor *cos,
                            const hone_tensor *sin, const hone_tensor *positions, hone_tensor *x,
                            hone_error *error);
/* One batch entry of a tensor [batch, ...]. */
hone_tensor hn_grouped_entry(const hone_tensor *t, int64_t b);
/* The tokens of input b that are cached, behind `zeros` tokens of zeros: [1, heads, zeros + old, size]. */
bool hn_grouped_cached(hone_call *call, const hn_grouped *z, const hone_tensor *past, hone_dtype type,
                       int64_t b, int64_t zeros, int64_t old, hone_tensor *out, hone_error *error);
/* What is handed on of input b: the cache, and the new tokens behind the `old` ones. */
void hn_grouped_hand_on(const hn_grouped *z, const hone_tensor *past, const hone_tensor *now, int64_t b,
                        int64_t old, const hone_tensor *present);

#endif
