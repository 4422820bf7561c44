/* LpPool: (sum of |x|^p over each window)^(1/p). */
#include "model/ops/pooling/pool.h"

static double window_norm(void *arg, const hn_pool_tile *t, const double *x, int64_t at) {
  const hn_window *w = t->window;
  double sum = 0, p = *(const double *)arg;
  (void)at;
  for (int64_t i = 0, d = t->first[0]; i < t->count[0]; i++, d += w->dilation[0])
    for (int64_t j = 0, h = t->first[1]; j < t->count[1]; j++, h += w->dilation[1])
      for (int64_t k = 0, c = t->first[2]; k < t->count[2]; k++, c += w->dilation[2])
        sum += hn_lp_term(x[(d * w->in[1] + h) * w->in[2] + c], p);
  return hn_lp_root(sum, p);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_status s = hn_lp_check(io->node, error);
  return s ? s : hn_pool_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  double p = (double)hn_lp_exponent(call->node);
  return hn_pool_run(call, window_norm, &p, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       HN_LP_ATTRS,
                                       {"ceil_mode", HONE_ATTR_INT, false, 18, 0},
                                       {"dilations", HONE_ATTR_INTS, false, 18, 0},
                                       {0}};

HN_OP(lp_pool) = {HN_OP_HEAD,           .op_type = "LpPool",     .since = 1,     HN_INPUTS(1, 1),
                  HN_OUTPUTS(1, 1),     .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
                  .cost = hn_pool_cost, .reference = reference};
