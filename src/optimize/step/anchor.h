/* What lowering, tactics and judges ask about anchors: facts of the operator's descriptor, or, of steps that
 * are no ONNX operator, of the one table here. */
#ifndef HN_OPTIMIZE_STEP_ANCHOR_H
#define HN_OPTIMIZE_STEP_ANCHOR_H

#include <hone/plugin.h>

typedef struct hn_anchor {
  hone_product product; /* what it multiplies as; NONE for what is made of several operators */
  uint32_t layouts;     /* HONE_LAST bits */
  bool epilogue;        /* takes one: products, and what is like them */
  uint32_t like_output; /* bit i: input i, too, lies as the output does */
  bool to_codes;        /* quantises what its epilogue makes, which lowering gave it for good */
  bool channels;        /* its output's channels are dimension 1, as of convolutions; else the last one */
} hn_anchor;

/* node: the step's, or NULL. An anchor that is another operator than the node (a product within a quantised
 * step) is looked up among the model's operators. */
hn_anchor hn_anchor_named(const char *anchor, const hone_node *node);
static inline hn_anchor hn_anchor_of_step(const hone_step *s) { return hn_anchor_named(s->anchor, s->node); }

#endif
