/* Family "depthwise": through the driver, against a double oracle. */
#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/kernels/features.h"
#include "conv_oracle.h"

static hn_depthwise describe(const ck_conv_case *s, uint32_t vw, uint32_t threads, size_t l1, size_t l2) {
  hn_depthwise d = {.batch = s->batch, .channels = s->groups, .w_tap = (s->groups + 15) / 16 * 16};
  ck_conv_geometry(s, &d.window, &d.in_pixel, &d.in_batch, &d.y);
  hn_depthwise_plan(&d, vw, threads, l1, l2);
  return d;
}

static void call(void *args) { hn_depthwise_exec(args, ck_backwards, NULL); }

static void run(ck *c, const void *ops, const ck_conv_data *t, size_t l1) {
  const hn_depthwise d = describe(t->s, ((const hn_depthwise_ops *)ops)->vw, 2, l1, 1u << 14);
  float *packed = ck_alloc(c, hn_depthwise_packed_size(&d), 0);
  hn_depthwise_pack(&d, t->w, packed);
  call(&(hn_depthwise_args){&d, ops, t->x, packed, t->y, &t->epilogue});
}

static double seconds(const struct hn_kernel *k, const ck_conv_case *s) {
  const hn_depthwise_ops *ops = k->ops;
  const hn_depthwise d = describe(s, ops->vw, 1, hn_cpu()->l1d, hn_cpu()->l2);
  ck_conv_memory m =
      ck_conv_memory_of(d.in_batch, d.y.batch, hn_depthwise_packed_size(&d), (size_t)d.w_tap, 0);
  hn_depthwise_args a = {&d, ops, m.x, m.w, m.y, &m.epilogue};
  return ck_conv_seconds(call, &a, &m);
}

static const int64_t channels[] = {1, 3, 7, 8, 12, 15, 16, 17, 20, 32, 33, 61, 96};
/* As in conv_cases.c, a case a line. */
/* clang-format off */
static const ck_conv_case cases[] = {
    {1, 0, 1, 1, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {2, 0, 1, 1, {1, 7, 14}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, 1, 1, {1, 11, 19}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}, 3, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY, false},
    {1, 0, 1, 1, {1, 8, 23}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 1}, {0, 1, 2}, 0, 5, HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER, false},
    {1, 0, 1, 1, {1, 12, 13}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 0, 0, HN_EPI_BIAS, true},
    {1, 0, 1, 1, {1, 1, 40}, {1, 1, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}, {0, 0, 3}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, 1, 1, {1, 3, 2}, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {0, 4, 6}, {0, 4, 6}, 0, 0, 0, false},
    {3, 0, 1, 1, {1, 6, 5}, {1, 2, 3}, {1, 1, 3}, {1, 1, 1}, {0}, {0}, 1, 1, HN_EPI_BIAS | HN_EPI_CLAMP, true},
    {1, 0, 1, 1, {1, 33, 17}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}, 0, 0, HN_EPI_BIAS, false},
    {2, 0, 1, 1, {4, 6, 21}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {1, 0, 1, 1, {5, 7, 9}, {3, 5, 2}, {2, 1, 2}, {1, 2, 1}, {1, 4, 0}, {1, 3, 1}, 2, 3, HN_EPI_BIAS, true},
    {1, 0, 1, 1, {1, 40, 37}, {1, 33, 1}, {1, 1, 1}, {1, 1, 1}, {0, 16, 0}, {0, 16, 0}, 0, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL, true},
    {0, 0, 1, 1, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
};
/* clang-format on */
static const ck_conv_line lines[] = {
    {"3x3 32x112x112", {32, 1, 1}, 112, 3, 1},   {"3x3s2 96x112x112", {96, 1, 1}, 112, 3, 2},
    {"3x3 144x56x56", {144, 1, 1}, 56, 3, 1},    {"3x3 192x28x28", {192, 1, 1}, 28, 3, 1},
    {"3x3 384x14x14", {384, 1, 1}, 14, 3, 1},    {"3x3s2 576x14x14", {576, 1, 1}, 14, 3, 2},
    {"3x3 960x7x7", {960, 1, 1}, 7, 3, 1},       {"5x5 240x28x28", {240, 1, 1}, 28, 5, 1},
    {"7x7 96x56x56", {96, 1, 1}, 56, 7, 1},      {"3x3 8x112x112", {8, 1, 1}, 112, 3, 1},
    {"3x3 20x56x56", {20, 1, 1}, 56, 3, 1},      {"3x3 24x112x112", {24, 1, 1}, 112, 3, 1},
    {"3x3s2 24x112x112", {24, 1, 1}, 112, 3, 2}, {"3x3s2 8x112x112", {8, 1, 1}, 112, 3, 2},
    {"5x5 20x56x56", {20, 1, 1}, 56, 5, 1},      {"5x5 24x56x56", {24, 1, 1}, 56, 5, 1},
    {"3x3 12x56x56", {12, 1, 1}, 56, 3, 1}};

CK_CONV_FAMILY(depthwise, .roundings = 2, .residual = true, .cache = {2u << 10, 48u << 10});
