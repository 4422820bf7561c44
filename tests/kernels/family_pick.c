/* Adapter of picked elements: bits move, so every comparison is exact. Elements are numbered; memory between
 * the pixels must stay as it was. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/movement/windows.h"
#include "check.h"

typedef enum order { ORDER_SAME, ORDER_TURNED, ORDER_SHUFFLED, ORDER_LAST, ORDER_RANDOM, ORDERS } order;
static const char *const order_names[] = {"same", "turned", "shuffled", "last", "random"};

enum { MOST = 130 };

typedef struct lists {
  int32_t from[MOST];
  uint32_t first[MOST + 1];
  hn_pick_window window[MOST];
} lists;

static hn_pick find(ck *c, lists *l, order o, size_t n, size_t width, uint32_t vw) {
  for (size_t i = 0; i < n; i++) {
    const size_t half = (width + 1) / 2, at = i % width;
    const size_t of[] = {at, width - 1 - at, at / 2 + (at % 2) * half < width ? at / 2 + (at % 2) * half : at,
                         width - 1, (size_t)ck_random(c) % width};
    l->from[i] = (int32_t)of[o];
  }
  hn_windows_find(l->from, n, width, vw, l->first, l->window);
  return (hn_pick){n, l->first, l->window};
}

static void check_pixels(ck *c, const struct hn_pick_ops *ops, order o, size_t n, size_t width,
                         size_t count) {
  static lists l;
  const size_t src_step = width + count % 3, dst_step = n + width % 2;
  const size_t n_src = count ? (count - 1) * src_step + width : 0,
               n_dst = count ? (count - 1) * dst_step + n : 0;
  float *src = ck_alloc(c, n_src, 0), *dst = ck_alloc(c, n_dst, n % 2);
  for (size_t i = 0; i < n_src; i++) src[i] = (float)(i + 1);
  for (size_t i = 0; i < n_dst; i++) dst[i] = -1;
  ck_case(c, "%zu of %zu, %s, %zu pixels", n, width, order_names[o], count);
  const hn_pick pick = find(c, &l, o, n, width, ops->vw);
  ops->pixels(&pick, (uint32_t *)(void *)dst, (ptrdiff_t)dst_step, (const uint32_t *)(const void *)src,
              (ptrdiff_t)src_step, count);
  for (size_t p = 0; p < count; p++)
    for (size_t i = 0; i < dst_step && p * dst_step + i < n_dst; i++)
      ck_same(c, p * dst_step + i, dst[p * dst_step + i], i < n ? src[p * src_step + (size_t)l.from[i]] : -1);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t sizes[] = {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 58, 64, 116};
  static const size_t counts[] = {0, 1, 2, 31, 32, 33, 70};
  enum { SIZES = sizeof sizes / sizeof *sizes, COUNTS = sizeof counts / sizeof *counts };
  for (int o = 0; o < ORDERS; o++)
    for (size_t i = 0; i < SIZES; i++)
      for (size_t j = 0; j < SIZES; j++)
        check_pixels(c, k->ops, (order)o, sizes[i], sizes[j], counts[(i + j + (size_t)o) % COUNTS]);
}

struct job {
  const struct hn_pick_ops *ops;
  hn_pick pick;
  uint32_t *dst;
  const uint32_t *src;
  size_t width, count;
};
static void run_job(void *arg) {
  const struct job *j = arg;
  j->ops->pixels(&j->pick, j->dst, (ptrdiff_t)j->pick.n, j->src, (ptrdiff_t)j->width, j->count);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t shapes[][3] = {{58, 116, 100}, {116, 116, 1600}, {464, 464, 100}};
  const struct hn_kernel *scalar = hn_kernel_find("pick", "words", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const size_t n = shapes[i][0], width = shapes[i][1], count = shapes[i][2];
    int32_t *from = calloc(n, sizeof *from);
    uint32_t *first = calloc(2 * (n + 1), sizeof *first);
    hn_pick_window *window = calloc(2 * n, sizeof *window);
    if (!from || !first || !window) exit(6);
    for (size_t e = 0; e < n; e++) from[e] = (int32_t)(e % 2 * (width / 2) + e / 2);
    float *x = ck_alloc(c, width * count, 0);
    ck_fill(c, x, width * count, CK_RANDOM);
    const struct hn_pick_ops *ops = k->ops, *plain = scalar->ops;
    hn_windows_find(from, n, width, ops->vw, first, window);
    hn_windows_find(from, n, width, 1, first + n + 1, window + n);
    struct job j = {
        ops,  {n, first, window}, (uint32_t *)(void *)ck_alloc(c, n * count, 0), (uint32_t *)(void *)x, width,
        count};
    const double t = ck_time(run_job, &j);
    j.ops = plain, j.pick = (hn_pick){n, first + n + 1, window + n};
    const double ts = k == scalar ? 0 : ck_time(run_job, &j), bytes = 4.0 * (double)(n * count);
    char label[48];
    snprintf(label, sizeof label, "%zu of %zu, %zu pixels", n, width, count);
    ck_bench_line(c, label, t, &(ck_work){.read = bytes, .written = bytes}, ts);
    ck_release_all(c);
    free(from), free(first), free(window);
  }
}

const ck_family ck_family_pick = {"pick", check, bench};
