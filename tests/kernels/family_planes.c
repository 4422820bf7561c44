/* Family "planes": through the driver, against a double oracle. */
#include "backends/cpu/conv/planes_driver.h"
#include "backends/cpu/kernels/features.h"
#include "conv_oracle.h"

static hn_planes describe(const ck_conv_case *s, uint32_t vw, uint32_t threads, size_t l2) {
  hn_planes d = {.batch = s->batch, .channels = s->cin, .outputs = s->cout};
  ck_conv_geometry(s, &d.window, &d.in_pixel, &d.in_batch, &d.y);
  hn_planes_plan(&d, vw, threads, l2);
  return d;
}

static void call(void *args) { hn_planes_exec(args, ck_backwards, NULL); }

/* Three blocks fit a quarter of the second cache each: two threads get four. */
static void check_even(ck *c, uint32_t vw) {
  hn_planes d = {.batch = 1,
                 .channels = 3,
                 .outputs = 8,
                 .in_pixel = 3,
                 .window = {.kernel = {1, 3, 3},
                            .stride = {1, 1, 1},
                            .dilation = {1, 1, 1},
                            .in = {1, 416, 416},
                            .out = {1, 414, 414}}};
  hn_planes_plan(&d, vw, 1, SIZE_MAX / 8);
  const size_t row = (size_t)(d.channels * d.phases * d.columns) * sizeof(float);
  hn_planes_plan(&d, vw, 1, row * 140 * 4);
  if (d.y_blocks != 3) ck_near(c, 0, (double)d.y_blocks, 3, 0);
  hn_planes_plan(&d, vw, 2, row * 90 * 4);
  if (d.y_blocks % 2) ck_near(c, 1, (double)d.y_blocks, 6, 0);
}

static void run(ck *c, const void *ops, const ck_conv_data *t, size_t l2) {
  check_even(c, ((const hn_planes_ops *)ops)->vw);
  const hn_planes d = describe(t->s, ((const hn_planes_ops *)ops)->vw, 2, l2);
  const size_t n = hn_planes_scratch(&d);
  float *packed = ck_alloc(c, hn_planes_packed_size(&d), 0), *scratch = ck_alloc(c, n, 0);
  hn_planes_pack(&d, t->w, packed);
  ck_fill(c, scratch, n, CK_SPECIAL); /* what is not laid out must not be read */
  call(&(hn_planes_args){&d, ops, t->x, packed, t->y, &t->epilogue, scratch});
}

static double seconds(const struct hn_kernel *k, const ck_conv_case *s) {
  const hn_planes_ops *ops = k->ops;
  const hn_planes d = describe(s, ops->vw, 1, hn_cpu()->l2);
  ck_conv_memory m =
      ck_conv_memory_of(d.in_batch, d.y.batch, hn_planes_packed_size(&d), 64, hn_planes_scratch(&d));
  hn_planes_args a = {&d, ops, m.x, m.w, m.y, &m.epilogue, m.scratch};
  return ck_conv_seconds(call, &a, &m);
}

static const int64_t channels[] = {1, 2, 3, 4, 5, 8};
/* As in conv_cases.c, a case a line. */
/* clang-format off */
static const ck_conv_case cases[] = {
    {1, 1, 0, 8, {1, 9, 50}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {2, 1, 0, 24, {1, 5, 100}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, true},
    {1, 1, 0, 16, {1, 6, 33}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_LEAKY, false},
    {2, 1, 0, 12, {1, 4, 65}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0}, {0}, 2, 3, HN_EPI_BIAS, true},
    {1, 1, 0, 9, {1, 7, 44}, {1, 7, 7}, {1, 4, 4}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}, 0, 0, HN_EPI_CLAMP, false},
    {1, 1, 0, 10, {1, 1, 90}, {1, 1, 10}, {1, 1, 5}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false},
    {1, 1, 0, 3, {1, 9, 21}, {1, 3, 3}, {1, 1, 3}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 1, 0, HN_EPI_BIAS, false},
    {1, 1, 0, 16, {6, 9, 16}, {5, 3, 1}, {1, 1, 1}, {1, 1, 1}, {2, 1, 0}, {2, 1, 0}, 0, 1, HN_EPI_BIAS, true},
    {1, 1, 0, 7, {3, 5, 6}, {2, 4, 9}, {2, 1, 1}, {1, 1, 1}, {1, 3, 4}, {0, 3, 4}, 0, 0, HN_EPI_BIAS, false},
    {1, 1, 0, 8, {1, 2, 17}, {1, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 2, 25}, {0, 2, 25}, 0, 0, HN_EPI_BIAS, false},
    {0, 1, 0, 8, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
};
/* clang-format on */
static const ck_conv_line lines[] = {
    {"3x3s2 3>8 224x224", {1, 3, 8}, 224, 3, 2},   {"3x3s2 3>16 224x224", {1, 3, 16}, 224, 3, 2},
    {"3x3s2 3>24 224x224", {1, 3, 24}, 224, 3, 2}, {"3x3s2 3>32 224x224", {1, 3, 32}, 224, 3, 2},
    {"3x3 1>32 128x128", {1, 1, 32}, 128, 3, 1},   {"1x1s2 3>48 256x256", {1, 3, 48}, 256, 1, 2},
    {"9x9 1>16 64x64", {1, 1, 16}, 64, 9, 1}};

CK_CONV_FAMILY(planes, .roundings = 1, .zeros_beside = true, .cache = {16u << 10, 1u << 20});
