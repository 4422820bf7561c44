/* QLinearMaxPool: the largest code is that of the largest value, so it is the MaxPool of the codes
 * themselves. */
#include "backends/cuda/pooling/pooling.h"
#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

static const hn_cuda_pooling_config max = {HN_CUDA_POOL_MAX};

static hone_step plain(const hone_step *s) {
  hone_step t = *s;
  t.anchor = "MaxPool";
  t.n_inputs = t.n_anchor_inputs = 1;
  return t;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_step t = plain(s);
  float x_scale, x_zero, y_scale, y_zero;
  if (s->n_anchor_inputs < HN_QLINEAR_Y_ZERO + 1) return hn_refuse(why, "inputs are missing");
  if (!hn_codes_type(s->input[0].desc.dtype) || s->input[0].desc.dtype != s->output[0].desc.dtype)
    return hn_refuse(why, "a tensor has no codes of 8 bits, or both have others");
  if (!hn_codes_number(s, HN_QLINEAR_X_SCALE, &x_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_X_ZERO, &x_zero, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_SCALE, &y_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_ZERO, &y_zero, why))
    return false;
  if (x_scale != y_scale || x_zero != y_zero) return hn_refuse(why, "input and output have different codes");
  if (!(x_scale > 0)) return hn_refuse(why, "the scale is not positive");
  return hn_cuda_pooling_accepts(&t, m, &max, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  const hone_step t = plain(s);
  return hn_cuda_pooling_cost(&t, m, &max);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step t = plain(r->step);
  hone_step_run inner = *r;
  inner.step = &t;
  return hn_cuda_pooling_run(&inner, &max, error);
}

HN_TACTIC(cuda, codes_max_pool, "QLinearMaxPool", 1, .accepts = accepts, .cost = cost, .run = run);
