/* BiasSoftmax: Softmax(data + bias) over the dimensions from `axis` on, taken as one. bias lacks dimensions
 * of data before the axis: the inner ones of them (is_inner_broadcast) or the outer ones. */
#include "model/ops/microsoft/common/inner.h"

enum { DATA, BIAS };

static hone_status axis_of(const hone_node *node, int32_t rank, int32_t *axis, hone_error *error) {
  const int64_t a = hone_node_int(node, "axis", 1);
  if (a < -rank || a > rank)
    return hn_op_bad(node, error, "axis is %lld of rank %d", (long long)a, (int)rank);
  *axis = (int32_t)(a < 0 ? a + rank : a);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[DATA], *b = io->input[BIAS];
  hone_status s = hn_infer_same_dtype(io, DATA, BIAS, error);
  if (s) return s;
  if (hone_desc_known(x) && hone_desc_known(b)) {
    int32_t axis = 0;
    if ((s = axis_of(io->node, x->rank, &axis, error))) return s;
    const int64_t row = hn_dims(x, axis, x->rank), rows = hn_dims(x, 0, axis), n = hone_desc_count(b);
    if (row > 0 && (n % row || n == 0 || rows % (n / row)))
      return hn_op_bad(io->node, error, "the bias does not fit rows of %lld", (long long)row);
  }
  return hn_infer_same(io, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 5 * hn_known_count(io->input[DATA]));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[DATA];
  int32_t axis = 0;
  hone_status s = axis_of(call->node, x->desc.rank, &axis, error);
  if (s) return s;
  const bool inner = hone_node_int(call->node, "is_inner_broadcast", 0) != 0;
  const int64_t row = hn_dims(&x->desc, axis, x->desc.rank), rows = row ? hn_count(x) / row : 0,
                given = row ? hn_count(call->input[BIAS]) / row : 0;
  const double *bias = hn_all_f64(call, call->input[BIAS], error);
  double *v = bias ? hn_scratch(call, row, sizeof *v, error) : NULL;
  if (!v) return HONE_ERROR_MEMORY;
  if (rows && given < 1) return hn_op_bad(call->node, error, "the bias is empty");
  for (int64_t r = 0; r < rows; r++) {
    const double *b = bias + (inner ? r / (rows / given) : r % given) * row;
    double most = -INFINITY, sum = 0;
    hn_load_f64(v, x, r * row, row);
    for (int64_t i = 0; i < row; i++) v[i] += b[i], most = v[i] > most ? v[i] : most;
    for (int64_t i = 0; i < row; i++) v[i] = exp(v[i] - most), sum += v[i];
    for (int64_t i = 0; i < row; i++) v[i] /= sum;
    hn_store_f64(call->output[0], r * row, v, row);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "axis", .type = HONE_ATTR_INT},
    {.name = "is_inner_broadcast", .type = HONE_ATTR_INT, .required = true},
    {0}};

HN_OP(bias_softmax) = {HONE_DESC_HEAD(hone_op_desc),
                       .domain = "com.microsoft",
                       .op_type = "BiasSoftmax",
                       .since = 1,
                       HN_INPUTS(2, 2),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_FLOAT,
                       .attrs = attrs,
                       .infer = infer,
                       .cost = cost,
                       .reference = reference};
