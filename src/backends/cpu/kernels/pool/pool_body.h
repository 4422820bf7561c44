/* The body of pool_f32_<tier>.c. Channels are taken in blocks of four vectors that stay in registers while
 * the window is walked, so each output is written once. */
#include "backends/cpu/kernels/pool/pool.h"

#include <string.h>

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

/* First k with x0 + k * dilation >= bound. */
static ptrdiff_t first_tap(ptrdiff_t x0, ptrdiff_t dilation, ptrdiff_t bound) {
  return x0 >= bound ? 0 : (bound - x0 + dilation - 1) / dilation;
}

/* The valid part [*lo, *hi) of the window of output pixel ox; returns its input coordinate x0. */
static ptrdiff_t clip_window(const struct hn_pool_row *r, ptrdiff_t ox, ptrdiff_t *lo, ptrdiff_t *hi) {
  const ptrdiff_t x0 = ox * r->stride - r->pad_begin;
  *lo = first_tap(x0, r->dilation, 0);
  *hi = first_tap(x0, r->dilation, r->width);
  if (*hi > r->kernel) *hi = r->kernel;
  if (*lo > *hi) *lo = *hi;
  return x0;
}

#define WALK(type, body)                                                                                     \
  for (ptrdiff_t z = 0; z < r->taps_z; z++)                                                                  \
    for (ptrdiff_t y = 0; y < r->taps_y; y++) {                                                              \
      const type *p = base + z * r->step_z + y * r->step_y;                                                  \
      for (ptrdiff_t x = 0; x < taps; x++, p += step_x) body                                                 \
    }

/* Values of 16 bits: what is left of a row goes through a padded block. */
#define HALVES(nm)                                                                                           \
  static inline vf v_loadn_##nm(const uint16_t *p, size_t n) {                                               \
    uint16_t rest[VEC_W] = {0};                                                                              \
    memcpy(rest, p, n * sizeof *rest);                                                                       \
    return v_load_##nm(rest);                                                                                \
  }                                                                                                          \
  static inline void v_storen_##nm(uint16_t *p, vf x, size_t n) {                                            \
    uint16_t rest[VEC_W];                                                                                    \
    v_store_##nm(rest, x);                                                                                   \
    memcpy(p, rest, n * sizeof *rest);                                                                       \
  }
HALVES(f16)
HALVES(bf16)

#define POOL_PIXEL(nm, type, sfx, init, combine, finish)                                                     \
  static void nm##sfx(const struct hn_pool_row *r, const type *src, ptrdiff_t taps, ptrdiff_t step_x,        \
                      type *dst, float inv) {                                                                \
    const vf first = v_set1(init), scale = v_set1(inv);                                                      \
    ptrdiff_t c = 0;                                                                                         \
    (void)scale;                                                                                             \
    for (; c + 4 * VEC_W <= r->channels; c += 4 * VEC_W) {                                                   \
      const type *base = src + c;                                                                            \
      vf a0 = first, a1 = first, a2 = first, a3 = first;                                                     \
      WALK(type, {                                                                                           \
        a0 = combine(a0, v_load##sfx(p));                                                                    \
        a1 = combine(a1, v_load##sfx(p + VEC_W));                                                            \
        a2 = combine(a2, v_load##sfx(p + 2 * VEC_W));                                                        \
        a3 = combine(a3, v_load##sfx(p + 3 * VEC_W));                                                        \
      })                                                                                                     \
      v_store##sfx(dst + c, finish(a0));                                                                     \
      v_store##sfx(dst + c + VEC_W, finish(a1));                                                             \
      v_store##sfx(dst + c + 2 * VEC_W, finish(a2));                                                         \
      v_store##sfx(dst + c + 3 * VEC_W, finish(a3));                                                         \
    }                                                                                                        \
    for (; c + VEC_W <= r->channels; c += VEC_W) {                                                           \
      const type *base = src + c;                                                                            \
      vf a0 = first;                                                                                         \
      WALK(type, { a0 = combine(a0, v_load##sfx(p)); })                                                      \
      v_store##sfx(dst + c, finish(a0));                                                                     \
    }                                                                                                        \
    if (c < r->channels) {                                                                                   \
      const size_t rest = (size_t)(r->channels - c);                                                         \
      const type *base = src + c;                                                                            \
      vf a0 = first;                                                                                         \
      WALK(type, { a0 = combine(a0, v_loadn##sfx(p, rest)); })                                               \
      v_storen##sfx(dst + c, finish(a0), rest);                                                              \
    }                                                                                                        \
  }

#define AS_IT_IS(a) (a)
#define SCALED(a) v_mul((a), scale)

#define POOL_ROWS(type, sfx)                                                                                 \
  POOL_PIXEL(max_pixel, type, sfx, -__builtin_inff(), v_max, AS_IT_IS)                                       \
  POOL_PIXEL(sum_pixel, type, sfx, 0.0f, v_add, SCALED)                                                      \
  static void max_row##sfx(const struct hn_pool_row *r) {                                                    \
    const type *src = r->src;                                                                                \
    type *dst = r->dst;                                                                                      \
    for (ptrdiff_t ox = 0; ox < r->out_width; ox++) {                                                        \
      ptrdiff_t lo, hi, x0 = clip_window(r, ox, &lo, &hi);                                                   \
      if (HN_FAULT("pool_max_last_tap") && hi - lo > 1) hi--;                                                \
      max_pixel##sfx(r, src + (x0 + lo * r->dilation) * r->pitch, hi - lo, r->dilation * r->pitch,           \
                     dst + ox * r->out_pitch, 1.0f);                                                         \
    }                                                                                                        \
  }                                                                                                          \
  static void average_row##sfx(const struct hn_pool_row *r) {                                                \
    const type *src = r->src;                                                                                \
    type *dst = r->dst;                                                                                      \
    for (ptrdiff_t ox = 0; ox < r->out_width; ox++) {                                                        \
      ptrdiff_t lo, hi, x0 = clip_window(r, ox, &lo, &hi);                                                   \
      const ptrdiff_t count = counted(r, x0, lo, hi);                                                        \
      sum_pixel##sfx(r, src + (x0 + lo * r->dilation) * r->pitch, hi - lo, r->dilation * r->pitch,           \
                     dst + ox * r->out_pitch, count > 0 ? 1.0f / (float)count : 0.0f);                       \
    }                                                                                                        \
  }

/* Values that an average divides by. */
static ptrdiff_t counted(const struct hn_pool_row *r, ptrdiff_t x0, ptrdiff_t lo, ptrdiff_t hi) {
  ptrdiff_t count = (hi - lo) * r->taps_z * r->taps_y;
  if (r->counted_zy > 0) {
    ptrdiff_t in_padding = first_tap(x0, r->dilation, r->width + r->pad_end);
    count = r->counted_zy * (in_padding < r->kernel ? in_padding : r->kernel);
  }
  return count + (HN_FAULT("pool_average_count") && lo > 0);
}

POOL_ROWS(float, )
POOL_ROWS(uint16_t, _f16)
POOL_ROWS(uint16_t, _bf16)

static const struct hn_pool_ops table = {
    .max = {[HN_STORED_F32] = max_row, [HN_STORED_F16] = max_row_f16, [HN_STORED_BF16] = max_row_bf16},
    .average = {[HN_STORED_F32] = average_row,
                [HN_STORED_F16] = average_row_f16,
                [HN_STORED_BF16] = average_row_bf16}};
