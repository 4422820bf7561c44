/* ConcatFromSequence: what is in a sequence behind each other along one axis, or stacked along a new one. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  const int64_t stacked = hone_node_int(io->node, "new_axis", 0);
  if (status == HONE_OK && stacked != 0 && stacked != 1)
    status = hn_op_bad(io->node, error, "new_axis is %lld", (long long)stacked);
  if (status == HONE_OK) hn_infer_set(io, 0, hone_dtype_element(io->input[0]->dtype), -1, NULL);
  return status;
}

/* The shape of the result; *axis is where the parts meet. */
static hone_status shape(hone_call *call, const hone_items *x, int32_t *axis, hone_tensor_desc *y,
                         hone_error *error) {
  const bool stacked = hone_node_int(call->node, "new_axis", 0);
  const hone_tensor_desc *first = &x->item[0]->desc;
  const int32_t rank = first->rank + stacked;
  int64_t dim[HONE_MAX_RANK], length = 0;
  if (rank > HONE_MAX_RANK) return hn_op_refuse(call->node, error, "a result of rank %d", (int)rank);
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), rank, axis, error);
  if (status != HONE_OK) return status;
  for (size_t i = 0; i < x->count; i++) {
    const hone_tensor_desc *d = &x->item[i]->desc;
    bool fits = d->rank == first->rank;
    for (int32_t k = 0; k < d->rank && fits; k++)
      fits = d->dim[k] == first->dim[k] || (!stacked && k == *axis);
    if (!fits || __builtin_add_overflow(length, stacked ? 1 : d->dim[*axis], &length))
      return hn_op_bad(call->node, error, "tensor %zu of the sequence does not fit the first", i);
  }
  for (int32_t k = 0, from = 0; k < rank; k++) {
    dim[k] = k == *axis ? length : first->dim[from];
    from += k != *axis || !stacked;
  }
  *y = hone_desc(first->dtype, rank, dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *x = hn_sequence(call, 0, error);
  hone_tensor_desc y;
  int32_t axis;
  if (!x) return HONE_ERROR_INPUT;
  if (!x->count) return hn_op_bad(call->node, error, "the sequence is empty");
  hone_status status = shape(call, x, &axis, &y, error);
  if (status == HONE_OK) status = call->alloc_output(call, 0, &y, error);
  if (status != HONE_OK || hone_desc_count(&y) == 0) return status;
  const int64_t outer = hn_product(y.dim, 0, axis);
  const size_t row = (size_t)hone_desc_bytes(&y) / (size_t)outer;
  char *to = call->output[0]->data;
  for (size_t i = 0; i < x->count && status == HONE_OK; i++) {
    const size_t part = (size_t)hone_desc_bytes(&x->item[i]->desc) / (size_t)outer;
    for (int64_t o = 0; o < outer && part; o++)
      memcpy(to + (size_t)o * row, (const char *)x->item[i]->data + (size_t)o * part, part);
    to += part;
    status = hn_call_check(call, error);
  }
  return status;
}

static const hone_attr_desc attrs[] = {
    {"axis", HONE_ATTR_INT, true, 0, 0}, {.name = "new_axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(concat_from_sequence) = {HN_OP_HEAD,
                               .op_type = "ConcatFromSequence",
                               .since = 11,
                               .flags = HONE_OP_MOVE | HONE_OP_ITEMS | HONE_OP_DATA_DEPENDENT,
                               HN_INPUTS(1, 1),
                               HN_OUTPUTS(1, 1),
                               .attrs = attrs,
                               .infer = infer,
                               .reference = reference};
