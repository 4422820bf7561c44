/* TopK: the k largest or smallest elements along an axis, in order, with their indices; of equal ones the
 * first wins. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"
#include "model/ops/search/best.h"
#include "model/ops/search/order.h"

/* k from the attribute (opset 1) or input 1; -1: not known yet. */
static hone_status k_of(const hone_node *node, const hone_tensor *k, int64_t dim, int64_t *out,
                        hone_error *error) {
  *out = -1;
  if (hone_node_opset(node) < 10)
    *out = hone_node_int(node, "k", 0);
  else if (k) {
    if (k->desc.dtype != HONE_DTYPE_I64 || hn_count(k) != 1)
      return hn_op_bad(node, error, "K is not one i64");
    *out = hn_get_i64(k, 0);
  } else
    return HONE_OK;
  if (*out < 0 || (dim >= 0 && *out > dim))
    return hn_op_bad(node, error, "K is %lld, the axis has %lld elements", (long long)*out, (long long)dim);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  int32_t axis;
  if (hone_node_opset(io->node) >= 10 && !hn_has_input(io, 1))
    return hn_op_bad(io->node, error, "K is missing");
  if (y.rank >= 0) {
    hone_status status = hn_axis(hone_node_int(io->node, "axis", -1), y.rank, &axis, error);
    if (!status)
      status = k_of(io->node, io->n_inputs > 1 ? io->value[1] : NULL, y.dim[axis], &y.dim[axis], error);
    if (status) return status;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  hn_infer_set(io, 1, HONE_DTYPE_I64, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_tensor_desc *d = &x->desc;
  int32_t axis;
  int64_t k;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", -1), d->rank, &axis, error);
  if (!status) status = k_of(call->node, call->n_inputs > 1 ? call->input[1] : NULL, d->dim[axis], &k, error);
  if (status || hn_count(x) == 0 || k == 0) return status;
  bool largest = hone_node_int(call->node, "largest", 1) != 0;
  int64_t outer = hn_product(d->dim, 0, axis), n = d->dim[axis],
          inner = hn_product(d->dim, axis + 1, d->rank);
  size_t size = hone_dtype_size(d->dtype);
  char *row = hn_scratch(call, inner > 1 ? n : 0, size, error);
  int64_t *key = row ? hn_scratch(call, n, 8, error) : NULL;
  int64_t *index = key ? hn_scratch(call, k, 8, error) : NULL,
          *spare = index ? hn_scratch(call, hn_best_spare(n, k), 8, error) : NULL;
  if (!spare) return HONE_ERROR_MEMORY;
  for (int64_t line = 0; line < outer * inner; line++) {
    int64_t o = line / inner, i = line % inner;
    const int64_t one = 1;
    status = hn_call_check(call, error);
    if (status) return status;
    const char *from = hn_at(x, o * n * inner + i);
    if (inner > 1) hn_move(row, &one, from, &inner, &n, 1, size), from = row;
    hn_order_keys(key, from, d->dtype, 0, n);
    for (int64_t j = 0; !largest && j < n; j++) key[j] = ~key[j]; /* the order turned around */
    hn_best(index, key, n, k, spare);
    for (int64_t j = 0; j < k; j++) {
      int64_t at = (o * k + j) * inner + i;
      if (call->output[0]) memcpy(hn_at_mut(call->output[0], at), from + (size_t)index[j] * size, size);
      if (call->n_outputs > 1 && call->output[1]) ((int64_t *)call->output[1]->data)[at] = index[j];
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT},
                                       {.name = "k", .type = HONE_ATTR_INT, .required = true, .until = 9},
                                       {.name = "largest", .type = HONE_ATTR_INT, .since = 11},
                                       {.name = "sorted", .type = HONE_ATTR_INT, .since = 11},
                                       {0}};

HN_OP(top_k) = {HN_OP_HEAD,
                .op_type = "TopK",
                .since = 1,
                HN_INPUTS(1, 2),
                HN_OUTPUTS(1, 2),
                .types = HN_TYPES_NUMBER,
                .attrs = attrs,
                .infer = infer,
                .reference = reference,
                .host_inputs = 1u << 1};
