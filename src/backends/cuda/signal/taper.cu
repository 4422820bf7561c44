/* Window functions that are sums of cosines, and MelWeightMatrix: nothing but numbers that the host knows goes in. */
#include "direct.cuh"

#ifdef HN_TAPER /* p: points; f: the three coefficients, the period, whether the point is the middle */
HN_EACH(hn_taper) {
  const double pi = 3.14159265358979323846, phase = a->f[4] != 0 ? pi : 2 * pi * (double)i / a->f[3];
  HN_OUT(0, i, a->f[0] - a->f[1] * cos(phase) + a->f[2] * cos(2 * phase));
}
#else
/* p: bands; f: points of the transform and one, sample rate, lowest edge and step on the mel scale. An element's band is
 * a triangle over its three edges, which are rounded down to bins. */
HN_EACH(hn_mel) {
  const i64 bin = i / (u32)a->p[0];
  const u32 band = i - (u32)bin * (u32)a->p[0];
  i64 edge[3];
  for (int k = 0; k < 3; k++) {
    const double hertz = 700 * (pow(10.0, (a->f[2] + a->f[3] * (double)(band + k)) / 2595) - 1);
    edge[k] = (i64)floor(a->f[0] * hertz / a->f[1]);
  }
  double x = 0;
  if (bin == edge[1] && edge[1] == edge[0]) x = 1;
  if (bin >= edge[0] && bin <= edge[1] && edge[1] > edge[0])
    x = (double)(bin - edge[0]) / (double)(edge[1] - edge[0]);
  if (bin >= edge[1] && bin < edge[2]) x = (double)(edge[2] - bin) / (double)(edge[2] - edge[1]);
  HN_OUT(0, i, x);
}
#endif
