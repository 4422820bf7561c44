/* Family "dots": through the driver, against a double oracle. */
#include "backends/cpu/conv/dots_driver.h"
#include "backends/cpu/kernels/features.h"
#include "conv_oracle.h"

static hn_dots describe(const ck_conv_case *s, uint32_t threads, size_t l1) {
  hn_dots d = {.batch = s->batch, .channels = s->cin, .outputs = s->cout};
  ck_conv_geometry(s, &d.window, &d.in_pixel, &d.in_batch, &d.y);
  hn_dots_plan(&d, threads, l1);
  return d;
}

static void call(void *args) { hn_dots_exec(args, ck_backwards, NULL); }

static void run(ck *c, const void *ops, const ck_conv_data *t, size_t l1) {
  const hn_dots d = describe(t->s, 2, l1);
  float *packed = ck_alloc(c, hn_dots_packed_size(&d), 0);
  hn_dots_pack(&d, t->w, packed);
  call(&(hn_dots_args){&d, ops, t->x, packed, t->y, &t->epilogue});
}

static double seconds(const struct hn_kernel *k, const ck_conv_case *s) {
  const hn_dots d = describe(s, 1, hn_cpu()->l1d);
  ck_conv_memory m = ck_conv_memory_of(d.in_batch, d.y.batch, hn_dots_packed_size(&d), 16, 0);
  hn_dots_args a = {&d, k->ops, m.x, m.w, m.y, &m.epilogue};
  return ck_conv_seconds(call, &a, &m);
}

static const int64_t channels[] = {1, 3, 8, 15, 16, 17, 24, 33, 64};
/* As in conv_cases.c, a case a line. */
/* clang-format off */
static const ck_conv_case cases[] = {
    {1, 1, 0, 1, {1, 5, 19}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {2, 1, 0, 1, {1, 3, 40}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, true},
    {1, 1, 0, 2, {1, 6, 70}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_LEAKY, false},
    {2, 1, 0, 3, {1, 4, 33}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 5, 3, HN_EPI_BIAS, true},
    {1, 1, 0, 4, {1, 7, 14}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 1}, {0, 1, 2}, 3, 0, HN_EPI_CLAMP, false},
    {1, 1, 0, 5, {1, 9, 21}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 0, 0, HN_EPI_BIAS, false},
    {1, 1, 0, 6, {3, 4, 9}, {3, 2, 3}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, 0, 1, HN_EPI_BIAS, true},
    {1, 1, 0, 7, {1, 5, 6}, {1, 7, 9}, {1, 1, 1}, {1, 1, 1}, {0, 3, 4}, {0, 3, 4}, 0, 0, HN_EPI_BIAS, false},
    {1, 1, 0, 8, {2, 3, 12}, {2, 1, 2}, {2, 1, 3}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, 1, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {1, 1, 0, 11, {1, 2, 17}, {1, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 2, 5}, {0, 2, 5}, 0, 0, HN_EPI_BIAS, false},
    {0, 1, 0, 1, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
};
/* clang-format on */
static const ck_conv_line lines[] = {
    {"3x3 64>1 256x256", {1, 64, 1}, 256, 3, 1}, {"3x3 64>3 256x256", {1, 64, 3}, 256, 3, 1},
    {"3x3 32>2 64x64", {1, 32, 2}, 64, 3, 1},    {"3x3 24>7 128x128", {1, 24, 7}, 128, 3, 1},
    {"1x1 64>1 256x256", {1, 64, 1}, 256, 1, 1}, {"1x1 256>4 56x56", {1, 256, 4}, 56, 1, 1}};

CK_CONV_FAMILY(dots, .roundings = 1, .cache = {2u << 10, 48u << 10});
