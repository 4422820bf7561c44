/* Squeeze: drops dimensions of size 1, the given ones or all. */
#include "model/ops/common/axes.h"
#include "model/ops/shape/view.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_list axes;
  hone_status status = hn_list_infer(io, "axes", 13, 1, &axes, error);
  if (status) return status;
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  bool drop[HONE_MAX_RANK] = {false}, sure = x->rank >= 0 && axes.known;
  if (sure && axes.given) {
    status = hn_list_axes(io->node, &axes, x->rank, error);
    if (status) return status;
    for (int32_t i = 0; i < axes.n; i++) {
      drop[axes.at[i]] = true;
      if (x->dim[axes.at[i]] >= 0 && x->dim[axes.at[i]] != 1)
        return hn_op_bad(io->node, error, "dimension %d has size %lld, not 1", (int)axes.at[i],
                         (long long)x->dim[axes.at[i]]);
    }
  }
  for (int32_t i = 0; sure && !axes.given && i < x->rank; i++) {
    drop[i] = x->dim[i] == 1;
    sure = x->dim[i] >= 0;
  }
  if (sure) {
    y.rank = 0;
    for (int32_t i = 0; i < x->rank; i++)
      if (!drop[i]) y.dim[y.rank++] = x->dim[i];
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axes", .type = HONE_ATTR_INTS, .until = 12}, {0}};

HN_VIEW_OP(squeeze, "Squeeze", 2, .attrs = attrs, .infer = infer, .host_inputs = 1u << 1);
