/* Flatten: two dimensions, those before `axis` multiplied and those from it on. */
#include "model/ops/shape/view.h"

/* The product, a lone unknown dimension kept by name. */
static int64_t product(const int64_t *dim, int32_t from, int32_t to) {
  int64_t n = hn_product(dim, from, to), seen = 1;
  if (n >= 0) return n;
  for (int32_t i = from; i < to; i++) {
    if (dim[i] == 1) continue;
    if (seen != 1) return HONE_DIM_UNKNOWN;
    seen = dim[i];
  }
  return seen;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t axis = hone_node_int(io->node, "axis", 1), dim[2] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if (x->rank >= 0) {
    if (axis < -x->rank || axis > x->rank)
      return hn_op_bad(io->node, error, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
    if (axis < 0) axis += x->rank;
    dim[0] = product(x->dim, 0, (int32_t)axis);
    dim[1] = product(x->dim, (int32_t)axis, x->rank);
  }
  hn_infer_set(io, 0, x->dtype, 2, dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_VIEW_OP(flatten, "Flatten", 1, .attrs = attrs, .infer = infer);
