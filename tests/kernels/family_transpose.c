/* Adapter of the transposes: bits move, so every comparison is exact. Elements are numbered, which shows any
 * misplacement; memory past the strides must stay as it was. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/transpose/transpose.h"
#include "check.h"

static size_t floats(size_t bytes) { return (bytes + 3) / 4; }

/* Number of element (r, c), different from its neighbours in every byte size. */
static void put(unsigned char *p, size_t size, uint64_t v) {
  v = (v + 1) * 0x9e3779b97f4a7c15u;
  memcpy(p, (unsigned char *)&v + (8 - size), size);
}

static void check_matrix(ck *c, const struct hn_transpose_ops *ops, unsigned log_size, size_t rows,
                         size_t cols) {
  const size_t size = (size_t)1 << log_size, lds = cols + rows % 3, ldd = rows + cols % 3;
  const size_t n_src = rows && cols ? ((rows - 1) * lds + cols) * size : 0;
  const size_t n_dst = rows && cols ? ((cols - 1) * ldd + rows) * size : 0;
  /* The end, not the start, lies at the guard page, or a byte before it: elements are anywhere. */
  const size_t odd = (rows ^ cols) & 1;
  float *src_block = ck_alloc(c, floats(n_src + odd), 0), *dst_block = ck_alloc(c, floats(n_dst + odd), 0);
  unsigned char *src = (unsigned char *)(src_block + floats(n_src + odd)) - n_src - odd;
  unsigned char *dst = (unsigned char *)(dst_block + floats(n_dst + odd)) - n_dst - odd;
  memset(dst, 0x5a, n_dst);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < cols; j++) put(src + (r * lds + j) * size, size, r * 1000 + j);
  ck_case(c, "matrix of %zu-byte elements %zux%zu strides %zu, %zu", size, rows, cols, lds, ldd);
  ops->matrix[log_size](dst, (ptrdiff_t)ldd, src, (ptrdiff_t)lds, rows, cols);
  size_t wrong = 0, touched = 0;
  for (size_t j = 0; j < cols; j++) {
    for (size_t r = 0; r < rows; r++) {
      unsigned char want[8];
      put(want, size, r * 1000 + j);
      wrong += memcmp(dst + (j * ldd + r) * size, want, size) != 0;
    }
    if (rows && j + 1 < cols)
      for (size_t b = rows * size; b < ldd * size; b++) touched += dst[j * ldd * size + b] != 0x5a;
  }
  ck_true(c, !wrong, "every element is in its place");
  ck_true(c, !touched, "the gaps between rows are untouched");
  ck_release_all(c);
}

static void check_three(ck *c, const struct hn_transpose_ops *ops, size_t n) {
  float *planes[3], *mixed = ck_alloc(c, 3 * n, n % 3), *back[3];
  for (int k = 0; k < 3; k++) {
    planes[k] = ck_alloc(c, n, (n + (size_t)k) % 3);
    back[k] = ck_alloc(c, n, (n + 1) % 3);
    for (size_t i = 0; i < n; i++) planes[k][i] = (float)(i * 3 + (size_t)k + 1);
  }
  ck_case(c, "interleave3 n=%zu", n);
  ops->interleave3((uint32_t *)mixed, (uint32_t *)planes[0], (uint32_t *)planes[1], (uint32_t *)planes[2], n);
  for (size_t i = 0; i < 3 * n; i++) ck_same(c, i, mixed[i], (float)(i + 1));
  ck_case(c, "deinterleave3 n=%zu", n);
  for (size_t i = 0; i < 3 * n; i++) mixed[i] = (float)(i + 1);
  ops->deinterleave3((uint32_t *)back[0], (uint32_t *)back[1], (uint32_t *)back[2], (uint32_t *)mixed, n);
  for (int k = 0; k < 3; k++)
    for (size_t i = 0; i < n; i++) ck_same(c, i, back[k][i], planes[k][i]);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t sizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 53, 70};
  const size_t count = sizeof sizes / sizeof *sizes;
  for (unsigned log_size = 0; log_size < 4; log_size++)
    for (size_t r = 0; r < count; r++)
      for (size_t j = 0; j < count; j++) check_matrix(c, k->ops, log_size, sizes[r], sizes[j]);
  for (size_t i = 0; i < count; i++) check_three(c, k->ops, sizes[i]);
  check_three(c, k->ops, 257);
}

struct job {
  const struct hn_transpose_ops *ops;
  uint32_t *dst;
  const uint32_t *src;
  size_t rows, cols;
};
static void run_job(void *arg) {
  struct job *j = arg;
  if (j->rows == 3)
    j->ops->interleave3(j->dst, j->src, j->src + j->cols, j->src + 2 * j->cols, j->cols);
  else
    j->ops->matrix[2](j->dst, (ptrdiff_t)j->rows, j->src, (ptrdiff_t)j->cols, j->rows, j->cols);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t shapes[][2] = {{64, 3136}, {512, 49}, {256, 256}, {3, 50176}};
  const struct hn_kernel *scalar = hn_kernel_find("transpose", "bits", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const size_t rows = shapes[i][0], cols = shapes[i][1];
    float *x = ck_alloc(c, rows * cols, 0);
    struct job j = {k->ops, (uint32_t *)ck_alloc(c, rows * cols, 0), (uint32_t *)x, rows, cols};
    ck_fill(c, x, rows * cols, CK_RANDOM);
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "%s 4 B %zux%zu", rows == 3 ? "interleave" : "matrix", rows, cols);
    const double bytes = 4.0 * (double)(rows * cols);
    ck_bench_line(c, label, t, &(ck_work){.read = bytes, .written = bytes}, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_transpose = {"transpose", check, bench};
