/* Negative log likelihood of labels: scores [N, C, inner], labels [N, inner]. Prefix:
 *   HN_TYPE, HN_OUT, HN_LOG, HN_WEIGHT, HN_LABEL   element types of scores, losses, log probabilities...
 *   HN_REAL                                        float or double: what is computed with
 *   HN_GROUP                                       threads that share a line of classes
 *   HN_SOFTMAX                                     1: scores become log probabilities first
 * A label outside the classes counts as ignored: a device cannot refuse it. Sums are made in a fixed order. */
#include "elements.cuh"
#include "likelihood_args.h"

enum { THREADS = 128 };

HN_FN double hn_exp_of(double x) { return sizeof(HN_REAL) == 8 ? exp(x) : (double)expf((float)x); }

/* The greatest, or the sum, of what the threads of a group hold; given to all of them. */
HN_FN HN_REAL hn_meet(HN_REAL *met, HN_REAL v, int top) {
  const int tid = (int)threadIdx.x, first = tid / HN_GROUP * HN_GROUP;
  if (HN_GROUP == 1) return v;
  HN_SYNC();
  met[tid] = v;
  for (int half = HN_GROUP / 2; half > 0; half /= 2) {
    HN_SYNC();
    if (tid - first < half) {
      const HN_REAL a = met[tid], b = met[tid + half];
      met[tid] = !top ? a + b : a > b || a != a ? a : b;
    }
  }
  HN_SYNC();
  return met[first];
}

HN_FN HN_REAL hn_score(const hn_likelihood_args *a, i64 base, u32 c) {
  return (HN_REAL)HN_PASTE(hn_get_, HN_TYPE)(a->x, base + c * a->inner);
}

HN_KERNEL_BOUNDS(hn_likelihood, hn_likelihood_args, a, 128, 4) {
  HN_GRID_GO();
  HN_SHARED HN_REAL met[THREADS];
  HN_SHARED double losses[THREADS], weights[THREADS];
  const int tid = (int)threadIdx.x, mine = tid % HN_GROUP;
  const u32 line = blockIdx.x * (THREADS / HN_GROUP) + (u32)(tid / HN_GROUP);
  const int there = line < a.lines;
  const i64 at = there ? line : 0, base = at / a.inner * a.classes * a.inner + at % a.inner;
  HN_GRID_WAIT();
  HN_REAL top = 0, shift = 0;
  if (HN_SOFTMAX) {
    top = hn_score(&a, base, (u32)mine < a.classes ? (u32)mine : 0);
    for (u32 c = (u32)mine + HN_GROUP; c < a.classes; c += HN_GROUP) {
      const HN_REAL v = hn_score(&a, base, c);
      top = top > v || top != top ? top : v;
    }
    top = hn_meet(met, top, 1);
    HN_REAL sum = 0;
    for (u32 c = (u32)mine; c < a.classes; c += HN_GROUP) sum += (HN_REAL)hn_exp_of(hn_score(&a, base, c) - top);
    shift = (HN_REAL)log((double)hn_meet(met, sum, 0));
    for (u32 c = (u32)mine; a.log_prob && there && c < a.classes; c += HN_GROUP)
      HN_PASTE(hn_put_, HN_LOG)(a.log_prob, base + c * a.inner, hn_score(&a, base, c) - top - shift);
  }
  double loss = 0, weight = 0;
  if (there && mine == 0) {
    const i64 label = (i64)HN_PASTE(hn_get_, HN_LABEL)(a.label, at);
    if (!(a.ignores && label == a.ignored) && label >= 0 && label < (i64)a.classes) {
      weight = a.weight ? (double)HN_PASTE(hn_get_, HN_WEIGHT)(a.weight, label) : 1.0;
      loss = -weight * (double)(hn_score(&a, base, (u32)label) - top - shift);
    }
    if (!a.part) HN_PASTE(hn_put_, HN_OUT)(a.y, at, (HN_PASTE(hn_value_, HN_OUT))loss);
  }
  if (!a.part) return;
  losses[tid] = loss, weights[tid] = weight;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    HN_SYNC();
    if (tid < half) losses[tid] += losses[tid + half], weights[tid] += weights[tid + half];
  }
  if (tid == 0) a.part[2 * blockIdx.x] = losses[0], a.part[2 * blockIdx.x + 1] = weights[0];
}

/* One block: the sum, or the mean by weights, of what the blocks before left. */
HN_KERNEL_BOUNDS(hn_likelihood_finish, hn_likelihood_args, a, 128, 1) {
  HN_GRID_GO();
  HN_SHARED double losses[THREADS], weights[THREADS];
  const int tid = (int)threadIdx.x;
  double loss = 0, weight = 0;
  HN_GRID_WAIT();
  for (u32 i = (u32)tid; i < a.parts; i += THREADS) loss += a.part[2 * i], weight += a.part[2 * i + 1];
  losses[tid] = loss, weights[tid] = weight;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    HN_SYNC();
    if (tid < half) losses[tid] += losses[tid + half], weights[tid] += weights[tid + half];
  }
  if (tid == 0)
    HN_PASTE(hn_put_, HN_OUT)(a.y, 0, (HN_PASTE(hn_value_, HN_OUT))(a.mean ? losses[0] / weights[0] : losses[0]));
}
