/* Rules of the padding proof, an operator each: see padding.h. */
#ifndef HN_MODEL_PADDING_RULES_H
#define HN_MODEL_PADDING_RULES_H

#include "model/ir/graph.h"

typedef enum hn_pad_kind {
  HN_PAD_SAME = 0, /* the same shape, and the same elements */
  HN_PAD_ROWS,     /* longer along `axis`, where the first each * size elements are the same */
  HN_PAD_SIZE      /* elements, or a shape, that say how long the dimension is */
} hn_pad_kind;

typedef struct hn_pad {
  hn_pad_kind kind;
  int32_t axis;
  int64_t each; /* elements along the axis for one of the dimension */
} hn_pad;

/* A node in both models, with what is known of its inputs. */
typedef struct hn_pad_node {
  const hone_node *small, *large;
  const hn_pad *in; /* [n_in]; of inputs left out: HN_PAD_SAME */
  const hone_tensor *const *small_value,
      *const *large_value; /* [n_in] small values that are known beforehand, or NULL */
  int64_t wanted, size;
  bool parts; /* every part is asked for, and holds what an input may: nothing is padding */
} hn_pad_node;

/* Where output 0 has the dimension (others follow: hn_pad_outputs), or a reason. */
bool hn_pad_rule(const hn_pad_node *n, hn_pad *out, hone_reason *why);

/* The one axis along which two descriptors differ as the dimension does; false: there is none, or several, or
 * shapes are not known. */
bool hn_pad_axis(const hone_tensor_desc *small, const hone_tensor_desc *large, int64_t wanted, int64_t size,
                 hn_pad *out);

#endif
