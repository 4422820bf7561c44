/* GlobalMaxPool: maximum of each plane; NaN wins. */
#include "model/ops/pooling/pool.h"

static double maximum(const hone_node *node, const double *x, int64_t n) {
  double best = -INFINITY;
  (void)node;
  for (int64_t i = 0; i < n; i++)
    if (x[i] > best || isnan(x[i])) best = x[i];
  return best;
}

/* A maximum of no elements is not defined. */
static hone_status infer(const hone_infer *io, hone_error *error) {
  for (int32_t d = 2; d < io->input[0]->rank; d++)
    if (io->input[0]->dim[d] == 0)
      return hn_op_bad(io->node, error, "spatial dimension %d is empty", (int)d - 2);
  return hn_global_pool_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_global_pool_run(call, maximum, error);
}

HN_OP(global_max_pool) = {HN_OP_HEAD,
                          .op_type = "GlobalMaxPool",
                          .since = 1,
                          HN_INPUTS(1, 1),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FLOAT,
                          .infer = infer,
                          .cost = hn_global_pool_cost,
                          .reference = reference,
                          .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
