/* Family "depthwise": through the driver, against a double oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/kernels/features.h"
#include "check.h"

typedef struct shape {
  int64_t batch, channels, in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3], extra_in, extra_out;
  uint32_t flags;
  bool post;
} shape;

static void serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, 0);
}

static hn_depthwise describe(const shape *s, uint32_t vw, uint32_t threads, size_t l1, size_t l2) {
  hn_depthwise d = {.batch = s->batch, .channels = s->channels};
  hn_window *g = &d.window;
  for (int i = 0; i < 3; i++) {
    g->in[i] = s->in[i], g->kernel[i] = s->kernel[i], g->stride[i] = s->stride[i];
    g->dilation[i] = s->dilation[i], g->pad[i] = s->pad[i];
    g->out[i] =
        (s->in[i] + s->pad[i] + s->pad_end[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
  }
  d.in_pixel = s->channels + s->extra_in, d.in_batch = d.in_pixel * s->in[0] * s->in[1] * s->in[2];
  const int64_t p = s->channels + s->extra_out;
  d.y = (hn_view){g->out[0] * g->out[1] * g->out[2] * p, g->out[1] * g->out[2] * p, g->out[2] * p, p};
  d.w_tap = (s->channels + 15) / 16 * 16;
  hn_depthwise_plan(&d, vw, threads, l1, l2);
  return d;
}

static void negate(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = -x[i] * p[0];
}

static void check_shape(ck *c, const hn_depthwise_ops *o, const shape *s, enum ck_fill fill, size_t l1) {
  hn_depthwise d = describe(s, o->vw, 2, l1, 1u << 14);
  const int64_t *out = d.window.out;
  ck_case(c,
          "depthwise n%lld c%lld %lldx%lldx%lld k%lldx%lldx%lld s%lld d%lld p%lld pitch+%lld/%lld flags=%u "
          "post=%d fill=%s",
          (long long)s->batch, (long long)s->channels, (long long)s->in[0], (long long)s->in[1],
          (long long)s->in[2], (long long)s->kernel[0], (long long)s->kernel[1], (long long)s->kernel[2],
          (long long)s->stride[2], (long long)s->dilation[2], (long long)s->pad[2], (long long)s->extra_in,
          (long long)s->extra_out, s->flags, s->post, ck_fill_name(fill));
  const int64_t rows = s->kernel[1], taps = s->kernel[0] * rows * s->kernel[2],
                pixels = s->batch * out[0] * out[1] * out[2],
                in_pixels = s->batch * s->in[0] * s->in[1] * s->in[2];
  size_t nx = (size_t)(in_pixels ? (in_pixels - 1) * d.in_pixel + s->channels : 0);
  size_t ny = (size_t)(pixels ? (pixels - 1) * d.y.pixel + s->channels : 0);
  float *x = ck_alloc(c, nx, 0), *y = ck_alloc(c, ny, (size_t)(s->extra_out ? 1 : 0)),
        *r = ck_alloc(c, ny, 0);
  float *w = ck_alloc(c, (size_t)(s->channels * taps), 0), *bias = ck_alloc(c, (size_t)s->channels, 0);
  float *packed = ck_alloc(c, hn_depthwise_packed_size(&d), 0);
  ck_fill(c, x, nx, fill);
  ck_fill(c, r, ny, fill);
  ck_fill(c, w, (size_t)(s->channels * taps), fill);
  ck_fill(c, bias, (size_t)s->channels, fill);
  hn_depthwise_pack(&d, w, packed);
  hn_epilogue e = {.flags = s->flags,
                   .lo = -0.25f,
                   .hi = 0.5f,
                   .slope = 0.125f,
                   .bias = bias,
                   .residual = r,
                   .residual_view = d.y};
  if (s->post)
    e.rows = hn_post_find(HN_ISA_SCALAR), e.n_post = 1,
    e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = negate, .p = {2.0f}};
  hn_depthwise_args a = {&d, o, x, packed, y, &e};
  hn_depthwise_exec(&a, serial, NULL);
  for (int64_t i = 0; i < pixels * s->channels; i++) {
    const int64_t q = i % s->channels, p = i / s->channels, n = p / (out[0] * out[1] * out[2]);
    const int64_t pixel[3] = {p / (out[1] * out[2]) % out[0], p / out[2] % out[1], p % out[2]};
    double acc = s->flags & HN_EPI_BIAS ? bias[q] : 0, mag = fabs(acc);
    for (int64_t t = 0; t < taps; t++) {
      const int64_t tap[3] = {t / (rows * s->kernel[2]), t / s->kernel[2] % rows, t % s->kernel[2]};
      int64_t in = 0;
      bool outside = false;
      for (int k = 0; k < 3; k++) {
        const int64_t j = pixel[k] * s->stride[k] + tap[k] * s->dilation[k] - s->pad[k];
        outside = outside || j < 0 || j >= s->in[k];
        in = in * s->in[k] + j;
      }
      if (outside) continue;
      const double product = (double)x[n * d.in_batch + in * d.in_pixel + q] * w[q * taps + t];
      acc += product, mag += fabs(product);
    }
    const int64_t at = hn_view_at(&d.y, n, pixel[0], pixel[1], pixel[2]) + q;
    const bool add = s->flags & HN_EPI_RESIDUAL, after = s->flags & HN_EPI_RESIDUAL_AFTER;
    if (add) mag += fabs((double)r[at]);
    if (add && !after) acc += r[at];
    if (s->flags & HN_EPI_CLAMP) acc = isnan(acc) ? acc : acc < e.lo ? e.lo : acc > e.hi ? e.hi : acc;
    if (s->flags & HN_EPI_LEAKY) acc = acc < 0 ? acc * e.slope : acc;
    if (add && after) acc += r[at];
    if (s->post) acc *= -2, mag *= 2;
    const double k = (double)(2 * taps + 4);
    ck_near(c, (size_t)i, y[at], acc, k * CK_EPS * mag * (1 + 1e-3) + k * CK_TINY);
  }
  ck_release_all(c);
}

static const int64_t channel_counts[] = {1, 3, 7, 8, 12, 15, 16, 17, 20, 32, 33, 61, 96};
static const shape shapes[] = {
    {1,
     0,
     {1, 9, 9},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     0,
     0,
     HN_EPI_BIAS | HN_EPI_CLAMP,
     false},
    {2, 0, {1, 7, 14}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, HN_EPI_BIAS, false},
    {1,
     0,
     {1, 11, 19},
     {1, 5, 5},
     {1, 1, 1},
     {1, 1, 1},
     {0, 2, 2},
     {0, 2, 2},
     3,
     0,
     HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY,
     false},
    {1,
     0,
     {1, 8, 23},
     {1, 5, 5},
     {1, 2, 2},
     {1, 1, 1},
     {0, 2, 1},
     {0, 1, 2},
     0,
     5,
     HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER,
     false},
    {1, 0, {1, 12, 13}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 0, 0, HN_EPI_BIAS, true},
    {1, 0, {1, 1, 40}, {1, 1, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}, {0, 0, 3}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, {1, 3, 2}, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {0, 4, 6}, {0, 4, 6}, 0, 0, 0, false},
    {3,
     0,
     {1, 6, 5},
     {1, 2, 3},
     {1, 1, 3},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     1,
     1,
     HN_EPI_BIAS | HN_EPI_CLAMP,
     true},
    {1, 0, {1, 33, 17}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}, 0, 0, HN_EPI_BIAS, false},
    {2,
     0,
     {4, 6, 21},
     {3, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     0,
     0,
     HN_EPI_BIAS | HN_EPI_CLAMP,
     false},
    {1, 0, {5, 7, 9}, {3, 5, 2}, {2, 1, 2}, {1, 2, 1}, {1, 4, 0}, {1, 3, 1}, 2, 3, HN_EPI_BIAS, true},
    {1,
     0,
     {1, 40, 37},
     {1, 33, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 16, 0},
     {0, 16, 0},
     0,
     0,
     HN_EPI_BIAS | HN_EPI_RESIDUAL,
     true},
    {0, 0, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
};

static void check(ck *c, const struct hn_kernel *k) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !ck_failed(c); i++)
    for (size_t j = 0; j < sizeof channel_counts / sizeof *channel_counts; j++)
      for (int fill = 0; fill < CK_FILLS; fill++) {
        shape s = shapes[i];
        s.channels = channel_counts[j];
        check_shape(c, k->ops, &s, (enum ck_fill)fill, fill % 2 ? 48u << 10 : 2u << 10);
      }
}

static void bench_call(void *p) { hn_depthwise_exec(p, serial, NULL); }

static double bench_one(const struct hn_kernel *k, const shape *s) {
  const hn_depthwise_ops *o = k->ops;
  hn_depthwise d = describe(s, o->vw, 1, hn_cpu()->l1d, hn_cpu()->l2);
  size_t nx = (size_t)d.in_batch, ny = (size_t)d.y.batch, nw = hn_depthwise_packed_size(&d);
  float *mem = aligned_alloc(4096, ((nx + ny + nw + (size_t)d.w_tap) * 4 + 4096) / 4096 * 4096);
  if (!mem) exit(6);
  for (size_t i = 0; i < nx + ny + nw + (size_t)d.w_tap; i++) mem[i] = (float)(i % 13) * 0.1f - 0.6f;
  hn_epilogue e = {.flags = HN_EPI_BIAS | HN_EPI_CLAMP, .lo = 0, .hi = 6, .bias = mem + nx + ny + nw};
  hn_depthwise_args a = {&d, k->ops, mem, mem + nx + ny, mem + nx, &e};
  double t = ck_time(bench_call, &a);
  free(mem);
  return t;
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t c, h, k, s;
  } line[] = {{"3x3 32x112x112", 32, 112, 3, 1},   {"3x3s2 96x112x112", 96, 112, 3, 2},
              {"3x3 144x56x56", 144, 56, 3, 1},    {"3x3 192x28x28", 192, 28, 3, 1},
              {"3x3 384x14x14", 384, 14, 3, 1},    {"3x3s2 576x14x14", 576, 14, 3, 2},
              {"3x3 960x7x7", 960, 7, 3, 1},       {"5x5 240x28x28", 240, 28, 5, 1},
              {"7x7 96x56x56", 96, 56, 7, 1},      {"3x3 8x112x112", 8, 112, 3, 1},
              {"3x3 20x56x56", 20, 56, 3, 1},      {"3x3 24x112x112", 24, 112, 3, 1},
              {"3x3s2 24x112x112", 24, 112, 3, 2}, {"3x3s2 8x112x112", 8, 112, 3, 2},
              {"5x5 20x56x56", 20, 56, 5, 1},      {"5x5 24x56x56", 24, 56, 5, 1},
              {"3x3 12x56x56", 12, 56, 3, 1}};
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
    int64_t p = line[i].k / 2;
    shape s = {1,
               line[i].c,
               {1, line[i].h, line[i].h},
               {1, line[i].k, line[i].k},
               {1, line[i].s, line[i].s},
               {1, 1, 1},
               {0, p, p},
               {0, p, p},
               0,
               0,
               0,
               false};
    double t = bench_one(k, &s), out = (double)((line[i].h + line[i].s - 1) / line[i].s);
    double flops = 2.0 * out * out * (double)(line[i].c * line[i].k * line[i].k);
    double channels = 4.0 * (double)line[i].c;
    const ck_work work = {
        .flops = flops, .read = channels * (double)(line[i].h * line[i].h), .written = channels * out * out};
    ck_bench_line(c, line[i].label, t, &work, k != scalar ? bench_one(scalar, &s) : 0);
  }
}

const ck_family ck_family_depthwise = {"depthwise", check, bench};
