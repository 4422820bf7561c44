/* Adapter of codes of few bits: decoded values of all widths, around vectors' ends. */
#include <stdio.h>

#include "backends/cpu/kernels/nbits/nbits.h"
#include "check.h"

static uint8_t *bytes(ck *c, size_t n) { /* ends at the guard page */
  uint8_t *p = (uint8_t *)(ck_alloc(c, (n + 3) / 4, 0) + (n + 3) / 4) - n;
  for (size_t i = 0; i < n; i++) p[i] = (uint8_t)ck_random(c);
  return p;
}

static uint32_t code_at(const uint8_t *p, uint32_t bits, size_t i) {
  const size_t each = 8 / bits;
  return (uint32_t)p[i / each] >> (i % each * bits) & ((1u << bits) - 1);
}

static void check_decode(ck *c, const hn_nbits_ops *ops, uint32_t bits, size_t n, uint32_t flip) {
  const uint8_t *codes = bytes(c, (n * bits + 7) / 8);
  float *y = ck_alloc(c, n, n % 2);
  ck_case(c, "decode bits=%u n=%zu flip=%u", bits, n, flip);
  ops->decode(y, codes, n, bits, flip, 3.0f, 0.37f);
  for (size_t i = 0; i < n; i++)
    ck_same(c, i, y[i], ((float)(code_at(codes, bits, i) ^ flip) - 3.0f) * 0.37f);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t ends[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 128};
  for (uint32_t bits = 2; bits <= 8; bits *= 2) {
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
      check_decode(c, k->ops, bits, ends[e], 0);
      check_decode(c, k->ops, bits, ends[e], 1u << (bits - 1));
    }
  }
}

enum { COUNT = 4096 };
struct job {
  const hn_nbits_ops *ops;
  const uint8_t *codes;
  float *y;
  uint32_t bits;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->decode(j->y, j->codes, COUNT, j->bits, 0, 3.0f, 0.37f);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("nbits", "f32", HN_ISA_SCALAR);
  for (uint32_t bits = 2; bits <= 8; bits *= 2) {
    struct job j = {k->ops, bytes(c, COUNT * bits / 8), ck_alloc(c, COUNT, 0), bits};
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[64];
    snprintf(label, sizeof label, "%u bits, %d codes", bits, (int)COUNT);
    const ck_work work = {.flops = 2.0 * COUNT, .read = COUNT * bits / 8.0, .written = 4.0 * COUNT};
    ck_bench_line(c, label, t, &work, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_nbits = {"nbits", check, bench};
