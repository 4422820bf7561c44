/* Tables of sources and weights for resampling (resample.h). */
#include "model/ops/sampling/resample.h"

/* Source coordinate of output element o. */
static float source(const hn_resize *r, int32_t d, int64_t o) {
  float x = (float)o, scale = r->scale[d], in = (float)r->in[d], length = r->length[d];
  switch (r->coord) {
  case HN_COORD_HALF_PIXEL: return (x + 0.5f) / scale - 0.5f;
  case HN_COORD_PYTORCH_HALF_PIXEL: return r->out[d] > 1 ? (x + 0.5f) / scale - 0.5f : 0;
  case HN_COORD_HALF_PIXEL_SYMMETRIC: {
    float adjustment = (float)r->out[d] / length, center = in / 2;
    return center * (1 - adjustment) + (x + 0.5f) / scale - 0.5f;
  }
  case HN_COORD_ALIGN_CORNERS: return length == 1 || r->out[d] == 1 ? 0 : x * (in - 1) / (length - 1);
  case HN_COORD_TF_CROP:
    return r->out[d] > 1 ? r->start[d] * (in - 1) + x * (r->end[d] - r->start[d]) * (in - 1) / (length - 1)
                         : 0.5f * (r->start[d] + r->end[d]) * (in - 1);
  case HN_COORD_TF_HALF_PIXEL_NN: return (x + 0.5f) / scale;
  case HN_COORD_ASYMMETRIC: break;
  }
  return x / scale;
}

static int64_t clamp_index(double i, int64_t n) { return !(i > 0) ? 0 : i >= (double)n ? n - 1 : (int64_t)i; }

/* A coordinate that misses the middle of two elements by rounding alone counts as a tie. */
static bool is_tie(float x) { return fabs((double)x - floor(x) - 0.5) <= 1e-6 * fmax(1, fabs((double)x)); }

static double nearest_of(const hn_resize *r, int32_t d, float x) {
  switch (r->nearest) {
  case HN_NEAREST_FLOOR: return floor(x);
  case HN_NEAREST_CEIL: return ceil(x);
  case HN_NEAREST_ROUND_PREFER_CEIL: return is_tie(x) ? ceil(x) : floor((double)x + 0.5);
  case HN_NEAREST_UNNAMED: return r->scale[d] < 1 ? ceil(x) : floor(x);
  case HN_NEAREST_ROUND_PREFER_FLOOR: break;
  }
  return is_tie(x) ? floor(x) : ceil((double)x - 0.5);
}

static double kernel_linear(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

/* Keys' cubic convolution kernel with parameter a. */
static double kernel_cubic(double x, double a) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/* How much the kernel is shrunk: below 1 when antialiasing a reduction. */
static double shrink(const hn_resize *r, int32_t d) {
  return r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
}

int64_t hn_resample_taps(const hn_resize *r, int32_t d) {
  if (r->mode == HN_RESIZE_NEAREST) return 1;
  double support = r->mode == HN_RESIZE_LINEAR ? 1 : 2;
  return 2 * (int64_t)ceil(support / shrink(r, d));
}

bool hn_resample_is_still(const hn_resize *r, int32_t d) {
  if (r->in[d] != r->out[d] || r->scale[d] != 1 || r->coord == HN_COORD_TF_CROP) return false;
  return r->coord != HN_COORD_TF_HALF_PIXEL_NN ||
         (r->mode == HN_RESIZE_NEAREST && r->nearest != HN_NEAREST_CEIL &&
          r->nearest != HN_NEAREST_ROUND_PREFER_CEIL);
}

void hn_resample_fill(const hn_resize *r, int32_t d, hn_resample_axis *t) {
  const double by = shrink(r, d);
  t->taps = hn_resample_taps(r, d);
  t->identity = r->in[d] == r->out[d];
  for (int64_t o = 0; o < r->out[d]; o++) {
    float x = source(r, d, o);
    t->outside[o] = r->coord == HN_COORD_TF_CROP && !(x >= 0 && x <= (float)(r->in[d] - 1));
    int64_t *index = t->index + o * t->taps;
    float *weight = t->weight + o * t->taps;
    if (r->mode == HN_RESIZE_NEAREST) {
      *index = clamp_index(nearest_of(r, d, x), r->in[d]);
      *weight = 1;
      t->identity = t->identity && *index == o && !t->outside[o];
      continue;
    }
    t->identity = t->identity && x == (float)o;
    const int64_t half = t->taps / 2; /* taps are even here */
    double base = floor(x), sum = 0, first = base - (double)half + 1;
    for (int64_t k = 0; k < t->taps; k++) {
      double at = first + (double)k, dist = (at - x) * by;
      double w = r->mode == HN_RESIZE_LINEAR ? kernel_linear(dist) : kernel_cubic(dist, r->cubic_a);
      if (r->exclude_outside && !(at >= 0 && at < (double)r->in[d])) w = 0;
      index[k] = clamp_index(at, r->in[d]);
      weight[k] = (float)w;
      sum += w;
    }
    /* The plain kernels sum to one by themselves. */
    if ((r->exclude_outside || by < 1) && sum != 0)
      for (int64_t k = 0; k < t->taps; k++) weight[k] = (float)(weight[k] / sum);
  }
}
