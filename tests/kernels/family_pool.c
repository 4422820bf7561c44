/* Adapter of the pooling kernels: whole images through the row function, against a direct double oracle. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/pool/pool.h"
#include "base/half.h"
#include "check.h"

typedef struct image {
  int h, w, c, pitch, kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, oh, ow;
} image;

static int extent(int in, int k, int s, int d, int pb, int pe) {
  const int span = in + pb + pe - d * (k - 1) - 1;
  return span < 0 ? 0 : span / s + 1;
}

/* What the tactic does: clip in height, one call a row. */
static void pool_image(const struct hn_pool_ops *ops, const image *m, bool max, bool count_pad, hn_stored as,
                       const void *x, void *y) {
  const ptrdiff_t size = as == HN_STORED_F32 ? 4 : 2;
  for (int oy = 0; oy < m->oh; oy++) {
    const int y0 = oy * m->sh - m->pt;
    int first = -1, taps = 0, counted = 0;
    for (int k = 0; k < m->kh; k++) {
      const int iy = y0 + k * m->dh;
      counted += iy < m->h + m->pb;
      if (iy < 0 || iy >= m->h) continue;
      if (first < 0) first = iy;
      taps++;
    }
    const struct hn_pool_row r = {.src = (const char *)x + (first < 0 ? 0 : first) * m->w * m->pitch * size,
                                  .taps_z = 1,
                                  .taps_y = taps,
                                  .step_y = (ptrdiff_t)m->dh * m->w * m->pitch,
                                  .width = m->w,
                                  .pitch = m->pitch,
                                  .kernel = m->kw,
                                  .stride = m->sw,
                                  .dilation = m->dw,
                                  .pad_begin = m->pl,
                                  .pad_end = m->pr,
                                  .counted_zy = count_pad ? counted : 0,
                                  .channels = m->c,
                                  .dst = (char *)y + (ptrdiff_t)oy * m->ow * m->c * size,
                                  .out_width = m->ow,
                                  .out_pitch = m->c};
    (max ? ops->max : ops->average)[as](&r);
  }
}

static uint16_t narrowed(hn_stored as, float x) {
  return as == HN_STORED_F16 ? hn_f32_to_f16(x) : hn_f32_to_bf16(x);
}
static float widened(hn_stored as, uint16_t x) {
  return as == HN_STORED_F16 ? hn_f16_to_f32(x) : hn_bf16_to_f32(x);
}

/* pool_image with values of 16 bits: x becomes what they hold, y what they gave. */
static void pool_narrow(ck *c, const struct hn_pool_ops *ops, const image *m, int mode, hn_stored as,
                        float *x, size_t n_in, float *y, size_t n_out) {
  uint16_t *from = (uint16_t *)(void *)ck_alloc(c, (n_in + 1) / 2, 0);
  uint16_t *to = (uint16_t *)(void *)ck_alloc(c, (n_out + 1) / 2, 0);
  for (size_t i = 0; i < n_in; i++) from[i] = narrowed(as, x[i]), x[i] = widened(as, from[i]);
  pool_image(ops, m, mode == 0, mode == 2, as, from, to);
  for (size_t i = 0; i < n_out; i++) y[i] = widened(as, to[i]);
}

