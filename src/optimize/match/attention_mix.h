/* Talking heads: every score becomes a sum of all heads' scores at its place, weighed by a constant matrix of
 * heads x heads, before Softmax or behind it. Exporters spell it as a 1x1 convolution of the planes of
 * scores, or as a product of the heads between two Transposes. */
#ifndef HN_OPTIMIZE_MATCH_ATTENTION_MIX_H
#define HN_OPTIMIZE_MATCH_ATTENTION_MIX_H

#include "optimize/match/modes.h"

enum { HN_MIX_HEADS = 16 }; /* at most */

typedef struct hn_head_mix {
  uint32_t heads;                                           /* 0: there is none */
  float factor[HN_MIX_HEADS * HN_MIX_HEADS + HN_MIX_HEADS]; /* [out][in] of `heads` each, then what is added
                                                               to each head's sum */
} hn_head_mix;

/* The mix that makes v, of *from; its nodes are added to `nodes` if that is not NULL. False: v is made in
 * another way. Whether v is read elsewhere is for the caller to ask. */
bool hn_head_mix_above(const hn_value *v, hn_head_mix *mix, hn_node_list *nodes, hn_value **from);

/* The result of the mix that alone reads v, or NULL. */
hn_value *hn_head_mix_below(const hn_value *v, hn_head_mix *mix, hn_node_list *nodes);

#endif
