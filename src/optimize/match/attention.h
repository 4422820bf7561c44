/* Attention as exporters spell it out, found in a graph.
 *
 *   scores = MatMul(q, k)                     any number of batch dimensions
 *   any of: Mul or Div by a constant, Add of a mask, Where with a mask, Reshape of the batch dimensions
 *   once, and below all masks: Tanh, which bounds scores (Div by a cap, Tanh, Mul by it)
 *   MatMul(Softmax(scores), v)                then perhaps Reshape and Transpose
 *
 * Heads may be mixed with each other before Softmax and behind it (attention_mix.h).
 * Between Softmax and the product may stand Where(IsNaN(p), 0, p), as PyTorch spells attention whose rows may
 * see no key.
 *
 * Operands are traced through Transpose, Reshape, Split and the like to where they lie (modes.h). */
#ifndef HN_OPTIMIZE_MATCH_ATTENTION_H
#define HN_OPTIMIZE_MATCH_ATTENTION_H

#include "optimize/match/attention_mix.h"
#include "optimize/match/match.h"
#include "optimize/match/modes.h"

enum { HN_ATTENTION_MASK = 3, HN_ATTENTION_INPUTS = 6 }; /* q, k, v, and up to three masks */

typedef struct hn_attention_hit {
  hone_node *root;    /* the last node */
  hn_node_list nodes; /* those that nobody else needs, root last */
  uint32_t n_in;
  hn_strided in[HN_ATTENTION_INPUTS]; /* [batch..., rows, columns]; k with its rows as keys */
  hone_tensor_desc out;               /* root's output as [batch..., rows, columns] */
  float scale;
  float cap;                              /* not 0: the scores are cap tanh(scale q k) before masks */
  bool nan_to_zero;                       /* weights of a row that are no numbers are 0 instead */
  int64_t mask_kind[HN_ATTENTION_INPUTS]; /* of input 3 + i: 0 added, 1 keeps, 2 drops where it is true */
  float mask_value[HN_ATTENTION_INPUTS];  /* factor of what is added, or what takes the place of a score */
  /* Of the scores, and of what Softmax makes of them; heads 0: not mixed. Heads are the innermost of the
   * batch dimensions, whatever these are divided into. */
  hn_head_mix before, behind;
  uint32_t masks_before; /* so many masks come before the first mix */
} hn_attention_hit;

/* The attention around a Softmax node. NEAR: *why says what does not fit. */
hn_match_result hn_attention_match(hone_node *softmax, hn_attention_hit *hit, hone_reason *why);

/* Is n a node that moves elements on their way into an attention or out of it, which reads and writes them
 * where they lie? */
bool hn_attention_moves(hone_node *n);
/* Whether a mask is a constant that says nothing but that row r sees the keys from r + band[0] to before
 * r + band[1] (as causal masks and windows do); every row sees one. *finite: what hides the others is in
 * places a finite number, which hides only where the row sees something under all its masks. */
bool hn_attention_band(const hn_attention_hit *hit, uint32_t mask, int64_t band[2], bool *finite);

#endif
