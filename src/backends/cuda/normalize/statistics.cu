/* Operators that look at a neighbourhood, a channel or all of a tensor: LRN, BatchNormalization in training,
 * DynamicQuantizeLinear, Det, and Dropout that drops nothing. Prefix: HN_LRN and the like choose. */
#include "direct.cuh"

#ifdef HN_LRN /* p: channels, elements of a channel, neighbours before and behind; f: alpha / size, beta, bias */
HN_EACH(hn_lrn) {
  const u32 n = (u32)a->p[1], line = i / n;
  const i64 c = line % (u32)a->p[0];
  double sum = 0;
  for (i64 k = c > a->p[2] ? -a->p[2] : -c; k <= a->p[3] && c + k < a->p[0]; k++) {
    const double v = HN_IN(0, i + k * n);
    sum += v * v;
  }
  HN_OUT(0, i, HN_IN(0, i) / pow(a->f[2] + a->f[0] * sum, a->f[1]));
}
#endif

#ifdef HN_TRAINING /* a block a channel. p: images, channels, elements of a channel; f: epsilon, momentum */
HN_FN i64 hn_channel_at(const hn_direct_args *a, u32 c, i64 k) {
  const i64 image = k / a->p[2];
  return (image * a->p[1] + c) * a->p[2] + (k - image * a->p[2]);
}

HN_EACH_BLOCK(hn_batch_norm_training) {
  const i64 n = a->p[0] * a->p[2];
  double sum = 0, squares = 0;
  for (i64 k = threadIdx.x; k < n; k += blockDim.x) sum += HN_IN(0, hn_channel_at(a, i, k));
  const double mean = hn_block_sum(sum) / (double)n;
  for (i64 k = threadIdx.x; k < n; k += blockDim.x) {
    const double d = HN_IN(0, hn_channel_at(a, i, k)) - mean;
    squares += d * d;
  }
  const double variance = hn_block_sum(squares) / (double)n;
  const double factor = HN_IN(1, i) / sqrt(variance + a->f[0]), bias = HN_IN(2, i);
  for (i64 k = threadIdx.x; k < n; k += blockDim.x) {
    const i64 at = hn_channel_at(a, i, k);
    HN_OUT(0, at, (HN_IN(0, at) - mean) * factor + bias);
  }
  if (threadIdx.x == 0) {
#ifdef HN_O1
    HN_OUT(1, i, HN_IN(3, i) * a->f[1] + mean * (1 - a->f[1]));
#endif
#ifdef HN_O2
    HN_OUT(2, i, HN_IN(4, i) * a->f[1] + variance * (1 - a->f[1]));
#endif
  }
}
#endif

#ifdef HN_DYNAMIC_QUANTIZE /* p: elements, blocks of the first kernel, whose extremes lie in the workspace */
HN_EACH_BLOCK(hn_extremes) {
  HN_SHARED float least[256], most[256];
  float *to = (float *)a->work;
  const u32 t = threadIdx.x;
  float low = 0, high = 0; /* zero is always representable */
  for (i64 k = (i64)i * 256 + t; k < a->p[0]; k += a->p[1] * 256) {
    const float v = HN_IN(0, k);
    low = v < low ? v : low, high = v > high ? v : high;
  }
  least[t] = low, most[t] = high;
  for (u32 half = 128; half; half /= 2) {
    HN_SYNC();
    if (t < half) least[t] = fminf(least[t], least[t + half]), most[t] = fmaxf(most[t], most[t + half]);
  }
  if (t == 0) to[2 * i] = least[0], to[2 * i + 1] = most[0];
}

HN_EACH_BLOCK(hn_quantize) {
  HN_SHARED float least[256], most[256];
  const float *from = (const float *)a->work;
  const u32 t = threadIdx.x;
  least[t] = t < a->p[1] ? from[2 * t] : 0, most[t] = t < a->p[1] ? from[2 * t + 1] : 0;
  for (u32 half = 128; half; half /= 2) {
    HN_SYNC();
    if (t < half) least[t] = fminf(least[t], least[t + half]), most[t] = fmaxf(most[t], most[t + half]);
  }
  HN_SYNC();
  float scale = (most[0] - least[0]) / 255;
  if (scale == 0) scale = 1; /* all zero: any scale will do */
  const float zero = rintf(fminf(fmaxf(0 - least[0] / scale, 0.0f), 255.0f));
#ifdef HN_O0
  for (i64 k = (i64)i * 256 + t; k < a->p[0]; k += a->p[1] * 256) {
    const float q = rintf(HN_IN(0, k) / scale) + zero;
    HN_OUT(0, k, q > 0 ? q < 255 ? q : 255.0f : 0.0f);
  }
#endif
  if (i == 0 && t == 0) {
#ifdef HN_O1
    HN_OUT(1, 0, scale);
#endif
#ifdef HN_O2
    HN_OUT(2, 0, zero);
#endif
  }
}
#endif

#ifdef HN_DET /* a block a matrix, elimination with row exchanges. p: rows; the workspace holds the matrices in f64 */
HN_EACH_BLOCK(hn_det) {
  HN_SHARED i64 pivot;
  const i64 n = a->p[0];
  double *m = (double *)a->work + i * n * n, det = 1;
  for (i64 k = threadIdx.x; k < n * n; k += blockDim.x) m[k] = HN_IN(0, i * n * n + k);
  for (i64 c = 0; c < n && det != 0; c++) {
    HN_SYNC();
    if (threadIdx.x == 0) {
      pivot = c;
      for (i64 r = c + 1; r < n; r++)
        if (fabs(m[r * n + c]) > fabs(m[pivot * n + c])) pivot = r;
    }
    HN_SYNC();
    const i64 from = pivot;
    const double top = m[from * n + c];
    HN_SYNC();
    if (from != c) {
      for (i64 k = c + threadIdx.x; k < n; k += blockDim.x) {
        const double was = m[c * n + k];
        m[c * n + k] = m[from * n + k], m[from * n + k] = was;
      }
      det = -det;
    }
    det *= top;
    HN_SYNC();
    if (top == 0) continue; /* the same for all threads: det is 0 now */
    for (i64 r = c + 1 + threadIdx.x; r < n; r += blockDim.x) {
      const double f = m[r * n + c] / top;
      for (i64 k = c + 1; k < n; k++) m[r * n + k] -= f * m[c * n + k];
    }
  }
  if (threadIdx.x == 0) HN_OUT(0, i, det);
}
#endif

#ifdef HN_DROPOUT
HN_EACH(hn_dropout) {
#ifdef HN_O0
  HN_OUT(0, i, HN_IN(0, i));
#endif
#ifdef HN_O1
  HN_OUT(1, i, 1);
#endif
}
#endif
