#include "conv_oracle.h"

#include <math.h>
#include <stdlib.h>

#include "backends/cpu/kernels/features.h"
#include "gemm_oracle.h"

void ck_conv_geometry(const ck_conv_case *s, hn_window *g, int64_t *in_pixel, int64_t *in_batch,
                      hn_view *view) {
  *in_pixel = *in_batch = s->groups * s->cin + s->extra_in;
  for (int i = 0; i < 3; i++) {
    const int64_t reach = (s->kernel[i] - 1) * s->dilation[i] + 1;
    g->in[i] = s->in[i], g->kernel[i] = s->kernel[i], g->stride[i] = s->stride[i];
    g->dilation[i] = s->dilation[i], g->pad[i] = s->pad[i];
    g->out[i] = (s->in[i] + s->pad[i] + s->pad_end[i] - reach) / s->stride[i] + 1;
    *in_batch *= s->in[i];
  }
  const int64_t p = s->groups * s->cout + s->extra_out, row = g->out[2] * p, slice = g->out[1] * row;
  *view = (hn_view){g->out[0] * slice, slice, row, p};
}

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

/* Floats from the first channel of the first pixel to the last of the last. */
static size_t extent(int64_t pixels, int64_t pitch, int64_t channels) {
  return (size_t)(pixels ? (pixels - 1) * pitch + channels : 0);
}

static float *filled(ck *c, size_t n, enum ck_fill fill) {
  float *x = ck_alloc(c, n, 0);
  ck_fill(c, x, n, fill);
  return x;
}

static void negate(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = -x[i] * p[0];
}

/* Names the case, allocates and fills what it reads, allocates y. */
static ck_conv_data fill_case(ck *c, const ck_conv_rules *r, const ck_conv_case *s, enum ck_fill fill) {
  const int64_t *in = s->in, *k = s->kernel;
  ck_case(
      c,
      "%s n%lld g%lld %lld>%lld %lldx%lldx%lld k%lldx%lldx%lld s%lld d%lld p%lld pitch+%lld/%lld flags=%u "
      "post=%d fill=%s",
      r->family, (long long)s->batch, (long long)s->groups, (long long)s->cin, (long long)s->cout,
      (long long)in[0], (long long)in[1], (long long)in[2], (long long)k[0], (long long)k[1], (long long)k[2],
      (long long)s->stride[2], (long long)s->dilation[2], (long long)s->pad[2], (long long)s->extra_in,
      (long long)s->extra_out, s->flags, s->post, ck_fill_name(fill));
  ck_conv_data t = {.s = s};
  ck_conv_geometry(s, &t.window, &t.in_pixel, &t.in_batch, &t.view);
  const int64_t outputs = s->groups * s->cout;
  const size_t ny = extent(s->batch * volume(t.window.out), t.view.pixel, outputs);
  t.x = filled(c, extent(s->batch * volume(in), t.in_pixel, s->groups * s->cin), fill);
  t.y = ck_alloc(c, ny, s->extra_out ? 1 : 0);
  if (r->residual) t.residual = filled(c, ny, fill);
  t.w = filled(c, (size_t)(outputs * s->cin * volume(k)), fill);
  t.bias = filled(c, (size_t)outputs, fill);
  hn_epilogue *e = &t.epilogue;
  e->flags = s->flags, e->lo = -0.25f, e->hi = 0.5f, e->slope = 0.125f;
  e->bias = t.bias, e->residual = t.residual;
  if (r->residual) e->residual_view = t.view;
  if (s->post)
    e->rows = hn_post_find(HN_ISA_SCALAR), e->n_post = 1,
    e->post[0] = (hn_post){.kind = HN_POST_ACT, .act = negate, .p = {2.0f}};
  return t;
}

/* The sum of output o at a pixel of image n, and of its products' absolute values. */
static double sum_of(const ck_conv_rules *r, const ck_conv_data *t, int64_t n, const int64_t at[3], int64_t o,
                     double *mag) {
  const hn_window *g = &t->window;
  const int64_t *k = g->kernel, taps = volume(k), cin = t->s->cin, first = o / t->s->cout * cin;
  double acc = 0;
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t of[3] = {tap / (k[1] * k[2]), tap / k[2] % k[1], tap % k[2]};
    int64_t p = 0;
    bool out = false, beside = false;
    for (int i = 0; i < 3; i++) {
      const int64_t q = at[i] * g->stride[i] + of[i] * g->dilation[i] - g->pad[i];
      if (q < 0 || q >= g->in[i]) i == 2 && r->zeros_beside ? (beside = true) : (out = true);
      p = p * g->in[i] + q;
    }
    for (int64_t ci = 0; ci < cin && !out; ci++) {
      const double value = beside ? 0 : t->x[n * t->in_batch + p * t->in_pixel + first + ci];
      const double product = value * t->w[(o * cin + ci) * taps + tap];
      acc += product, *mag += fabs(product);
    }
  }
  return acc;
}

