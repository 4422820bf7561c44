/* Adapter of the conversions from and to 16-bit floats: all 65,536 codes one way; the other way every result
 * must be the nearest of its neighbours, of two equally near ones the even. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/halves/halves.h"
#include "check.h"

/* What a code says, by the format's definition; infinity stands for the next power of two where `round`. */
static double value_of(unsigned code, bool brain, bool round) {
  const int bits = brain ? 7 : 10, bias = brain ? 127 : 15, most = brain ? 255 : 31;
  const int e = (int)(code & 0x7fff) >> bits, m = (int)(code & ((1u << bits) - 1));
  double v = e ? ldexp(1 + ldexp(m, -bits), e - bias) : ldexp(m, 1 - bias - bits);
  if (e == most) v = m ? NAN : round ? ldexp(1, most - bias) : INFINITY;
  return code & 0x8000 ? -v : v;
}

static void check_from(ck *c, const struct hn_halves_ops *ops, bool brain) {
  enum { ALL = 1 << 16 };
  float *x = ck_alloc(c, ALL / 2, 0), *y = ck_alloc(c, ALL, 3);
  uint16_t *codes = (uint16_t *)x;
  for (int i = 0; i < ALL; i++) codes[i] = (uint16_t)i;
  ck_case(c, "all codes, brain=%d", brain);
  (brain ? ops->from_bf16 : ops->from_f16)(y, codes, ALL);
  for (int i = 0; i < ALL; i++) ck_same(c, (size_t)i, y[i], (float)value_of((unsigned)i, brain, false));
  ck_release_all(c);
}

static bool nearest(float x, uint16_t code, bool brain) {
  const unsigned m = code & 0x7fff;
  if (isnan(x)) return isnan(value_of(code, brain, false));
  const double at = value_of(m, brain, true), far = fabs((double)x);
  const bool infinite = isinf(value_of(m, brain, false));
  if (isnan(at) || (code >> 15 != 0) != (signbit(x) != 0)) return false;
  const double up = infinite ? INFINITY : (at + value_of(m + 1, brain, true)) / 2;
  const double down = m ? (at + value_of(m - 1, brain, true)) / 2 : -1;
  return (far < up || (far == up && m % 2 == 0)) && (far > down || (far == down && m % 2 == 0));
}

static void check_to(ck *c, const struct hn_halves_ops *ops, bool brain, size_t n, enum ck_fill fill) {
  float *x = ck_alloc(c, n, n % 3);
  /* The end lies at the guard page. */
  uint16_t *codes = (uint16_t *)(ck_alloc(c, (n + 1) / 2, 0) + (n + 1) / 2) - n;
  ck_fill(c, x, n, fill);
  for (size_t i = 0; i < n && fill == CK_WIDE;
       i++) { /* of all sizes; every third in the middle between two codes */
    const unsigned code = (unsigned)(ck_random(c) % (brain ? 0x7f80 : 0x7c00));
    const double v = value_of(code, brain, true), next = value_of(code + 1, brain, true);
    if (i % 3)
      x[i] = (float)(v + (next - v) * (double)(ck_random(c) % 4096) / 4096);
    else
      x[i] = (float)((v + next) / 2);
    if (ck_random(c) % 2) x[i] = -x[i];
  }
  ck_case(c, "to %s, n=%zu fill=%s", brain ? "bf16" : "f16", n, ck_fill_name(fill));
  (brain ? ops->to_bf16 : ops->to_f16)(codes, x, n);
  bool good = true;
  for (size_t i = 0; i < n; i++) good &= nearest(x[i], codes[i], brain);
  ck_true(c, good, "a result is not the nearest one");
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {1, 3, 7, 8, 9, 15, 16, 17, 33, 61, 5000};
  for (int brain = 0; brain < 2; brain++) {
    check_from(c, k->ops, brain);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        check_to(c, k->ops, brain, lengths[l], fill);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
      const size_t n = lengths[l];
      float *y = ck_alloc(c, n, 0);
      uint16_t *codes = (uint16_t *)(ck_alloc(c, (n + 1) / 2, 0) + (n + 1) / 2) - n;
      for (size_t i = 0; i < n; i++) codes[i] = (uint16_t)ck_random(c);
      ck_case(c, "from %s, n=%zu", brain ? "bf16" : "f16", n);
      const struct hn_halves_ops *ops = k->ops;
      (brain ? ops->from_bf16 : ops->from_f16)(y, codes, n);
      for (size_t i = 0; i < n; i++) ck_same(c, i, y[i], (float)value_of(codes[i], brain, false));
      ck_release_all(c);
    }
  }
}

struct job {
  const struct hn_halves_ops *ops;
  float *x;
  void *h;
  bool back;
};
static void run_job(void *arg) {
  struct job *j = arg;
  if (j->back)
    j->ops->from_f16(j->x, j->h, 4096);
  else
    j->ops->to_f16(j->h, j->x, 4096);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("halves", "f32_16", HN_ISA_SCALAR);
  struct job j = {NULL, ck_alloc(c, 4096, 0), ck_alloc(c, 2048, 0), false};
  ck_fill(c, j.x, 4096, CK_RANDOM);
  for (int back = 0; back < 2; back++) {
    j.back = back, j.ops = k->ops;
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    const ck_work work = {
        .instructions = 4096.0, .read = (back ? 2 : 4) * 4096.0, .written = (back ? 4 : 2) * 4096.0};
    ck_bench_line(c, back ? "f16 to f32 4096" : "f32 to f16 4096", t, &work, ts);
  }
}

const ck_family ck_family_halves = {"halves", check, bench};
