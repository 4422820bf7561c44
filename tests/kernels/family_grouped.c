/* Family "grouped": through the driver, against a double oracle. */
#include "backends/cpu/conv/grouped_direct.h"
#include "backends/cpu/kernels/features.h"
#include "conv_oracle.h"

static hn_grouped_direct describe(const ck_conv_case *s, uint32_t vw, uint32_t threads, size_t l1,
                                  size_t l2) {
  hn_grouped_direct d = {.of = {.batch = s->batch, .groups = s->groups, .cin = s->cin, .cout = s->cout}};
  hn_window w;
  ck_conv_geometry(s, &w, &d.of.in_pixel, &d.of.in_batch, &d.of.y);
  d.of.in_row = s->in[2] * d.of.in_pixel;
  for (int i = 0; i < 2; i++) {
    d.of.in[i] = w.in[i + 1], d.of.out[i] = w.out[i + 1], d.of.kernel[i] = w.kernel[i + 1];
    d.of.stride[i] = w.stride[i + 1], d.of.dilation[i] = w.dilation[i + 1], d.of.pad[i] = w.pad[i + 1];
  }
  hn_grouped_direct_plan(&d, vw, threads, l1, l2);
  return d;
}

static void call(void *args) { hn_grouped_direct_exec(args, ck_backwards, NULL); }

static void run(ck *c, const void *ops, const ck_conv_data *t, size_t l1) {
  const hn_grouped_direct d = describe(t->s, ((const hn_grouped_ops *)ops)->vw, 2, l1, 4 * l1);
  float *packed = ck_alloc(c, hn_grouped_direct_packed_size(&d), 0),
        *scratch = ck_alloc(c, hn_grouped_direct_scratch(&d) / sizeof(float), 0);
  hn_grouped_direct_pack(&d, t->w, packed);
  call(&(hn_grouped_direct_args){&d, ops, t->x, packed, t->y, &t->epilogue, scratch});
}

static double seconds(const struct hn_kernel *k, const ck_conv_case *s) {
  const hn_grouped_ops *ops = k->ops;
  const hn_grouped_direct d = describe(s, ops->vw, 1, hn_cpu()->l1d, hn_cpu()->l2);
  const size_t bias = (size_t)hn_round_up((size_t)(s->groups * s->cout), 16),
               scratch = hn_grouped_direct_scratch(&d) / sizeof(float);
  ck_conv_memory m =
      ck_conv_memory_of(d.of.in_batch, d.of.y.batch, hn_grouped_direct_packed_size(&d), bias, scratch);
  hn_grouped_direct_args a = {&d, ops, m.x, m.w, m.y, &m.epilogue, m.scratch};
  return ck_conv_seconds(call, &a, &m);
}

/* The groups of cases that have none, input channels of a group of the others. */
static const int64_t channels[] = {1, 2, 3, 5, 8, 9, 17};
/* As in conv_cases.c, a case a line. */
/* clang-format off */
static const ck_conv_case cases[] = {
    {1, 0, 2, 2, {1, 6, 29}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {2, 0, 4, 4, {1, 5, 18}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, 8, 8, {1, 7, 15}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 3, 5, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP, false},
    {1, 0, 3, 5, {1, 5, 26}, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 2}, {0, 1, 2}, 1, 2, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY, true},
    {1, 0, 1, 2, {1, 4, 11}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 0, 0, 0, false},
    {1, 0, 2, 1, {1, 1, 40}, {1, 1, 7}, {1, 1, 3}, {1, 1, 1}, {0, 0, 3}, {0, 0, 3}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, 7, 3, {1, 9, 13}, {1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER, false},
    {1, 2, 0, 8, {1, 4, 23}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, true},
    {1, 3, 0, 16, {1, 5, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {1, 2, 0, 16, {1, 4, 48}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
    {1, 0, 8, 8, {1, 4, 49}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_LEAKY, false},
    {2, 2, 0, 24, {1, 6, 17}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 0, 1}, 0, 0, HN_EPI_BIAS, false},
    {1, 2, 0, 33, {1, 3, 7}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 1, HN_EPI_BIAS, false},
    {1, 2, 0, 4, {1, 3, 2}, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {0, 4, 6}, {0, 4, 6}, 0, 0, 0, false},
    {0, 2, 0, 4, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
};
/* clang-format on */
static const ck_conv_line lines[] = {
    {"3x3 32x4 56x56", {32, 4, 4}, 56, 3, 1},      {"3x3 32x8 28x28", {32, 8, 8}, 28, 3, 1},
    {"3x3s2 32x8 56x56", {32, 8, 8}, 56, 3, 2},    {"3x3 32x16 14x14", {32, 16, 16}, 14, 3, 1},
    {"3x3s2 32x16 28x28", {32, 16, 16}, 28, 3, 2}, {"3x3 14x24 14x14", {14, 24, 24}, 14, 3, 1},
    {"3x3 48x8 7x7", {48, 8, 8}, 7, 3, 1},         {"3x3 32x32 7x7", {32, 32, 32}, 7, 3, 1},
    {"5x5 16x8 28x28", {16, 8, 8}, 28, 5, 1}};

CK_CONV_FAMILY(grouped, .roundings = 1, .residual = true, .zeros_beside = true,
               .cache = {1u << 10, 48u << 10});