/* Compares all of y. */
static void compare(ck *c, const ck_conv_rules *r, const ck_conv_data *t) {
  const ck_conv_case *s = t->s;
  const hn_epilogue *e = &t->epilogue;
  const int64_t *out = t->window.out, outputs = s->groups * s->cout;
  const double k = (double)(r->roundings * volume(s->kernel) * s->cin + 4);
  for (int64_t i = 0; i < s->batch * volume(out) * outputs; i++) {
    const int64_t o = i % outputs, p = i / outputs, n = p / volume(out);
    const int64_t at[3] = {p / (out[1] * out[2]) % out[0], p / out[2] % out[1], p % out[2]};
    const int64_t place = hn_view_at(&t->view, n, at[0], at[1], at[2]) + o;
    double mag = 0, want = sum_of(r, t, n, at, o, &mag);
    want = ck_epilogue(s->flags, want, &mag, t->bias[o], t->residual ? t->residual[place] : 0, e->lo, e->hi,
                       e->slope);
    if (s->post) want *= -2, mag *= 2;
    ck_near(c, (size_t)i, t->y[place], want, k * CK_EPS * mag * (1 + 1e-3) + k * CK_TINY);
  }
}

void ck_backwards(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, 0);
}

void ck_conv_check(ck *c, const struct hn_kernel *k, const ck_conv_rules *r) {
  for (size_t i = 0; i < r->n_cases && !ck_failed(c); i++)
    for (size_t j = 0; j < r->n_channels; j++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
        ck_conv_case s = r->cases[i];
        *(s.groups ? &s.cin : &s.groups) = r->channels[j];
        const ck_conv_data t = fill_case(c, r, &s, (enum ck_fill)fill);
        r->run(c, k->ops, &t, r->cache[fill % 2]);
        compare(c, r, &t);
        ck_release_all(c);
      }
}

ck_conv_memory ck_conv_memory_of(int64_t nx, int64_t ny, size_t nw, size_t bias, size_t scratch) {
  const size_t all = (size_t)(nx + ny) + nw + bias + scratch;
  float *mem = aligned_alloc(4096, (all * 4 + 4096) / 4096 * 4096);
  if (!mem) exit(6);
  for (size_t i = 0; i < all; i++) mem[i] = (float)(i % 13) * 0.1f - 0.6f;
  float *y = mem + nx, *w = y + ny;
  return (ck_conv_memory){
      mem, y, w, w + nw + bias, {.flags = HN_EPI_BIAS | HN_EPI_CLAMP, .lo = 0, .hi = 6, .bias = w + nw}};
}

double ck_conv_seconds(void (*call)(void *), void *args, ck_conv_memory *m) {
  const double seconds = ck_time(call, args);
  free(m->x);
  return seconds;
}

void ck_conv_bench(ck *c, const struct hn_kernel *k, const ck_conv_rules *r) {
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (const ck_conv_line *l = r->lines; l < r->lines + r->n_lines; l++) {
    ck_conv_case s = {.batch = 1, .groups = l->channels[0], .cin = l->channels[1], .cout = l->channels[2]};
    for (int i = 0; i < 3; i++) {
      s.in[i] = i ? l->size : 1, s.kernel[i] = i ? l->kernel : 1, s.stride[i] = i ? l->stride : 1;
      s.dilation[i] = 1, s.pad[i] = s.pad_end[i] = s.kernel[i] / 2;
    }
    const int64_t out = (l->size + l->stride - 1) / l->stride;
    const double pixels = (double)(out * out), outputs = (double)(s.groups * s.cout);
    const ck_work work = {.flops = 2 * pixels * outputs * (double)(s.cin * l->kernel * l->kernel),
                          .read = 4 * (double)(l->size * l->size * s.groups * s.cin),
                          .written = 4 * pixels * outputs};
    const double seconds = r->seconds(k, &s);
    ck_bench_line(c, l->label, seconds, &work, k != scalar ? r->seconds(scalar, &s) : 0);
  }
}
