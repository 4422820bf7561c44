/* Turning by positions as exporters spell it out, found in a graph.
 *
 *   x cos + rotated(x) sin       cos and sin broadcast to x
 *
 * where rotated(x) is Concat(-b, a) of the halves a and b of x's last dimension, or -b and a in turn of its
 * even and odd places (Concat in a dimension of its own, then Reshape). x may lie in a part of another value
 * (modes.h). */
#ifndef HN_OPTIMIZE_MATCH_ROTARY_H
#define HN_OPTIMIZE_MATCH_ROTARY_H

#include "optimize/match/match.h"
#include "optimize/match/modes.h"

enum { HN_ROTARY_X, HN_ROTARY_COS, HN_ROTARY_SIN, HN_ROTARY_INPUTS };

typedef struct hn_rotary_hit {
  hone_node *root;                 /* the sum */
  hn_node_list nodes;              /* those that nobody else needs, root among them */
  hn_strided in[HN_ROTARY_INPUTS]; /* of the result's dimensions; without gaps along the last one */
  bool neighbours;                 /* pairs are neighbours, not half of a row apart */
} hn_rotary_hit;

/* What ends at an Add node. */
hn_match_result hn_rotary_match(hone_node *add, hn_rotary_hit *hit);

#endif
