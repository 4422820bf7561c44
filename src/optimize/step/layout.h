/* Operators that can work channels-last, and tensors for which the layouts coincide. */
#ifndef HN_OPTIMIZE_STEP_LAYOUT_H
#define HN_OPTIMIZE_STEP_LAYOUT_H

#include <hone/plugin.h>

typedef struct hn_layout_rule {
  const char *anchor;
  bool wants;      /* faster channels-last: its neighbours should be too */
  bool first_only; /* only input 0 is laid out; the others (weights, scales) stay row-major */
} hn_layout_rule;
const hn_layout_rule *hn_layout_rule_of(const char *anchor); /* NULL: row-major only */

/* True when the tensor's bytes are the same in both layouts. */
bool hn_layout_free(const hone_tensor_desc *desc);

#endif
