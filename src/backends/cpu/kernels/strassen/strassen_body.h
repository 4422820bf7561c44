/* The body of strassen_<tier>.c. */
#include "backends/cpu/kernels/strassen/strassen.h"

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

static inline __attribute__((always_inline)) vf take(const float *p, size_t i, size_t live) {
  return !p ? v_zero() : live == VEC_W ? v_load(p + i) : v_loadn(p + i, live);
}
static inline __attribute__((always_inline)) void put(float *p, size_t i, vf x, size_t live) {
  if (live == VEC_W)
    v_store(p + i, x);
  else
    v_storen(p + i, x, live);
}

static void split(float *const to[HN_STRASSEN_SUMS], const float *upper, const float *lower, size_t half,
                  float most[2]) {
  const float *right = lower ? lower + half : NULL;
  vf above = v_zero(), below = v_zero();
  for (size_t i = 0; i < half; i += VEC_W) {
    const size_t live = half - i < VEC_W ? half - i : VEC_W;
    const vf a11 = take(upper, i, live), a12 = take(upper + half, i, live), a21 = take(lower, i, live),
             a22 = take(right, i, live);
    const vf s1 = v_add(a21, a22), s2 = v_sub(s1, a11);
    const vf s[HN_STRASSEN_SUMS] = {a11, s1, s2, v_sub(a11, a21), a12, v_sub(a12, s2), a22};
    for (int k = 0; k < HN_STRASSEN_SUMS; k++) put(to[k], i, s[k], live);
    above = v_max(above, v_max(v_abs(a11), v_abs(a12)));
    if (!HN_FAULT("strassen_lower_most")) below = v_max(below, v_max(v_abs(a21), v_abs(a22)));
  }
  most[0] = v_hmax(above);
  most[1] = v_hmax(below);
}

static void join(float *const c[4], const float *const p[4], size_t n) {
  for (size_t i = 0; i < n; i += VEC_W) {
    const size_t live = n - i < VEC_W ? n - i : VEC_W;
    const vf p0 = take(p[0], i, live), p1 = take(p[1], i, live), u2 = v_add(p0, take(p[2], i, live)),
             u3 = v_add(u2, take(p[3], i, live));
    put(c[0], i, p0, live);
    put(c[1], i, v_add(u2, p1), live);
    if (c[2]) put(c[2], i, HN_FAULT("strassen_join") ? u2 : u3, live);
    if (c[3]) put(c[3], i, v_add(u3, p1), live);
  }
}

static const struct hn_strassen_ops table = {.split = split, .join = join};
