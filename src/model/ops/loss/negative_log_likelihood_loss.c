/* NegativeLogLikelihoodLoss: minus the weighted log probability of each label; as it is, summed, or averaged.
 */
#include "model/ops/loss/likelihood.h"

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_likelihood_run(call, NULL, error);
}

HN_OP(negative_log_likelihood_loss) = {HN_OP_HEAD,
                                       .op_type = "NegativeLogLikelihoodLoss",
                                       .since = 12,
                                       HN_INPUTS(2, 3),
                                       HN_OUTPUTS(1, 1),
                                       .types = HN_TYPES_FLOAT,
                                       .attrs = hn_likelihood_attrs,
                                       .infer = hn_likelihood_infer,
                                       .reference = reference};
