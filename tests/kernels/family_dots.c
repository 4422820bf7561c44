/* Family "dots": through the driver, against a double oracle. */
#include <math.h>
#include <stdlib.h>

#include "backends/cpu/conv/dots_driver.h"
#include "backends/cpu/kernels/features.h"
#include "check.h"

typedef struct shape {
  int64_t batch, channels, outputs, in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3], extra_in,
      extra_out;
  uint32_t flags;
  bool post;
} shape;

static void serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, 0);
}

static hn_dots describe(const shape *s, uint32_t threads, size_t l1) {
  hn_dots d = {.batch = s->batch, .channels = s->channels, .outputs = s->outputs};
  hn_window *g = &d.window;
  for (int i = 0; i < 3; i++) {
    g->in[i] = s->in[i], g->kernel[i] = s->kernel[i], g->stride[i] = s->stride[i];
    g->dilation[i] = s->dilation[i], g->pad[i] = s->pad[i];
    g->out[i] =
        (s->in[i] + s->pad[i] + s->pad_end[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
  }
  d.in_pixel = s->channels + s->extra_in, d.in_batch = d.in_pixel * s->in[0] * s->in[1] * s->in[2];
  const int64_t p = s->outputs + s->extra_out;
  d.y = (hn_view){g->out[0] * g->out[1] * g->out[2] * p, g->out[1] * g->out[2] * p, g->out[2] * p, p};
  hn_dots_plan(&d, threads, l1);
  return d;
}

static void negate(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = -x[i] * p[0];
}

/* The sum of one output, and of its products' absolute values. */
static double sum_of(const hn_dots *d, const float *x, const float *w, int64_t n, const int64_t at[3],
                     int64_t o, double *mag) {
  const hn_window *g = &d->window;
  const int64_t *k = g->kernel, taps = k[0] * k[1] * k[2];
  double acc = 0;
  for (int64_t t = 0; t < taps; t++) {
    const int64_t tap[3] = {t / (k[1] * k[2]), t / k[2] % k[1], t % k[2]};
    int64_t p = 0;
    bool out = false;
    for (int i = 0; i < 3; i++) {
      const int64_t q = at[i] * g->stride[i] + tap[i] * g->dilation[i] - g->pad[i];
      out = out || q < 0 || q >= g->in[i];
      p = p * g->in[i] + q;
    }
    for (int64_t c = 0; c < d->channels && !out; c++) {
      const double product =
          (double)x[n * d->in_batch + p * d->in_pixel + c] * w[(o * d->channels + c) * taps + t];
      acc += product, *mag += fabs(product);
    }
  }
  return acc;
}

static void check_shape(ck *c, const hn_dots_ops *ops, const shape *s, enum ck_fill fill, size_t l1) {
  const hn_dots d = describe(s, 2, l1);
  const int64_t *out = d.window.out, taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
  ck_case(c,
          "dots n%lld c%lld>%lld %lldx%lldx%lld k%lldx%lldx%lld s%lld d%lld p%lld pitch+%lld/%lld flags=%u "
          "post=%d fill=%s",
          (long long)s->batch, (long long)s->channels, (long long)s->outputs, (long long)s->in[0],
          (long long)s->in[1], (long long)s->in[2], (long long)s->kernel[0], (long long)s->kernel[1],
          (long long)s->kernel[2], (long long)s->stride[2], (long long)s->dilation[2], (long long)s->pad[2],
          (long long)s->extra_in, (long long)s->extra_out, s->flags, s->post, ck_fill_name(fill));
  const int64_t pixels = s->batch * out[0] * out[1] * out[2],
                in_pixels = s->batch * s->in[0] * s->in[1] * s->in[2];
  const size_t nx = (size_t)(in_pixels ? (in_pixels - 1) * d.in_pixel + s->channels : 0);
  const size_t ny = (size_t)(pixels ? (pixels - 1) * d.y.pixel + s->outputs : 0);
  const size_t nw = hn_dots_packed_size(&d);
  float *x = ck_alloc(c, nx, 0), *y = ck_alloc(c, ny, (size_t)(s->extra_out ? 1 : 0));
  const size_t filters = (size_t)(s->outputs * s->channels * taps);
  float *w = ck_alloc(c, filters, 0), *packed = ck_alloc(c, nw, 0),
        *bias = ck_alloc(c, (size_t)s->outputs, 0);
  ck_fill(c, x, nx, fill);
  ck_fill(c, w, filters, fill);
  ck_fill(c, bias, (size_t)s->outputs, fill);
  hn_dots_pack(&d, w, packed);
  hn_epilogue e = {.flags = s->flags, .lo = -0.25f, .hi = 0.5f, .slope = 0.125f, .bias = bias};
  if (s->post)
    e.rows = hn_post_find(HN_ISA_SCALAR), e.n_post = 1,
    e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = negate, .p = {2.0f}};
  const hn_dots_args a = {&d, ops, x, packed, y, &e};
  hn_dots_exec(&a, serial, NULL);
  size_t index = 0;
  for (int64_t i = 0; i < pixels * s->outputs; i++, index++) {
    const int64_t o = i % s->outputs, p = i / s->outputs, n = p / (out[0] * out[1] * out[2]);
    const int64_t at[3] = {p / (out[1] * out[2]) % out[0], p / out[2] % out[1], p % out[2]};
    double mag = 0, acc = sum_of(&d, x, w, n, at, o, &mag);
    if (s->flags & HN_EPI_BIAS) acc += bias[o], mag += fabs((double)bias[o]);
    if (s->flags & HN_EPI_CLAMP) acc = isnan(acc) ? acc : acc < e.lo ? e.lo : acc > e.hi ? e.hi : acc;
    if (s->flags & HN_EPI_LEAKY) acc = acc < 0 ? acc * e.slope : acc;
    if (s->post) acc *= -2, mag *= 2;
    const double k = (double)(taps * s->channels + 4);
    ck_near(c, index, y[hn_view_at(&d.y, n, at[0], at[1], at[2]) + o], acc,
            k * CK_EPS * mag * (1 + 1e-3) + k * CK_TINY);
  }
  ck_release_all(c);
}

static const int64_t channel_counts[] = {1, 3, 8, 15, 16, 17, 24, 33, 64};
static const shape shapes[] = {
    {1,
     0,
     1,
     {1, 5, 19},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     0,
     0,
     HN_EPI_BIAS | HN_EPI_CLAMP,
     false},
    {2, 0, 1, {1, 3, 40}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 0, 0, HN_EPI_BIAS, true},
    {1,
     0,
     2,
     {1, 6, 70},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     0,
     0,
     HN_EPI_BIAS | HN_EPI_LEAKY,
     false},
    {2, 0, 3, {1, 4, 33}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 5, 3, HN_EPI_BIAS, true},
    {1, 0, 4, {1, 7, 14}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 1}, {0, 1, 2}, 3, 0, HN_EPI_CLAMP, false},
    {1, 0, 5, {1, 9, 21}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}, 0, 0, HN_EPI_BIAS, false},
    {1, 0, 6, {3, 4, 9}, {3, 2, 3}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, 0, 1, HN_EPI_BIAS, true},
    {1, 0, 7, {1, 5, 6}, {1, 7, 9}, {1, 1, 1}, {1, 1, 1}, {0, 3, 4}, {0, 3, 4}, 0, 0, HN_EPI_BIAS, false},
    {1,
     0,
     8,
     {2, 3, 12},
     {2, 1, 2},
     {2, 1, 3},
     {1, 1, 1},
     {1, 0, 0},
     {1, 0, 0},
     1,
     0,
     HN_EPI_BIAS | HN_EPI_CLAMP,
     false},
    {1, 0, 11, {1, 2, 17}, {1, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 2, 5}, {0, 2, 5}, 0, 0, HN_EPI_BIAS, false},
    {0, 0, 1, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
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

static void bench_call(void *p) { hn_dots_exec(p, serial, NULL); }

static double bench_one(const struct hn_kernel *k, const shape *s) {
  const hn_dots d = describe(s, 1, hn_cpu()->l1d);
  const size_t nx = (size_t)d.in_batch, ny = (size_t)d.y.batch, nw = hn_dots_packed_size(&d);
  float *mem = aligned_alloc(4096, ((nx + ny + nw + 16) * 4 + 4096) / 4096 * 4096);
  if (!mem) exit(6);
  for (size_t i = 0; i < nx + ny + nw + 16; i++) mem[i] = (float)(i % 13) * 0.1f - 0.6f;
  hn_epilogue e = {.flags = HN_EPI_BIAS | HN_EPI_CLAMP, .lo = 0, .hi = 6, .bias = mem + nx + ny + nw};
  hn_dots_args a = {&d, k->ops, mem, mem + nx + ny, mem + nx, &e};
  const double t = ck_time(bench_call, &a);
  free(mem);
  return t;
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t c, o, h, k;
  } line[] = {{"3x3 64>1 256x256", 64, 1, 256, 3}, {"3x3 64>3 256x256", 64, 3, 256, 3},
              {"3x3 32>2 64x64", 32, 2, 64, 3},    {"3x3 24>7 128x128", 24, 7, 128, 3},
              {"1x1 64>1 256x256", 64, 1, 256, 1}, {"1x1 256>4 56x56", 256, 4, 56, 1}};
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
    const int64_t p = line[i].k / 2, h = line[i].h;
    const shape s = {.batch = 1,
                     .channels = line[i].c,
                     .outputs = line[i].o,
                     .in = {1, h, h},
                     .kernel = {1, line[i].k, line[i].k},
                     .stride = {1, 1, 1},
                     .dilation = {1, 1, 1},
                     .pad = {0, p, p},
                     .pad_end = {0, p, p}};
    const double pixels = (double)(h * h), t = bench_one(k, &s);
    const ck_work work = {.flops = 2 * pixels * (double)(line[i].c * line[i].o * line[i].k * line[i].k),
                          .read = 4 * pixels * (double)line[i].c,
                          .written = 4 * pixels * (double)line[i].o};
    ck_bench_line(c, line[i].label, t, &work, k != scalar ? bench_one(scalar, &s) : 0);
  }
}

const ck_family ck_family_dots = {"dots", check, bench};
