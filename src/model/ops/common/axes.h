/* Lists of integers that operators took as attributes in early opsets and as inputs later. */
#ifndef HN_MODEL_OPS_AXES_H
#define HN_MODEL_OPS_AXES_H

#include "model/ops/common/op.h"

typedef struct hn_list {
  bool given; /* the attribute or input is there */
  bool known; /* its numbers are: always at run time, and when not given */
  int32_t n;
  int64_t at[2 * HONE_MAX_RANK]; /* Pad has two numbers a dimension */
} hn_list;

/* Reads attribute `attr` when the node's opset is below `moved`, else input `index`. */
hone_status hn_list_infer(const hone_infer *io, const char *attr, int32_t moved, uint32_t index, hn_list *out,
                          hone_error *error);
hone_status hn_list_call(const hone_call *call, const char *attr, int32_t moved, uint32_t index, hn_list *out,
                         hone_error *error);
/* Replaces negative axes; HONE_ERROR_INPUT for axes outside the rank or given twice. */
hone_status hn_list_axes(const hone_node *node, hn_list *axes, int32_t rank, hone_error *error);

/* Input i must hold one number (integer or float, not bool); *value is it, or NULL when it is not known or
 * left out. */
hone_status hn_scalar_infer(const hone_infer *io, uint32_t i, const hone_tensor **value, hone_error *error);

#endif
