/* Transpose: dimensions in another order, reversed by default. */
#include "model/ops/common/move.h"

static hone_status read_perm(const hone_node *node, int32_t rank, int32_t *perm, hone_error *error) {
  size_t n;
  const int64_t *p = hone_node_ints(node, "perm", &n);
  bool seen[HONE_MAX_RANK] = {false};
  if (n && n != (size_t)rank) return hn_op_bad(node, error, "perm has %zu entries for rank %d", n, rank);
  for (int32_t i = 0; i < rank; i++) {
    int64_t d = n ? p[i] : rank - 1 - i;
    if (d < 0 || d >= rank || seen[d])
      return hn_op_bad(node, error, "perm is no permutation of %d dimensions", rank);
    seen[d] = true;
    perm[i] = (int32_t)d;
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int32_t perm[HONE_MAX_RANK];
  int64_t dim[HONE_MAX_RANK];
  if (x->rank >= 0) {
    hone_status status = read_perm(io->node, x->rank, perm, error);
    if (status) return status;
    for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[perm[i]];
  }
  hn_infer_set(io, 0, x->dtype, x->rank, dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  int32_t perm[HONE_MAX_RANK], rank = x->desc.rank;
  int64_t own[HONE_MAX_RANK], from[HONE_MAX_RANK], to[HONE_MAX_RANK];
  hone_status status = read_perm(call->node, rank, perm, error);
  if (status || hn_count(y) == 0) return status;
  hn_strides(x->desc.dim, rank, own);
  hn_strides(y->desc.dim, rank, to);
  for (int32_t i = 0; i < rank; i++) from[i] = own[perm[i]];
  hn_move(y->data, to, x->data, from, y->desc.dim, rank, hone_dtype_size(x->desc.dtype));
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "perm", .type = HONE_ATTR_INTS}, {0}};

HN_OP(transpose) = {HN_OP_HEAD,
                    .op_type = "Transpose",
                    .since = 1,
                    .flags = HONE_OP_MOVE,
                    HN_INPUTS(1, 1),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_ALL | HN_TYPES_NARROW,
                    .attrs = attrs,
                    .infer = infer,
                    .reference = reference};
