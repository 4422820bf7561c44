/* From what a value held to the range that its codes cover. */
#include "improve/quantize/quantize.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HALF = HN_QUANTIZE_BINS / 2 };

const char *hone_calibration_name(hone_calibration method) {
  static const char *const names[HONE_CALIBRATIONS] = {"minmax", "kl", "percentile", "mse"};
  return (unsigned)method < HONE_CALIBRATIONS ? names[method] : "";
}

/* ---- percentile */

/* The value below which `share` of all values lie, between the edges of a bin by proportion. */
static double quantile(const hn_quantize_histogram *h, double share) {
  const double want = share * (double)h->count;
  double sum = 0;
  for (int i = 0; i < HN_QUANTIZE_BINS; i++) {
    const double n = (double)h->bin[i];
    if (n > 0 && sum + n >= want) {
      const double low = hn_quantize_edge(h, i);
      return low + (hn_quantize_edge(h, i + 1) - low) * (want - sum) / n;
    }
    sum += n;
  }
  return h->most;
}

static void by_percentile(const hn_quantize_histogram *h, double percentile, double *low, double *high) {
  const double tail = (1 - percentile / 100) / 2;
  const double a = quantile(h, tail), b = quantile(h, 1 - tail);
  *low = fmax(h->least, fmin(a, 0));
  *high = fmin(h->most, fmax(b, 0));
}

/* ---- least squares */

/* Squared error of all values when [low, high] has `levels` steps: s^2/12 inside (zero itself is exact), the
 * distance outside. */
static double squares(const hn_quantize_histogram *h, double low, double high, double levels) {
  const double step = (high - low) / levels, inside = step * step / 12;
  double sum = -inside * (double)h->zeros;
  for (int i = 0; i < HN_QUANTIZE_BINS; i++) {
    if (h->bin[i] == 0) continue;
    const double v = (hn_quantize_edge(h, i) + hn_quantize_edge(h, i + 1)) / 2, n = (double)h->bin[i];
    const double off = v < low ? low - v : v > high ? v - high : 0;
    sum += n * (off > 0 ? off * off : inside);
  }
  return sum;
}

/* Ends are moved inwards in turn, in hundredths of what was seen. */
static void by_squares(const hn_quantize_histogram *h, bool symmetric, double *low, double *high) {
  enum { STEPS = 100, TURNS = 3 };
  double best = squares(h, *low, *high, symmetric ? 254 : 255);
  const double least = *low, most = *high;
  if (symmetric) {
    const double m = fmax(-least, most);
    for (int k = 1; k < STEPS; k++) {
      const double t = m * k / STEPS, e = squares(h, -t, t, 254);
      if (e < best || k == 1) best = e, *low = -t, *high = t;
    }
    if (squares(h, -m, m, 254) <= best) *low = -m, *high = m;
    return;
  }
  for (int turn = 0; turn < TURNS; turn++) {
    for (int k = 1; k <= STEPS && most > 0; k++) {
      const double t = most * k / STEPS, e = squares(h, *low, t, 255);
      if (e < best) best = e, *high = t;
    }
    for (int k = 1; k <= STEPS && least < 0; k++) {
      const double t = least * k / STEPS, e = squares(h, t, *high, 255);
      if (e < best) best = e, *low = t;
    }
  }
}

/* ---- entropy */

/* Divergence of `n` bins p (what lies beyond in the last one) from the same after merging them into `levels`
 * and spreading each evenly over the bins that held something. */
static double divergence(const double *bin, int n, double beyond, int levels) {
  double total = beyond, d = 0, q_total = 0;
  for (int i = 0; i < n; i++) total += bin[i], q_total += bin[i];
  if (total <= 0 || q_total <= 0) return INFINITY;
  for (int k = 0; k < levels; k++) {
    const int from = (int)((int64_t)k * n / levels), to = (int)((int64_t)(k + 1) * n / levels);
    double sum = 0;
    int filled = 0;
    for (int i = from; i < to; i++) sum += bin[i], filled += bin[i] > 0;
    for (int i = from; i < to; i++) {
      const double p = (bin[i] + (i == n - 1 ? beyond : 0)) / total;
      const double q = bin[i] > 0 ? sum / filled / q_total : 0;
      if (p > 0) d += p * log(p / (q > 0 ? q : 1e-9));
    }
  }
  return d;
}

/* One bound for |x|: for values of both signs each side has half of the codes. The divergence is flat where
 * little is cut off, and how bins fall into levels moves it by some percent: of the bounds that are nearly as
 * good as the best one the widest counts. */
static void by_entropy(const hn_quantize_histogram *h, bool symmetric, double *low, double *high) {
  enum { STRIDE = 8, MOST = HALF / STRIDE + 1 };
  const double as_good = 1.1;
  double bin[HALF], of[MOST], beyond = 0, best = INFINITY;
  const int levels = symmetric || (h->least < 0 && h->most > 0) ? 128 : 256;
  for (int i = 0; i < HALF; i++) bin[i] = (double)(h->bin[HALF + i] + h->bin[HALF - 1 - i]);
  bin[0] -= fmin(bin[0], (double)h->zeros); /* exact whatever the range: no reason for a narrow one */
  int used = HALF, k = 0;
  while (used > levels && bin[used - 1] == 0) used--;
  for (int n = used; n >= levels; n -= STRIDE) {
    of[k] = divergence(bin, n, beyond, levels);
    best = fmin(best, of[k++]);
    for (int i = n - 1; i >= n - STRIDE && i >= 0; i--) beyond += bin[i];
  }
  int widest = 0;
  while (widest < k && !(of[widest] <= as_good * best)) widest++;
  if (widest == 0 || widest == k) return; /* all of it */
  const double t = h->reach * (used - widest * STRIDE) / HALF;
  *low = fmax(*low, -t);
  *high = fmin(*high, t);
}

/* ---- scale and zero point */

static void encode(hn_quantize_range *r, bool symmetric) {
  const double levels = symmetric ? 127 : 255;
  const double width = symmetric ? fmax(-r->low, r->high) : r->high - r->low;
  r->zero_point = 0;
  r->scale = 1; /* all zero: any scale will do */
  if (width / levels >= (double)FLT_MIN) {
    r->scale = (float)(width / levels);
    /* A bound that is exact (a Relu's, a Clip's) must not be passed by a rounding: then it needs no operator.
     */
    while (r->scale * (float)levels > (float)width) r->scale = nextafterf(r->scale, 0);
  }
  if (!symmetric) {
    const double zero = nearbyint(-r->low / (double)r->scale);
    r->zero_point = zero < 0 ? 0 : zero > 255 ? 255 : (int32_t)zero;
  }
  r->low = ((symmetric ? -127 : 0) - r->zero_point) * (double)r->scale;
  r->high = ((symmetric ? 127 : 255) - r->zero_point) * (double)r->scale;
}

void hn_quantize_choose(hn_quantize_range *r, hone_calibration method, double percentile, bool symmetric) {
  const hn_quantize_histogram *h = r->seen;
  r->low = h->count ? fmin(h->least, 0) : 0;
  r->high = h->count ? fmax(h->most, 0) : 0;
  if (h->reach > 0 && method == HONE_CALIBRATION_PERCENTILE) by_percentile(h, percentile, &r->low, &r->high);
  if (h->reach > 0 && method == HONE_CALIBRATION_MSE) by_squares(h, symmetric, &r->low, &r->high);
  if (h->reach > 0 && method == HONE_CALIBRATION_KL) by_entropy(h, symmetric, &r->low, &r->high);
  encode(r, symmetric);
}
