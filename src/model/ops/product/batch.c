/* Products of stacks of matrices. */
#include "model/ops/product/batch.h"
#include "model/ops/common/move.h"

hone_status hn_batch_infer(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                           int32_t *rank, int64_t *dims, hone_error *error) {
  *rank = -1;
  if (a->rank == 0 || b->rank == 0) return hn_op_bad(node, error, "an operand is a scalar");
  if (a->rank < 0 || b->rank < 0) return HONE_OK;
  int64_t ka = a->dim[a->rank - 1], kb = b->dim[b->rank == 1 ? 0 : b->rank - 2];
  if (ka >= 0 && kb >= 0 && ka != kb) {
    char x[96], y[96];
    return hn_op_bad(node, error, "inner dimensions of %s and %s differ", hone_desc_format(a, x, sizeof x),
                     hone_desc_format(b, y, sizeof y));
  }
  hone_tensor_desc stack = *a, other = *b;
  stack.rank = a->rank < 2 ? 0 : a->rank - 2;
  other.rank = b->rank < 2 ? 0 : b->rank - 2;
  hone_status status = hn_broadcast_dims(&stack, &other, error);
  if (status) return status;
  *rank = stack.rank;
  for (int32_t i = 0; i < stack.rank; i++) dims[i] = stack.dim[i];
  if (a->rank > 1) dims[(*rank)++] = a->dim[a->rank - 2];
  if (b->rank > 1) dims[(*rank)++] = b->dim[b->rank - 1];
  return HONE_OK;
}

void hn_batch_make(hn_batch *t, const hone_tensor_desc *a, const hone_tensor_desc *b) {
  *t = (hn_batch){.m = a->rank > 1 ? a->dim[a->rank - 2] : 1,
                  .n = b->rank > 1 ? b->dim[b->rank - 1] : 1,
                  .k = a->dim[a->rank - 1],
                  .count = 1};
  int64_t sa[HONE_MAX_RANK], sb[HONE_MAX_RANK];
  int32_t ra = a->rank < 2 ? 0 : a->rank - 2, rb = b->rank < 2 ? 0 : b->rank - 2;
  hn_strides(a->dim, a->rank, sa);
  hn_strides(b->dim, b->rank, sb);
  t->rank = ra > rb ? ra : rb;
  for (int32_t i = 0; i < t->rank; i++) {
    int32_t ia = i - (t->rank - ra), ib = i - (t->rank - rb);
    int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
    t->dim[i] = da == 1 ? db : da;
    t->a[i] = da == 1 ? 0 : sa[ia];
    t->b[i] = db == 1 ? 0 : sb[ib];
  }
  t->count = hn_product(t->dim, 0, t->rank);
}

void hn_batch_at(const hn_batch *t, int64_t i, int64_t *a, int64_t *b) {
  *a = *b = 0;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    *a += i % t->dim[d] * t->a[d];
    *b += i % t->dim[d] * t->b[d];
    i /= t->dim[d];
  }
}

void hn_batch_cost(const hone_infer *io, uint32_t a, uint32_t b, hone_cost *cost) {
  *cost = (hone_cost){.bytes = -1};
  if (!hone_desc_known(io->input[a]) || !hone_desc_known(io->input[b])) return;
  hn_batch t;
  hn_batch_make(&t, io->input[a], io->input[b]);
  cost->macs = (double)t.count * (double)t.m * (double)t.n * (double)t.k;
  cost->flops = 2 * cost->macs;
}
