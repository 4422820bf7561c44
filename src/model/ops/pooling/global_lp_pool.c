/* GlobalLpPool: (sum of |x|^p)^(1/p) of each plane. */
#include "model/ops/pooling/pool.h"

static double norm(const hone_node *node, const double *x, int64_t n) {
  double sum = 0, p = (double)hn_lp_exponent(node);
  for (int64_t i = 0; i < n; i++) sum += hn_lp_term(x[i], p);
  return hn_lp_root(sum, p);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_status s = hn_lp_check(io->node, error);
  return s ? s : hn_global_pool_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_global_pool_run(call, norm, error);
}

static const hone_attr_desc attrs[] = {HN_LP_ATTRS, {0}};

HN_OP(global_lp_pool) = {HN_OP_HEAD,
                         .op_type = "GlobalLpPool",
                         .since = 1,
                         HN_INPUTS(1, 1),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_FLOAT,
                         .attrs = attrs,
                         .infer = infer,
                         .cost = hn_global_pool_cost,
                         .reference = reference};
