/* ArgMax and ArgMin. */
#include "model/ops/search/arg.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"
#include "model/ops/search/order.h"

const hone_attr_desc hn_arg_attrs[] = {{.name = "axis", .type = HONE_ATTR_INT},
                                       {.name = "keepdims", .type = HONE_ATTR_INT},
                                       {.name = "select_last_index", .type = HONE_ATTR_INT, .since = 12},
                                       {0}};

hone_status hn_arg_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_tensor_desc y = {.rank = -1};
  if (x->rank >= 0) {
    int32_t axis;
    hone_status status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
    if (status) return status;
    if (x->dim[axis] == 0) return hn_op_bad(io->node, error, "axis %d has no elements", axis);
    y.rank = 0;
    for (int32_t i = 0; i < x->rank; i++)
      if (i != axis)
        y.dim[y.rank++] = x->dim[i];
      else if (hone_node_int(io->node, "keepdims", 1))
        y.dim[y.rank++] = 1;
  }
  hn_infer_set(io, 0, HONE_DTYPE_I64, y.rank, y.dim);
  return HONE_OK;
}

/* Rows that lie in memory as they are: the best of key[n], the last of equal ones where `last`. */
static int64_t best_of(const int64_t *key, int64_t n, bool largest, bool last) {
  int64_t best = key[0], at = 0;
  for (int64_t k = 1; k < n; k++)
    best = largest ? (key[k] > best ? key[k] : best) : (key[k] < best ? key[k] : best);
  if (last)
    for (at = n - 1; key[at] != best;) at--;
  else
    while (key[at] != best) at++;
  return at;
}

static hone_status rows(hone_call *call, bool largest, bool last, int64_t outer, int64_t n,
                        hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t *y = call->output[0]->data, *key = hn_scratch(call, n, sizeof *key, error);
  if (!key) return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < outer; o++) {
    const hone_status status = o % 64 == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    hn_order_keys(key, x->data, x->desc.dtype, o * n, n);
    y[o] = best_of(key, n, largest, last);
  }
  return HONE_OK;
}

hone_status hn_arg_run(hone_call *call, bool largest, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_tensor_desc *d = &x->desc;
  int64_t *y = call->output[0]->data;
  int32_t axis;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), d->rank, &axis, error);
  if (status) return status;
  bool last = hone_node_int(call->node, "select_last_index", 0) != 0;
  int64_t outer = hn_product(d->dim, 0, axis), n = d->dim[axis],
          inner = hn_product(d->dim, axis + 1, d->rank);
  if (inner == 1) return rows(call, largest, last, outer, n, error);
  int64_t *best = hn_scratch(call, inner, 8, error), *keys = best ? hn_scratch(call, inner, 8, error) : NULL;
  if (!keys) return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < outer; o++) { /* slices along the axis are compared place by place */
    int64_t *at = y + o * inner;
    for (int64_t k = 0; k < n; k++) {
      if ((o * n + k) % 64 == 0) {
        status = hn_call_check(call, error);
        if (status) return status;
      }
      hn_order_keys(k ? keys : best, x->data, d->dtype, (o * n + k) * inner, inner);
      for (int64_t i = 0; i < inner; i++) {
        bool better = k && (largest ? keys[i] > best[i] : keys[i] < best[i]);
        if (!k || better || (last && keys[i] == best[i])) at[i] = k;
        if (better) best[i] = keys[i];
      }
    }
  }
  return HONE_OK;
}
