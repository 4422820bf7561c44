/* GlobalAveragePool: mean of each plane, summed in double. */
#include "model/ops/pooling/pool.h"

static double mean(const hone_node *node, const double *x, int64_t n) {
  double sum = 0;
  (void)node;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum / (double)n;
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_global_pool_run(call, mean, error);
}

HN_OP(global_average_pool) = {HN_OP_HEAD,
                              .op_type = "GlobalAveragePool",
                              .since = 1,
                              HN_INPUTS(1, 1),
                              HN_OUTPUTS(1, 1),
                              .types = HN_TYPES_FLOAT,
                              .infer = hn_global_pool_infer,
                              .cost = hn_global_pool_cost,
                              .reference = reference,
                              .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
                              .codes = HONE_CODES_ONE,
                              .on_codes = "QLinearAveragePool"};
