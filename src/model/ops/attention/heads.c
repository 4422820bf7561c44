/* Where a token's head lies (heads.h). */
#include "model/ops/attention/heads.h"

hone_status hn_heads_of(const hone_node *node, const char *name, const hone_tensor_desc *d, const char *attr,
                        hn_heads *out, hone_error *error) {
  const int64_t heads = hone_node_int(node, attr, 0), unknown = HONE_DIM_UNKNOWN;
  *out = (hn_heads){.batch = unknown, .heads = unknown, .tokens = unknown, .size = unknown};
  if (d->rank < 0) return HONE_OK;
  if (d->rank == 4) {
    *out = (hn_heads){.batch = d->dim[0], .heads = d->dim[1], .tokens = d->dim[2], .size = d->dim[3]};
    return HONE_OK;
  }
  if (d->rank != 3) return hn_op_bad(node, error, "%s has rank %d, expected 3 or 4", name, (int)d->rank);
  if (heads < 1) return hn_op_bad(node, error, "%s has rank 3, but %s is %lld", name, attr, (long long)heads);
  if (d->dim[2] >= 0 && d->dim[2] % heads)
    return hn_op_bad(node, error, "the %lld values of a token of %s are not %lld heads", (long long)d->dim[2],
                     name, (long long)heads);
  *out = (hn_heads){true, d->dim[0], heads, d->dim[1], d->dim[2] < 0 ? unknown : d->dim[2] / heads};
  return HONE_OK;
}
