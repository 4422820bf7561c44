/* The body of planes_f32_<tier>.c. The including file defines, after vec.h, SIDE (vectors of pixels at a
 * time), `turned` (stores 8 vectors of pixels as pixels of 8 channels) and `spread`. */
#include "backends/cpu/kernels/template.h"

enum { OUTPUTS = HN_PLANES_OUTPUTS };

/* A vectors of pixels from ox on, of one block of outputs. */
static inline __attribute__((always_inline)) void block(const hn_planes_row *r, const int A, int64_t ox,
                                                        uint32_t b) {
  vf acc[SIDE][OUTPUTS];
  const uint32_t first = b * OUTPUTS, count = r->outputs - first < OUTPUTS ? r->outputs - first : OUTPUTS;
  float bias[OUTPUTS] = {0};
  if ((r->flags & HN_EPI_BIAS) && !HN_FAULT("planes_no_bias"))
    for (uint32_t o = 0; o < count; o++) bias[o] = r->bias[first + o];
  HN_UNROLL for (int o = 0; o < OUTPUTS; o++) HN_UNROLL for (int a = 0; a < A; a++) acc[a][o] =
      v_set1(bias[o]);
  for (uint32_t v = 0; v < r->rows; v++) {
    const float *x = r->x[v] + ox, *w = r->w[v] + b * r->w_block;
    for (uint32_t u = 0; u < r->taps; u++, w += OUTPUTS) {
      const float *at = x + r->tap[u];
      vf in[SIDE];
      HN_UNROLL for (int a = 0; a < A; a++) in[a] = v_load(at + a * VEC_W);
      HN_UNROLL for (int o = 0; o < OUTPUTS; o++) {
        const vf weight = v_set1(w[o]);
        HN_UNROLL for (int a = 0; a < A; a++) v_fma_into(&acc[a][o], in[a], weight);
      }
    }
  }
  if (r->flags & HN_EPI_CLAMP) {
    const vf lo = v_set1(r->lo), hi = v_set1(r->hi);
    HN_UNROLL for (int a = 0; a < A; a++) HN_UNROLL for (int o = 0; o < OUTPUTS; o++) acc[a][o] =
        v_min_number(hi, v_max_number(lo, acc[a][o]));
  } else if (r->flags & HN_EPI_LEAKY) {
    const vf slope = v_set1(r->slope);
    HN_UNROLL for (int a = 0; a < A; a++) HN_UNROLL for (int o = 0; o < OUTPUTS; o++) acc[a][o] =
        v_sel(v_lt(acc[a][o], v_zero()), v_mul(acc[a][o], slope), acc[a][o]);
  }
  float *y = r->y + ox * r->y_pixel + first;
  HN_UNROLL for (int a = 0; a < A; a++) {
    const int64_t left = r->n - ox - a * VEC_W;
    turned(acc[a], y + a * VEC_W * r->y_pixel, r->y_pixel,
           left < VEC_W ? (HN_FAULT("planes_last_pixel") ? left - 1 : left) : VEC_W, count);
  }
}

static __attribute__((noinline)) void block_1(const hn_planes_row *r, int64_t ox, uint32_t b) {
  block(r, 1, ox, b);
}
#if SIDE > 1
static __attribute__((noinline)) void block_2(const hn_planes_row *r, int64_t ox, uint32_t b) {
  block(r, 2, ox, b);
}
static __attribute__((noinline)) void block_3(const hn_planes_row *r, int64_t ox, uint32_t b) {
  block(r, 3, ox, b);
}
#endif

static void row(const hn_planes_row *r) {
  const uint32_t blocks = (r->outputs + OUTPUTS - 1) / OUTPUTS;
  for (int64_t ox = 0, a; ox < r->n; ox += a * VEC_W) {
    const int64_t left = (r->n - ox + VEC_W - 1) / VEC_W;
    a = SIDE == 1 ? 1 : left == 4 ? 2 : left < SIDE ? left : SIDE;
    for (uint32_t b = 0; b < blocks; b++) {
#if SIDE > 1
      if (a == 3)
        block_3(r, ox, b);
      else if (a == 2)
        block_2(r, ox, b);
      else
#endif
        block_1(r, ox, b);
    }
  }
}

static const hn_planes_ops ops = {VEC_W, row, spread};
