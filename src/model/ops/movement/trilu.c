/* Trilu: the upper or lower triangle of matrices, from diagonal k on; zeros elsewhere. */
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (io->input[0]->rank == 0 || io->input[0]->rank == 1)
    return hn_op_bad(io->node, error, "the input has rank %d", io->input[0]->rank);
  if (hn_has_input(io, 1)) {
    hone_dtype t = io->input[1]->dtype;
    if (t && t != HONE_DTYPE_I64) return hn_op_bad(io->node, error, "k is %s, not i64", hone_dtype_name(t));
    if (hone_desc_known(io->input[1]) && hone_desc_count(io->input[1]) != 1)
      return hn_op_bad(io->node, error, "k is not a scalar");
  }
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  bool upper = hone_node_int(call->node, "upper", 1) != 0;
  int64_t k = hn_call_has(call, 1) ? hn_get_i64(call->input[1], 0) : 0;
  int64_t rows = x->desc.dim[x->desc.rank - 2], cols = x->desc.dim[x->desc.rank - 1], count = hn_count(x);
  size_t size = hone_dtype_size(x->desc.dtype);
  if (k > cols) k = cols; /* beyond either corner nothing changes any more */
  if (k < -rows) k = -rows - 1;
  for (int64_t at = 0, r = 0; at < count; at += cols, r = r + 1 == rows ? 0 : r + 1) {
    int64_t split = r + k + (upper ? 0 : 1); /* first column of the upper part */
    split = split < 0 ? 0 : split > cols ? cols : split;
    int64_t from = upper ? split : 0, to = upper ? cols : split;
    char *row = hn_at_mut(y, at);
    memset(row, 0, (size_t)cols * size);
    if (to > from) memcpy(row + (size_t)from * size, hn_at(x, at + from), (size_t)(to - from) * size);
    if (r == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "upper", .type = HONE_ATTR_INT}, {0}};

HN_OP(trilu) = {HN_OP_HEAD,      .op_type = "Trilu",    .since = 14,           .flags = HONE_OP_MOVE,
                HN_INPUTS(1, 2), HN_OUTPUTS(1, 1),      .types = HN_TYPES_ALL, .attrs = attrs,
                .infer = infer,  .reference = reference};
