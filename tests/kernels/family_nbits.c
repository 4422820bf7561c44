/* Adapter of the columns of few bits: products against sums in f64 of decoded values, and decoded values
 * themselves, of all widths, around vectors' ends. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/nbits/nbits.h"
#include "check.h"

enum { MOST_ROWS = 9, COLUMNS = 6 };

static uint8_t *bytes(ck *c, size_t n) { /* ends at the guard page */
  uint8_t *p = (uint8_t *)(ck_alloc(c, (n + 3) / 4, 0) + (n + 3) / 4) - n;
  for (size_t i = 0; i < n; i++) p[i] = (uint8_t)ck_random(c);
  return p;
}

static uint32_t code_at(const uint8_t *p, uint32_t bits, size_t i) {
  const size_t each = 8 / bits;
  return (uint32_t)p[i / each] >> (i % each * bits) & ((1u << bits) - 1);
}

enum zeros { MIDDLE, CODES, FLOATS, ZEROS };

static double value(const hn_nbits_matrix *w, size_t n, size_t k) {
  const size_t block = w->block_bytes * 8 / w->bits, b = k / block;
  const double zero = w->zeros         ? (double)code_at(w->zeros + n * w->zero_row, w->bits, b)
                      : w->zero_floats ? (double)w->zero_floats[n * w->blocks + b]
                                       : (double)(1u << (w->bits - 1));
  return ((double)code_at(w->codes + n * w->blocks * w->block_bytes, w->bits, k) - zero) *
         (double)w->scales[n * w->blocks + b];
}

static void check_product(ck *c, const hn_nbits_ops *ops, uint32_t bits, size_t block, size_t k,
                          enum zeros kind, size_t rows) {
  hn_nbits_matrix w = {.blocks = (k + block - 1) / block, .block_bytes = block * bits / 8, .bits = bits};
  const size_t all = COLUMNS * w.blocks;
  float *a = ck_alloc(c, rows * k, 1), *scales = ck_alloc(c, all, 0), *zeros = ck_alloc(c, all, 0),
        *bias = ck_alloc(c, COLUMNS, 0), *y = ck_alloc(c, rows * COLUMNS, 0);
  w.codes = bytes(c, COLUMNS * w.blocks * w.block_bytes);
  ck_fill(c, a, rows * k, CK_RANDOM);
  ck_fill(c, scales, all, CK_RANDOM);
  ck_fill(c, zeros, all, CK_RANDOM);
  ck_fill(c, bias, COLUMNS, CK_RANDOM);
  w.scales = scales;
  w.zero_row = (w.blocks * bits + 7) / 8;
  if (kind == CODES) w.zeros = bytes(c, COLUMNS * w.zero_row);
  if (kind == FLOATS) w.zero_floats = zeros;
  float *packed = ck_alloc(c, rows * ops->packed(&w), 0);
  for (size_t r = 0; r < rows; r++) ops->pack(&w, a + r * k, k, packed + r * ops->packed(&w));
  ck_case(c, "product bits=%u block=%zu k=%zu zeros=%d rows=%zu", bits, block, k, (int)kind, rows);
  ops->product(&w, packed, rows, 0, 1, bias, y, COLUMNS);
  ops->product(&w, packed, rows, 1, COLUMNS, bias, y, COLUMNS);
  for (size_t r = 0; r < rows; r++)
    for (size_t n = 0; n < COLUMNS; n++) {
      double sum = (double)bias[n], size = fabs(sum);
      for (size_t i = 0; i < k; i++) {
        const double p = (double)a[r * k + i] * value(&w, n, i);
        sum += p, size += fabs(p);
      }
      /* a value carries two roundings of its own */
      ck_near(c, r * COLUMNS + n, y[r * COLUMNS + n], sum, (double)(k + 6) * CK_EPS * size + CK_TINY);
    }
  ck_release_all(c);
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
  static const size_t blocks[] = {16, 32, 64, 256}, lengths[] = {1, 15, 16, 33, 64, 200, 513},
                      ends[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 128};
  for (uint32_t bits = 2; bits <= 8; bits *= 2) {
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
      for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int zeros = 0; zeros < ZEROS; zeros++)
          for (size_t rows = 1; rows <= MOST_ROWS; rows += 1 + rows / 2)
            check_product(c, k->ops, bits, blocks[b], lengths[l], (enum zeros)zeros, rows);
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
      check_decode(c, k->ops, bits, ends[e], 0);
      check_decode(c, k->ops, bits, ends[e], 1u << (bits - 1));
    }
  }
}

struct job {
  const hn_nbits_ops *ops;
  hn_nbits_matrix w;
  const float *a;
  float *y;
  size_t rows;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->product(&j->w, j->a, j->rows, 0, 256, NULL, j->y, 256);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("nbits", "f32", HN_ISA_SCALAR);
  for (uint32_t bits = 2; bits <= 8; bits *= 2)
    for (size_t rows = 1; rows <= 8; rows += 7) {
      struct job j = {k->ops, {.blocks = 64, .block_bytes = 4 * bits, .bits = bits}, NULL, NULL, rows};
      float *scales = ck_alloc(c, 256 * 64, 0);
      ck_fill(c, scales, 256 * 64, CK_RANDOM);
      j.w.codes = bytes(c, 256 * 64 * j.w.block_bytes);
      j.w.scales = scales;
      j.a = ck_alloc(c, rows * j.ops->packed(&j.w), 0);
      ck_fill(c, (float *)(uintptr_t)j.a, rows * j.ops->packed(&j.w), CK_RANDOM);
      j.y = ck_alloc(c, rows * 256, 0);
      const double t = ck_time(run_job, &j);
      j.ops = scalar->ops;
      const double ts = k == scalar ? 0 : ck_time(run_job, &j);
      char label[64];
      snprintf(label, sizeof label, "%u bits, %zux2048x256", bits, rows);
      const ck_work work = {.flops = 2.0 * 2048 * 256 * (double)rows,
                            .read = 256.0 * 64 * (double)j.w.block_bytes + 256 * 64 * 4};
      ck_bench_line(c, label, t, &work, ts);
      ck_release_all(c);
    }
}

const ck_family ck_family_nbits = {"nbits", check, bench};