static void check_image(ck *c, const struct hn_pool_ops *ops, image m, enum ck_fill fill, int mode,
                        hn_stored as) {
  static const char *const type[] = {"f32", "f16", "bf16"};
  static const double unit[] = {0, 0x1p-11, 0x1p-8}; /* of rounding the result */
  m.oh = extent(m.h, m.kh, m.sh, m.dh, m.pt, m.pb);
  m.ow = extent(m.w, m.kw, m.sw, m.dw, m.pl, m.pr);
  const size_t n_in = (size_t)m.h * m.w * m.pitch - (size_t)(m.pitch - m.c),
               n_out = (size_t)m.oh * m.ow * m.c;
  float *x = ck_alloc(c, n_in, 0), *y = ck_alloc(c, n_out, (size_t)m.c % 3);
  ck_fill(c, x, n_in, fill);
  ck_case(c, "%s %s %dx%dx%d pitch %d kernel %dx%d stride %dx%d dilation %dx%d pad %d,%d,%d,%d fill %s",
          mode == 0   ? "max"
          : mode == 1 ? "average"
                      : "average with padding",
          type[as], m.h, m.w, m.c, m.pitch, m.kh, m.kw, m.sh, m.sw, m.dh, m.dw, m.pt, m.pl, m.pb, m.pr,
          ck_fill_name(fill));
  if (as == HN_STORED_F32)
    pool_image(ops, &m, mode == 0, mode == 2, as, x, y);
  else
    pool_narrow(c, ops, &m, mode, as, x, n_in, y, n_out);
  for (int oy = 0; oy < m.oh; oy++)
    for (int ox = 0; ox < m.ow; ox++)
      for (int ch = 0; ch < m.c; ch++) {
        double sum = 0, mag = 0;
        float top = -INFINITY;
        int taps = 0, counted = 0;
        for (int i = 0; i < m.kh; i++)
          for (int j = 0; j < m.kw; j++) {
            const int iy = oy * m.sh - m.pt + i * m.dh, ix = ox * m.sw - m.pl + j * m.dw;
            counted += iy < m.h + m.pb && ix < m.w + m.pr;
            if (iy < 0 || ix < 0 || iy >= m.h || ix >= m.w) continue;
            const float v = x[((size_t)iy * m.w + ix) * m.pitch + ch];
            sum += v, mag += fabs((double)v), taps++;
            top = isnan(top) || top > v ? top : v;
          }
        const size_t at = ((size_t)oy * m.ow + ox) * m.c + ch;
        if (mode == 0) {
          ck_same(c, at, y[at], top);
        } else { /* taps - 1 sums, the rounded reciprocal, one product */
          const int count = mode == 2 ? counted : taps;
          const double d = count ? count : 1;
          const double bound = (taps + 2) * CK_EPS * mag / d + unit[as] * fabs(sum) / d;
          ck_near(c, at, y[at], sum / d,
                  bound + (as == HN_STORED_F16    ? 0x1p-25
                           : as == HN_STORED_BF16 ? 0x1p-134
                                                  : CK_TINY));
        }
      }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const int channels[] = {1, 3, 7, 8, 9, 16, 17, 31, 64, 67, 130};
  static const image windows[] = {{.h = 5, .w = 6, .kh = 2, .kw = 2, .sh = 2, .sw = 2, .dh = 1, .dw = 1},
                                  {.h = 7,
                                   .w = 7,
                                   .kh = 3,
                                   .kw = 3,
                                   .sh = 2,
                                   .sw = 2,
                                   .dh = 1,
                                   .dw = 1,
                                   .pt = 1,
                                   .pl = 1,
                                   .pb = 1,
                                   .pr = 1},
                                  {.h = 6,
                                   .w = 5,
                                   .kh = 5,
                                   .kw = 5,
                                   .sh = 1,
                                   .sw = 1,
                                   .dh = 1,
                                   .dw = 1,
                                   .pt = 2,
                                   .pl = 2,
                                   .pb = 2,
                                   .pr = 2},
                                  {.h = 9,
                                   .w = 8,
                                   .kh = 2,
                                   .kw = 3,
                                   .sh = 1,
                                   .sw = 2,
                                   .dh = 2,
                                   .dw = 3,
                                   .pt = 0,
                                   .pl = 1,
                                   .pb = 1,
                                   .pr = 2},
                                  {.h = 1, .w = 1, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1},
                                  {.h = 3,
                                   .w = 2,
                                   .kh = 7,
                                   .kw = 4,
                                   .sh = 3,
                                   .sw = 1,
                                   .dh = 1,
                                   .dw = 1,
                                   .pt = 6,
                                   .pl = 3,
                                   .pb = 6,
                                   .pr = 3}};
  for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        for (int mode = 0; mode < 3; mode++) {
          image m = windows[w];
          m.c = channels[i];
          m.pitch = m.c + (int)(i % 3);
          for (hn_stored as = HN_STORED_F32; as < HN_STORED_COUNT; as++)
            check_image(c, k->ops, m, fill, mode, as);
        }
}

struct job {
  const struct hn_pool_ops *ops;
  image m;
  bool max;
  const float *x;
  float *y;
};
static void run_job(void *arg) {
  struct job *j = arg;
  pool_image(j->ops, &j->m, j->max, false, HN_STORED_F32, j->x, j->y);
}

static void bench(ck *c, const struct hn_kernel *k) {
  struct job j = {k->ops,
                  {.h = 112,
                   .w = 112,
                   .c = 64,
                   .pitch = 64,
                   .kh = 3,
                   .kw = 3,
                   .sh = 2,
                   .sw = 2,
                   .dh = 1,
                   .dw = 1,
                   .pt = 1,
                   .pl = 1,
                   .pb = 1,
                   .pr = 1,
                   .oh = 56,
                   .ow = 56},
                  true,
                  NULL,
                  NULL};
  const size_t n_in = 112 * 112 * 64, n_out = 56 * 56 * 64;
  const struct hn_kernel *scalar = hn_kernel_find("pool", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, n_in, 0);
  ck_fill(c, x, n_in, CK_RANDOM);
  j.x = x;
  j.y = ck_alloc(c, n_out, 0);
  for (int max = 1; max >= 0; max--) {
    j.max = max;
    j.ops = k->ops;
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    ck_bench_line(c, max ? "max 3x3 s2 112x112x64" : "average 3x3 s2 112x112x64", t,
                  &(ck_work){.instructions = 9.0 * n_out, .read = 4.0 * n_in, .written = 4.0 * n_out}, ts);
  }
}

const ck_family ck_family_pool = {"pool", check, bench};
