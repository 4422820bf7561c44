/* The body of the vector tiers. The including file defines WIDTH, the types `words` and `lanes`, and
 *   lanes lanes_of(bits), words read(p, live), words places(from), words take(was, lanes, from, v),
 *   void write(p, v, n), void write_all(p, v). */
#include <stdbool.h>

#include "backends/cpu/kernels/pick/pick.h"
#include "backends/cpu/kernels/template.h"

/* Source lines of so many pixels stay in L1 from one vector to the next. */
enum { PIXELS_AT_ONCE = 32, MANY_PIXELS = 8 };

/* A vector of all pixels, from one or two windows: what says so stays in registers. Masked stores take
 * several times as long as whole ones. */
static inline __attribute__((always_inline)) void few(const hn_pick_window *w, const int windows,
                                                      const bool whole, uint32_t *dst, ptrdiff_t dst_step,
                                                      const uint32_t *src, ptrdiff_t src_step, size_t n,
                                                      size_t count) {
  const words from0 = places(w[0].from), from1 = places(w[windows - 1].from);
  const lanes take0 = lanes_of(w[0].lanes), take1 = lanes_of(w[windows - 1].lanes);
  const lanes live0 = lanes_below(w[0].live), live1 = lanes_below(w[windows - 1].live);
  const lanes out = lanes_below((uint32_t)n);
  const uint32_t *a = src + w[0].at, *b = src + w[windows - 1].at;
  for (size_t p = 0; p < count; p++, dst += dst_step, a += src_step, b += src_step) {
    words v = take(nothing(), take0, from0, read(a, live0));
    if (windows > 1) v = take(v, take1, from1, read(b, live1));
    if (whole)
      write_all(dst, v);
    else
      write(dst, v, out);
  }
}

/* From any number of windows: what says so is read once for a few pixels. */
static inline __attribute__((always_inline)) void some_of_many(const hn_pick_window *w, uint32_t windows,
                                                               const int pixels, uint32_t *dst,
                                                               ptrdiff_t dst_step, const uint32_t *src,
                                                               ptrdiff_t src_step, size_t n) {
  words v[MANY_PIXELS];
  HN_UNROLL for (int p = 0; p < pixels; p++) v[p] = nothing();
  for (uint32_t i = 0; i < windows; i++) {
    const words from = places(w[i].from);
    const lanes which = lanes_of(w[i].lanes), live = lanes_below(w[i].live);
    HN_UNROLL for (int p = 0; p < pixels; p++) v[p] =
        take(v[p], which, from, read(src + w[i].at + p * src_step, live));
  }
  HN_UNROLL for (int p = 0; p < pixels; p++) {
    if (n == WIDTH)
      write_all(dst + p * dst_step, v[p]);
    else
      write(dst + p * dst_step, v[p], lanes_below((uint32_t)n));
  }
}

static void many(const hn_pick_window *w, uint32_t windows, uint32_t *dst, ptrdiff_t dst_step,
                 const uint32_t *src, ptrdiff_t src_step, size_t n, size_t count) {
  size_t p = 0;
  for (; p + MANY_PIXELS <= count;
       p += MANY_PIXELS, dst += MANY_PIXELS * dst_step, src += MANY_PIXELS * src_step)
    some_of_many(w, windows, MANY_PIXELS, dst, dst_step, src, src_step, n);
  for (; p < count; p++, dst += dst_step, src += src_step)
    some_of_many(w, windows, 1, dst, dst_step, src, src_step, n);
}

static void vector(const hn_pick_window *w, uint32_t windows, uint32_t *dst, ptrdiff_t dst_step,
                   const uint32_t *src, ptrdiff_t src_step, size_t n, size_t count) {
  if (windows == 1 && n == WIDTH)
    few(w, 1, true, dst, dst_step, src, src_step, n, count);
  else if (windows == 1)
    few(w, 1, false, dst, dst_step, src, src_step, n, count);
  else if (windows == 2 && n == WIDTH)
    few(w, 2, true, dst, dst_step, src, src_step, n, count);
  else if (windows == 2)
    few(w, 2, false, dst, dst_step, src, src_step, n, count);
  else
    many(w, windows, dst, dst_step, src, src_step, n, count);
}

static void pixels(const hn_pick *pick, uint32_t *dst, ptrdiff_t dst_step, const uint32_t *src,
                   ptrdiff_t src_step, size_t count) {
  for (size_t p = 0; p < count; p += PIXELS_AT_ONCE) {
    const size_t some = count - p < PIXELS_AT_ONCE ? count - p : PIXELS_AT_ONCE;
    uint32_t *d = dst + (ptrdiff_t)p * dst_step;
    const uint32_t *s = src + (ptrdiff_t)p * src_step;
    for (size_t c = 0, v = 0; c < pick->n; c += WIDTH, v++) {
      const size_t left = pick->n - c < WIDTH ? pick->n - c : WIDTH;
      const size_t n = left < WIDTH && HN_FAULT("pick_tail") ? left - 1 : left;
      const uint32_t first = pick->first[v];
      vector(pick->window + first, pick->first[v + 1] - first, d + c, dst_step, s, src_step, n, some);
    }
  }
}

static const struct hn_pick_ops table = {WIDTH, pixels};
