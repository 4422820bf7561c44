/* Family "pool_int8": maxima over taps that lie anywhere, sums over pixels. */
#include <string.h>

#include "backends/cpu/kernels/pool_int8/pool_int8.h"
#include "check.h"

enum { TAPS = 9 };

static void check_case(ck *c, const hn_pool_int8_ops *ops, size_t channels, size_t taps, bool is_signed) {
  const size_t words = (channels + 3) / 4;
  uint8_t *x[TAPS], *y = (uint8_t *)(ck_alloc(c, words, 0) + words) - channels;
  for (size_t t = 0; t < TAPS; t++) {
    x[t] = (uint8_t *)(ck_alloc(c, words, 0) + words) - channels;
    for (size_t i = 0; i < channels; i++) x[t][i] = (uint8_t)ck_random(c);
  }
  ck_case(c, "channels=%zu taps=%zu signed=%d", channels, taps, is_signed);
  ops->max(y, (const uint8_t *const *)x, taps, channels, is_signed);
  for (size_t i = 0; i < channels; i++) {
    int best = is_signed ? -128 : 0;
    for (size_t t = 0; t < taps; t++) {
      const int v = is_signed ? (int8_t)x[t][i] : x[t][i];
      if (v > best) best = v;
    }
    ck_same(c, i, (float)(is_signed ? (int8_t)y[i] : y[i]), (float)best);
  }
  ck_release_all(c);
}

static void check_sum(ck *c, const hn_pool_int8_ops *ops, size_t channels, size_t pixels, bool is_signed) {
  const size_t pitch = channels + 5, n = pixels ? (pixels - 1) * pitch + channels : 0, words = (n + 3) / 4;
  uint8_t *x = (uint8_t *)(ck_alloc(c, words, 0) + words) - n;
  int32_t *y = (int32_t *)(void *)ck_alloc(c, channels, 0);
  for (size_t i = 0; i < n; i++) x[i] = ck_random(c) % 8 ? 255 : (uint8_t)ck_random(c);
  for (size_t i = 0; i < channels; i++) y[i] = (int32_t)i - 7;
  ck_case(c, "sum channels=%zu pixels=%zu signed=%d", channels, pixels, is_signed);
  ops->sum(y, x, (ptrdiff_t)pitch, pixels, channels, is_signed);
  for (size_t i = 0; i < channels; i++) {
    int32_t want = (int32_t)i - 7;
    for (size_t p = 0; p < pixels; p++) want += is_signed ? (int8_t)x[p * pitch + i] : x[p * pitch + i];
    ck_same(c, i, (float)y[i], (float)want);
  }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t pixels[] = {0, 1, 49, 256, 257, 600};
  for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
    for (int is_signed = 0; is_signed < 2; is_signed++) {
      check_sum(c, k->ops, 3, pixels[i], is_signed);
      check_sum(c, k->ops, 64, pixels[i], is_signed);
      check_sum(c, k->ops, 130, pixels[i], is_signed);
    }
  static const size_t channels[] = {1, 3, 31, 63, 64, 65, 128, 200};
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
    for (size_t taps = 0; taps <= TAPS; taps++)
      for (int is_signed = 0; is_signed < 2; is_signed++) check_case(c, k->ops, channels[i], taps, is_signed);
}

struct job {
  const hn_pool_int8_ops *ops;
  const uint8_t *tap[TAPS];
  uint8_t *y;
};
static void run_job(void *arg) {
  struct job *j = arg;
  for (int i = 0; i < 64; i++) j->ops->max(j->y, j->tap, TAPS, 64, false);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("pool_int8", "max", HN_ISA_SCALAR);
  struct job j = {.ops = k->ops, .y = (uint8_t *)ck_alloc(c, 16, 0)};
  for (int t = 0; t < TAPS; t++) {
    float *x = ck_alloc(c, 16, 0);
    memset(x, t, 64);
    j.tap[t] = (const uint8_t *)x;
  }
  const double t = ck_time(run_job, &j);
  j.ops = scalar->ops;
  const double ts = k == scalar ? 0 : ck_time(run_job, &j);
  /* A vector instruction takes four times as many codes as f32. */
  const ck_work work = {.instructions = 64.0 * 64 * TAPS / 4, .read = 64.0 * 64 * TAPS, .written = 64.0 * 64};
  ck_bench_line(c, "max of 9, 64ch", t, &work, ts);
}

const ck_family ck_family_pool_int8 = {"pool_int8", check, bench};
