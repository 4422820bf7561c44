/* SwiGLU: the gate A / (1 + exp(-alpha A)) times B, of one shape. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  hone_tensor_desc y = *a;
  const hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (s) return s;
  if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
    return hn_op_bad(io->node, error, "A has rank %d and B %d", (int)a->rank, (int)b->rank);
  for (int32_t i = 0; i < a->rank && b->rank >= 0; i++) {
    if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i])
      return hn_op_bad(io->node, error, "dimension %d of A is %lld, of B %lld", (int)i, (long long)a->dim[i],
                       (long long)b->dim[i]);
    if (a->dim[i] < 0) y.dim[i] = b->dim[i];
  }
  if (a->rank < 0) y = *b;
  hn_infer_set(io, 0, a->dtype ? a->dtype : b->dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  enum { RUN = 512 };
  const double alpha = hone_node_float(call->node, "alpha", 1);
  for (int64_t i = 0, n = hn_count(call->output[0]); i < n; i += RUN) {
    double a[RUN], b[RUN];
    const int64_t m = hn_min(RUN, n - i);
    if (i % HN_STOP_EVERY == 0) {
      const hone_status s = hn_call_check(call, error);
      if (s) return s;
    }
    hn_load_f64(a, call->input[0], i, m);
    hn_load_f64(b, call->input[1], i, m);
    for (int64_t k = 0; k < m; k++) a[k] = a[k] / (1 + exp(-alpha * a[k])) * b[k];
    hn_store_f64(call->output[0], i, a, m);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 5 * hn_known_count(io->output[0]));
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(swiglu) = {HN_OP_HEAD,
                 .op_type = "SwiGLU",
                 .since = 28,
                 .flags = HONE_OP_POINTWISE,
                 HN_INPUTS(2, 2),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_FLOAT,
                 .attrs = attrs,
                 .infer = infer,
                 .cost = cost,
                 .reference = reference};
