/* Functions of angles in f32 without branches, so that loops over them are loops over vectors. Polynomials
 * of Moshier's Cephes library; off by some 2 units of the last place, sine and cosine near their zeros by as
 * much of 1. */
#ifndef HN_MODEL_OPS_ANGLES_H
#define HN_MODEL_OPS_ANGLES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define HN_ANGLE_PI 3.14159265358979323846f
/* Sine and cosine are those of |x| up to here. */
#define HN_ANGLE_MOST 8192.0f
enum { HN_ANGLE_BLOCK = 256 };

/* The sine of x and `turns` quarters of a circle. */
static inline float hn_angle_sine(float x, int32_t turns) {
  const float n = (x * (2 / HN_ANGLE_PI) + 12582912.0f) - 12582912.0f; /* rounded to a whole number */
  const int32_t quarter = (int32_t)n + turns;
  /* pi/2 in three parts, of which the first two have so few bits that the products are exact. */
  const float r = ((x - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.549789948768648e-8f,
              z = r * r;
  const float sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  const float cosine =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z +
      1;
  const float y = quarter & 1 ? cosine : sine;
  return quarter & 2 ? -y : y;
}

static inline bool hn_angles_are_small(const float *x, int64_t n) {
  int32_t large = 0;
  for (int64_t i = 0; i < n; i++) large += !(fabsf(x[i]) <= HN_ANGLE_MOST);
  return !large;
}

/* loop_f32 of an operator on angles: `small` of x where a block's are small, else `any`. */
#define HN_ANGLE_LOOP(small, any)                                                                            \
  static void loop_f32(const void *from, void *to, int64_t n, const double *param) {                         \
    (void)param;                                                                                             \
    for (int64_t i = 0; i < n; i += HN_ANGLE_BLOCK) {                                                        \
      const int64_t some = n - i < HN_ANGLE_BLOCK ? n - i : HN_ANGLE_BLOCK;                                  \
      const float *v = (const float *)from + i;                                                              \
      float *y = (float *)to + i;                                                                            \
      if (hn_angles_are_small(v, some))                                                                      \
        for (int64_t k = 0; k < some; k++) {                                                                 \
          const float x = v[k];                                                                              \
          y[k] = (small);                                                                                    \
        }                                                                                                    \
      else                                                                                                   \
        for (int64_t k = 0; k < some; k++) y[k] = any(v[k]);                                                 \
    }                                                                                                        \
  }

/* asin of 0 <= x <= 1/2, whose square is z. */
static inline float hn_angle_of_half(float x, float z) {
  return ((((4.2163199048e-2f * z + 2.4181311049e-2f) * z + 4.5470025998e-2f) * z + 7.4953002686e-2f) * z +
          1.6666752422e-1f) *
             z * x +
         x;
}

/* Of sines beyond 1 the root of a number below 0 makes NaN. */
static inline float hn_angle_asin(float x) {
  const float a = fabsf(x), half = 0.5f * (1 - a);
  const float z = a > 0.5f ? half : a * a, root = sqrtf(half), s = a > 0.5f ? root : a;
  const float p = hn_angle_of_half(s, z), y = a > 0.5f ? HN_ANGLE_PI / 2 - 2 * p : p;
  return copysignf(y, x);
}

static inline float hn_angle_acos(float x) {
  const float a = fabsf(x), half = 0.5f * (1 - a);
  const float z = a > 0.5f ? half : a * a, root = sqrtf(half), s = a > 0.5f ? root : a;
  const float p = hn_angle_of_half(s, z), far = x < 0 ? HN_ANGLE_PI - 2 * p : 2 * p;
  return a > 0.5f ? far : HN_ANGLE_PI / 2 - copysignf(p, x);
}

static inline float hn_angle_atan(float x) {
  const float a = fabsf(x), middle = (a - 1) / (a + 1), over = -1 / a;
  const bool large = a > 2.414213562373095f, medium = a > 0.4142135623730950f;
  const float t = large ? over : medium ? middle : a, z = t * t;
  const float base = large ? HN_ANGLE_PI / 2 : medium ? HN_ANGLE_PI / 4 : 0;
  const float p =
      (((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f) * z *
          t +
      t;
  return copysignf(base + p, x);
}

#endif
