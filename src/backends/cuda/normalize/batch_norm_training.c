/* BatchNormalization in training: the batch's own statistics, and the running ones. */
#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/step.h"
#include "base/dims.h"
#include "base/error.h"
#include "model/ops/normalize/training.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (!hn_batch_norm_trains(s->node)) return hn_refuse(why, "only training");
  if (hn_cuda_gives(s, 3) || hn_cuda_gives(s, 4)) return hn_refuse(why, "no statistics of the batch alone");
  if (x->rank < 1 || !hone_dtype_is_float(x->dtype) || !hn_cuda_gives(s, 0))
    return hn_refuse(why, "no channels of floating-point numbers");
  p->text = "statistics";
  hn_cuda_direct_define(p, "HN_TRAINING", 1);
  p->args.p[0] = x->dim[0], p->args.p[1] = x->rank > 1 ? x->dim[1] : 1, p->args.p[2] = hn_dims(x, 2, x->rank);
  p->args.f[0] = (double)hone_node_float(s->node, "epsilon", 1e-5f);
  p->args.f[1] = (double)hone_node_float(s->node, "momentum", 0.9f);
  hn_cuda_direct_add(p, "hn_batch_norm_training", p->args.p[1], 256);
  return true;
}

hn_cuda_direct_tactic(batch_norm_training, "BatchNormalization", plan);
