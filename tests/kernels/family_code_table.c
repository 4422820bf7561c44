/* Family "code_table": all codes, all lengths of a tail, in place and not. */
#include <string.h>

#include "backends/cpu/kernels/code_table/code_table.h"
#include "check.h"

enum { MOST = 300, BENCH = 1 << 14 };

/* Bytes that end where the room ends, so that reading on is seen. */
static uint8_t *bytes(ck *c, size_t n) {
  const size_t words = (n + 3) / 4;
  return (uint8_t *)(ck_alloc(c, words, 0) + words) - n;
}

static void check_case(ck *c, const hn_code_table_ops *ops, size_t n, bool in_place) {
  uint8_t *table = bytes(c, 256), *x = bytes(c, n), *y = in_place ? x : bytes(c, n), from[MOST];
  for (int i = 0; i < 256; i++) table[i] = (uint8_t)ck_random(c);
  for (size_t i = 0; i < n; i++) from[i] = x[i] = n >= 256 ? (uint8_t)i : (uint8_t)ck_random(c);
  ck_case(c, "n=%zu%s", n, in_place ? " in place" : "");
  ops->look_up(y, x, n, table);
  for (size_t i = 0; i < n; i++) ck_same(c, i, (float)y[i], (float)table[from[i]]);
  ck_release_all(c);
}

/* Rows with gaps, which stay. */
static void check_rows(ck *c, const hn_code_table_ops *ops, size_t rows, size_t n) {
  const size_t pitch = n + 3, all = rows * pitch - 3;
  uint8_t *table = bytes(c, 256), *y = bytes(c, all), from[MOST * 2];
  for (int i = 0; i < 256; i++) table[i] = (uint8_t)ck_random(c);
  for (size_t i = 0; i < all; i++) from[i] = y[i] = (uint8_t)ck_random(c);
  ck_case(c, "%zu rows of %zu", rows, n);
  ops->rows(y, (ptrdiff_t)pitch, rows, n, table);
  for (size_t i = 0; i < all; i++)
    ck_same(c, i, (float)y[i], (float)(i % pitch < n ? table[from[i]] : from[i]));
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t widths[] = {1, 16, 31, 32, 33, 64, 70};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (size_t rows = 1; rows <= 5; rows++) check_rows(c, k->ops, rows, widths[i]);
  for (size_t n = 0; n <= 100; n++) check_case(c, k->ops, n, n & 1);
  check_case(c, k->ops, 256, false);
  check_case(c, k->ops, MOST, true);
}

struct job {
  const hn_code_table_ops *ops;
  uint8_t *x, *y, *table;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->look_up(j->y, j->x, BENCH, j->table);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("code_table", "u8", HN_ISA_SCALAR);
  struct job j = {k->ops, bytes(c, BENCH), bytes(c, BENCH), bytes(c, 256)};
  for (int i = 0; i < BENCH; i++) j.x[i] = (uint8_t)(i * 37);
  memset(j.table, 5, 256);
  const double t = ck_time(run_job, &j);
  j.ops = scalar->ops;
  const double ts = k == scalar ? 0 : ck_time(run_job, &j);
  /* Picking a byte is ten instructions for 32 codes. */
  const ck_work work = {.instructions = 10.0 * BENCH / 2, .read = BENCH, .written = BENCH};
  ck_bench_line(c, "16384 codes", t, &work, ts);
}

const ck_family ck_family_code_table = {"code_table", check, bench};
