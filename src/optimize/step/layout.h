/* Tensors for which the layouts coincide. */
#ifndef HN_OPTIMIZE_STEP_LAYOUT_H
#define HN_OPTIMIZE_STEP_LAYOUT_H

#include <hone/plugin.h>

/* True when the tensor's bytes are the same in both layouts. */
bool hn_layout_free(const hone_tensor_desc *desc);

#endif
