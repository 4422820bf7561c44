#include "conv_cases.h"

#include "backends/cpu/kernels/post/epilogue.h"

void ck_serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = 0; i < tasks; i++) fn(arg, i, (uint32_t)(i % 2));
}

void ck_alone(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
}

void ck_square(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = x[i] * x[i] * p[0];
}

/* batch, groups, cin, cout, in, kernel, stride, dilation, pad, pad_end, extra_in, extra_out, flags, post; a
 * case a line. */
/* clang-format off */
const ck_conv_case ck_conv_cases[] = {
    {1, 1, 5, 7, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, 0, false},
    {2, 1, 8, 33, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 3, 5, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {1, 1, 3, 16, {1, 13, 17}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_LEAKY, false},
    {2, 1, 16, 40, {1, 9, 8}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 1, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP, false},
    {1, 3, 4, 10, {1, 8, 9}, {1, 3, 2}, {1, 1, 2}, {1, 2, 1}, {0, 2, 0}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 2, 6, 5, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 1, 2, 0, true},
    {2, 1, 3, 6, {4, 5, 6}, {3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 2}, 0, 0, HN_EPI_BIAS, true},
    {1, 1, 24, 65, {1, 1, 50}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {0, 0, 2}, 0, 0, HN_EPI_BIAS | HN_EPI_LEAKY | HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER, false},
    {1, 1, 64, 97, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, true},
    {1, 1, 4, 4, {1, 3, 3}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 4, 4}, {0, 4, 4}, 0, 0, 0, false},
    {1, 1, 6, 20, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, -1, -1}, 0, 0, 0, false},
    {1, 1, 3, 37, {1, 9, 80}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, {0, 1, 2}, {0, 1, 2}, 0, 0, HN_EPI_BIAS, false},
    /* lines of single taps, read where they lie: groups, gaps between pixels, dilation */
    {2, 3, 4, 10, {1, 7, 40}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 2, 5, 33, {1, 9, 67}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, {0, 1, 2}, {0, 1, 2}, 3, 0, HN_EPI_BIAS, true},
    {1, 1, 6, 16, {1, 8, 30}, {1, 2, 3}, {1, 1, 1}, {1, 2, 3}, {0, 0, 3}, {0, 2, 3}, 0, 1, 0, false},
    {1, 2, 3, 7, {5, 3, 31}, {3, 1, 2}, {1, 1, 1}, {2, 1, 1}, {1, 0, 0}, {1, 0, 1}, 0, 0, HN_EPI_BIAS, false},
    /* nothing at all, sums of nothing */
    {0, 1, 4, 4, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, 0, false},
    {1, 1, 0, 4, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false},
    /* wide pixels with gaps between them */
    {1, 1, 300, 40, {1, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 212, 0, HN_EPI_BIAS, false},
    /* more channels than a step of 32, folded lines, blocks of rows */
    {2, 1, 3, 8, {1, 20, 19}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}, 0, 0, HN_EPI_BIAS, false},
    {1, 1, 3, 8, {1, 20, 21}, {1, 5, 7}, {1, 1, 3}, {1, 2, 1}, {0, 4, 2}, {0, 3, 5}, 0, 0, HN_EPI_BIAS, true},
    {3, 1, 40, 40, {1, 9, 8}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 1, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP, false},
    {2, 1, 33, 50, {1, 9, 10}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 2, 1, HN_EPI_BIAS, false},
    {2, 1, 70, 20, {1, 8, 9}, {1, 3, 2}, {1, 3, 2}, {1, 2, 3}, {0, 0, 2}, {0, 3, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 3, 17, 10, {1, 8, 9}, {1, 3, 2}, {1, 1, 2}, {1, 2, 1}, {0, 2, 0}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 2, 36, 5, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 1, 2, 0, true},
    {2, 1, 33, 6, {4, 5, 6}, {3, 2, 3}, {2, 2, 1}, {1, 1, 1}, {1, 0, 2}, {1, 1, 2}, 0, 0, HN_EPI_BIAS, true},
    {1, 1, 36, 4, {1, 3, 3}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 4, 0}, {0, 4, 4}, 0, 0, 0, false},
    {1, 1, 36, 4, {1, 7, 7}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
    {1, 1, 40, 20, {1, 30, 40}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, true},
    {1, 1, 300, 150, {1, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 212, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL, false},
};
/* clang-format on */
const size_t ck_n_conv_cases = sizeof ck_conv_cases / sizeof *ck_conv_cases;
