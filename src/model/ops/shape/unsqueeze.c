/* Unsqueeze: inserts dimensions of size 1; axes count in the output. */
#include "model/ops/common/axes.h"
#include "model/ops/shape/view.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_list axes;
  hone_status status = hn_list_infer(io, "axes", 13, 1, &axes, error);
  if (status) return status;
  if (!axes.given) return hn_op_bad(io->node, error, "axes are missing");
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  if (x->rank >= 0 && axes.known) {
    if (x->rank + axes.n > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %d", x->rank + axes.n);
    y.rank = x->rank + axes.n;
    status = hn_list_axes(io->node, &axes, y.rank, error);
    if (status) return status;
    for (int32_t i = 0; i < axes.n; i++) y.dim[axes.at[i]] = 1;
    for (int32_t i = 0, j = 0; i < y.rank; i++) {
      bool inserted = y.dim[i] == 1; /* the others are still 0 */
      if (!inserted) y.dim[i] = x->dim[j++];
    }
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "axes", .type = HONE_ATTR_INTS, .required = true, .until = 12}, {0}};

HN_VIEW_OP(unsqueeze, "Unsqueeze", 2, .attrs = attrs, .infer = infer, .host_inputs = 1u << 1);
