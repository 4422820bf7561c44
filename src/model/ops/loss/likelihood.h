/* The negative log likelihood of labels, as NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss define it:
 * scores [N, C, d...], labels [N, d...], weights [C]. */
#ifndef HN_MODEL_OPS_LIKELIHOOD_H
#define HN_MODEL_OPS_LIKELIHOOD_H

#include "model/ops/common/op.h"

/* Checks inputs 0..2 and the attribute `reduction`; output 0 is [N, d...] or a scalar. */
hone_status hn_likelihood_infer(const hone_infer *io, hone_error *error);
/* log_prob: what stands for input 0's elements, in f64; NULL: they are what is meant. */
hone_status hn_likelihood_run(hone_call *call, const double *log_prob, hone_error *error);
extern const hone_attr_desc hn_likelihood_attrs[];

#endif
