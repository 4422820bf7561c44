/* MelWeightMatrix of numbers that are known. */
#include <math.h>

#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"

/* A float of any type, or refused. */
static bool real(const hone_step *s, uint32_t i, double *value, hone_reason *why) {
  const hone_step_tensor *t = &s->input[i];
  float f;
  if (t->constant && t->desc.dtype == HONE_DTYPE_F64) {
    *value = *(const double *)t->constant;
    return true;
  }
  if (!hn_cuda_constant_f32(t, 0, 1, &f)) return hn_refuse(why, "input %u is not constant", i);
  *value = (double)f;
  return true;
}

static double mel(double hertz) { return 2595 * log10(1 + hertz / 700); }

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const int64_t bands = s->output[0].desc.dim[1], bins = s->output[0].desc.dim[0];
  int64_t length, rate;
  double low, high;
  if (!hn_cuda_constant_int(s, 1, 0, &length, why) || !hn_cuda_constant_int(s, 2, 0, &rate, why) ||
      !real(s, 3, &low, why) || !real(s, 4, &high, why))
    return false;
  low = mel(low), high = mel(high);
  const double step = (high - low) / ((double)bands + 2), points = (double)length + 1;
  /* Edges grow or fall evenly, so that the outermost ones tell of all. */
  for (int k = 0; k < 2; k++) {
    const double at = low + step * (k ? (double)(bands + 1) : 0);
    const double edge = floor(points * 700 * (pow(10, at / 2595) - 1) / (double)rate);
    if (!(edge >= 0 && edge < (double)bins)) return hn_refuse(why, "a band lies outside the spectrum");
  }
  p->text = "taper";
  p->args.p[0] = bands;
  p->args.f[0] = points, p->args.f[1] = (double)rate, p->args.f[2] = low, p->args.f[3] = step;
  hn_cuda_direct_add(p, "hn_mel", bins * bands, 0);
  return true;
}

hn_cuda_direct_tactic(mel_weight_matrix, "MelWeightMatrix", plan);
