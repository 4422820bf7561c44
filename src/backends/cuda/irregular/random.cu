/* Random numbers of operators with a seed, equal to the host's: its generator (splitmix64) counts, so that a thread can
 * begin anywhere. Prefix: HN_UNIFORM, HN_NORMAL, HN_BERNOULLI or HN_MULTINOMIAL. p[0]: the state behind the seed */
#include "direct.cuh"

/* Draw number i, uniform in [0, 1). */
HN_FN double hn_unit(const hn_direct_args *a, u64 i) {
  u64 z = (u64)a->p[0] + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

#ifdef HN_UNIFORM /* f: the least number, the range */
HN_EACH(hn_random) {
  volatile double part = a->f[1] * hn_unit(a, i); /* rounded by itself, as on the host: not fused with the sum */
  HN_OUT(0, i, a->f[0] + part);
}
#endif

#ifdef HN_NORMAL /* f: mean, scale */
HN_EACH(hn_random) {
  const double u = 1 - hn_unit(a, 2 * (u64)i), v = hn_unit(a, 2 * (u64)i + 1); /* u in (0, 1] */
  HN_OUT(0, i, a->f[0] + a->f[1] * (sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v)));
}
#endif

#ifdef HN_BERNOULLI
HN_EACH(hn_random) { HN_OUT(0, i, hn_unit(a, i) < (double)HN_IN(0, i) ? 1 : 0); }
#endif

#ifdef HN_MULTINOMIAL /* p: classes, samples. A block a row; the workspace holds its running sums */
HN_EACH_BLOCK(hn_random) {
  const i64 classes = a->p[1], samples = a->p[2];
  double *sum = (double *)a->work + i * classes;
  if (threadIdx.x == 0) { /* in the order of the definition, whose roundings decide */
    double top = HN_IN(0, i * classes), total = 0;
    for (i64 c = 1; c < classes; c++) top = fmax(top, (double)HN_IN(0, i * classes + c));
    for (i64 c = 0; c < classes; c++) sum[c] = total += exp(HN_IN(0, i * classes + c) - top);
  }
  HN_SYNC();
  for (i64 s = threadIdx.x; s < samples; s += blockDim.x) {
    const double u = hn_unit(a, (u64)(i * samples + s)) * sum[classes - 1];
    i64 low = 0, high = classes - 1; /* the first class whose running sum exceeds u */
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      if (sum[middle] > u)
        high = middle;
      else
        low = middle + 1;
    }
    HN_OUT(0, i * samples + s, low);
  }
}
#endif
