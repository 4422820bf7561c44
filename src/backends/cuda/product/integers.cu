/* Convolutions and products of 8-bit integers less their zero points, exact in i32, which wraps; with scales
 * (HN_Y_SCALE) rounded to 8 bits. Prefix: HN_A, HN_B and, where they are there, HN_A_ZERO... say which inputs they are. */
#include "direct.cuh"

#ifdef HN_Y_SCALE
#define HN_RESULT(i, sum, a_scale_at, b_scale_at)                                                                     \
  do {                                                                                                                \
    const float scale_ = (float)HN_IN(HN_A_SCALE, a_scale_at) * (float)HN_IN(HN_B_SCALE, b_scale_at) /                 \
                         (float)HN_IN(HN_Y_SCALE, 0);                                                                 \
    const double q_ = (double)rintf((float)(i32)(sum) * scale_) + (double)HN_IN(HN_Y_ZERO, 0);              \
    HN_OUT(0, i, (i32)(q_ > HN_LOW ? q_ < HN_HIGH ? q_ : HN_HIGH : HN_LOW));                                          \
  } while (0)
#else
#define HN_RESULT(i, sum, a_scale_at, b_scale_at) HN_OUT(0, i, (i32)(sum))
#endif

#ifdef HN_CONVOLUTION
/* p: groups, channels and filters of a group, whether zero points and scales of the weights are many; from 8 input,
 * 12 output, 16 kernel, 20 strides, 24 dilations, 28 pads. A thread an output. */
HN_EACH(hn_integer_conv) {
  i64 place[3], rest = i;
  for (int d = 2; d >= 0; d--) {
    const i64 next = rest / a->p[12 + d];
    place[d] = (rest - next * a->p[12 + d]) * a->p[20 + d] - a->p[28 + d], rest = next;
  }
  const i64 filters = a->p[0] * a->p[2], image = rest / filters, filter = rest - image * filters;
  const i64 taps = a->p[16] * a->p[17] * a->p[18], plane = a->p[8] * a->p[9] * a->p[10];
  i64 x = (image * a->p[0] + filter / a->p[2]) * a->p[1] * plane, w = filter * a->p[1] * taps;
  i32 x_zero = 0, w_zero = 0;
#ifdef HN_A_ZERO
  x_zero = (i32)HN_IN(HN_A_ZERO, 0);
#endif
#ifdef HN_B_ZERO
  w_zero = (i32)HN_IN(HN_B_ZERO, a->p[3] ? filter : 0);
#endif
  u32 sum = 0;
  for (i64 c = 0; c < a->p[1]; c++, x += plane)
    for (i64 z = 0; z < a->p[16]; z++)
      for (i64 y = 0; y < a->p[17]; y++)
        for (i64 k = 0; k < a->p[18]; k++, w++) {
          const i64 d = place[0] + z * a->p[24], r = place[1] + y * a->p[25], s = place[2] + k * a->p[26];
          if (d < 0 || r < 0 || s < 0 || d >= a->p[8] || r >= a->p[9] || s >= a->p[10]) continue;
          const i32 v = (i32)HN_IN(HN_A, x + (d * a->p[9] + r) * a->p[10] + s) - x_zero;
          sum += (u32)(v * ((i32)HN_IN(HN_B, w) - w_zero));
        }
#ifdef HN_BIAS
  sum += (u32)(i32)HN_IN(HN_BIAS, filter);
#endif
  HN_RESULT(i, sum, 0, a->p[4] ? filter : 0);
}
#else
/* p: m, n, k, dimensions of the stack; from 8 their sizes, from 16 and 24 the operands' steps along them; from 32 steps
 * of line and matrix of a's zero points and scales, then b's. A thread an output. */
HN_EACH(hn_integer_matmul) {
  const i64 n = a->p[1], row = i / n, column = i - row * n, line = row % a->p[0];
  i64 rest = row / a->p[0], at_a = 0, at_b = 0;
  for (int d = (int)a->p[3] - 1; d >= 0; d--) {
    const i64 next = rest / a->p[8 + d], at = rest - next * a->p[8 + d];
    at_a += at * a->p[16 + d], at_b += at * a->p[24 + d], rest = next;
  }
  const i64 matrix_a = at_a / (a->p[0] * a->p[2] ? a->p[0] * a->p[2] : 1);
  const i64 matrix_b = at_b / (a->p[2] * n ? a->p[2] * n : 1);
  i32 a_zero = 0, b_zero = 0;
#ifdef HN_A_ZERO
  a_zero = (i32)HN_IN(HN_A_ZERO, line * a->p[32] + matrix_a * a->p[33]);
#endif
#ifdef HN_B_ZERO
  b_zero = (i32)HN_IN(HN_B_ZERO, column * a->p[36] + matrix_b * a->p[37]);
#endif
  u32 sum = 0;
  at_a += line * a->p[2], at_b += column;
  for (i64 k = 0; k < a->p[2]; k++)
    sum += (u32)(((i32)HN_IN(HN_A, at_a + k) - a_zero) * ((i32)HN_IN(HN_B, at_b + k * n) - b_zero));
  HN_RESULT(i, sum, line * a->p[34] + matrix_a * a->p[35], column * a->p[38] + matrix_b * a->p[39]);
}
#endif
