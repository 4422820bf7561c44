/* Part of the family "gemm_bf16": whole convolutions through the driver, with operands of one, two and three
 * bf16 parts and in f16, against sums in double. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "conv_cases.h"
#include "gemm_bf16.h"
#include "gemm_oracle.h"

/* Everything of one case; x .. bias as the driver sees them. */
typedef struct conv_run {
  hn_bf16_conv g;
  int64_t k, ip, op, oc;
  float *x, *y, *r, *bias, *w; /* w [groups * cout][cin][taps] */
  int32_t *step;
  int64_t *at;
  uint16_t *packed, *workspace;
  uint16_t *narrow_x, *narrow_y, *narrow_r; /* narrow: x, y and r as the driver sees them */
  hn_epilogue e;
} conv_run;

/* Values of the operands' own type; x becomes what they hold. */
static uint16_t *narrowed(ck *c, const hn_bf16_ops *o, float *x, size_t n) {
  uint16_t *to = ck_alloc16(c, n);
  for (size_t i = 0; i < n; i++) {
    to[i] = o->f16 ? hn_f32_to_f16(x[i]) : hn_f32_to_bf16(x[i]);
    x[i] = o->f16 ? hn_f16_to_f32(to[i]) : hn_bf16_to_f32(to[i]);
  }
  return to;
}

static void widen_f16(float *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = hn_f16_to_f32(((const uint16_t *)from)[i]);
}
static void widen_bf16(float *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = hn_bf16_to_f32(((const uint16_t *)from)[i]);
}

static bool prepare(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, uint32_t parts, bool narrow,
                    int64_t joined, enum ck_fill fill, size_t l2, conv_run *q) {
  memset(q, 0, sizeof *q);
  hn_bf16_conv *g = &q->g;
  int64_t pixels = s->batch, in_pixels = s->batch, taps = 1;
  *g = (hn_bf16_conv){.parts = parts,
                      .narrow_in = narrow,
                      .narrow_out = narrow,
                      .batch = s->batch,
                      .groups = s->groups,
                      .cin = s->cin,
                      .cout = s->cout};
  for (int i = 0; i < 3; i++) {
    g->in[i] = s->in[i], g->kernel[i] = s->kernel[i], g->stride[i] = s->stride[i],
    g->dilation[i] = s->dilation[i], g->pad[i] = s->pad[i];
    g->out[i] =
        (s->in[i] + s->pad[i] + s->pad_end[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    taps *= s->kernel[i], pixels *= g->out[i], in_pixels *= s->in[i];
  }
  q->k = taps * s->cin, q->oc = s->groups * s->cout;
  q->ip = s->groups * s->cin + s->extra_in, q->op = q->oc + s->extra_out;
  g->in_pitch = q->ip, g->in_batch = s->in[0] * s->in[1] * s->in[2] * q->ip;
  g->view = (hn_view){g->out[0] * g->out[1] * g->out[2] * q->op, g->out[1] * g->out[2] * q->op,
                      g->out[2] * q->op, q->op};
  const char *why = "";
  if (joined > 1) hn_bf16_join(g, joined);
  if (!hn_bf16_plan(g, o, 2, 32u << 10, l2, &why)) return false;
  const size_t nx = (size_t)((in_pixels - 1) * q->ip + s->groups * s->cin),
               ny = (size_t)((pixels - 1) * q->op + q->oc), nw = (size_t)(q->oc * q->k);
  q->x = ck_alloc(c, nx, 0), q->y = ck_alloc(c, ny, 0), q->r = ck_alloc(c, ny, 0);
  q->bias = ck_alloc(c, (size_t)q->oc, 0), q->w = ck_alloc(c, nw, 0);
  ck_fill(c, q->x, nx, fill);
  ck_fill(c, q->w, nw, fill);
  ck_fill(c, q->r, ny, fill);
  ck_fill(c, q->bias, (size_t)q->oc, fill);
  q->step = calloc((size_t)g->steps, sizeof *q->step);
  q->at = calloc((size_t)g->steps * 32, sizeof *q->at);
  const size_t weights = hn_bf16_weights(g);
  q->packed = ck_alloc16(c, weights * (size_t)g->groups);
  q->workspace = ck_alloc16(c, (hn_bf16_workspace(g, 2) + 63) / 64 * 32);
  if (!q->step || !q->at) exit(6);
  hn_bf16_steps(g, q->step);
  hn_bf16_places(g, q->at);
  const int64_t column = q->k * (joined > 1 ? joined : 1);
  float *spread = joined > 1 ? ck_alloc(c, (size_t)(g->cout * column), 0) : NULL;
  for (int64_t i = 0; i < g->groups; i++) {
    const float *w = q->w + i * g->cout * q->k;
    if (spread) hn_bf16_spread(g, w, spread);
    hn_bf16_pack(o, spread ? spread : w, q->at, column, (size_t)g->steps, (size_t)g->cout, 0, (size_t)g->cout,
                 1, parts, q->packed + (size_t)i * weights);
  }
  q->e = (hn_epilogue){.flags = s->flags, .lo = -0.25f, .hi = 0.5f, .slope = 0.125f, .bias = q->bias};
  if (!(s->flags & HN_EPI_BIAS)) q->e.bias = NULL;
  if (s->flags & HN_EPI_RESIDUAL) q->e.residual = q->r, q->e.residual_view = g->view;
  if (s->post) {
    q->e.rows = hn_post_find(HN_ISA_SCALAR);
    q->e.n_post = 2;
    q->e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = ck_square, .p = {2, 0}};
    q->e.post[1] = (hn_post){.kind = HN_POST_MUL, .v = q->r, .view = g->view};
  }
  if (narrow) {
    q->narrow_x = narrowed(c, o, q->x, nx), q->narrow_r = narrowed(c, o, q->r, ny),
    q->narrow_y = ck_alloc16(c, ny);
    if (q->e.residual) q->e.residual = NULL, q->e.narrow_residual = q->narrow_r;
    if (s->post) q->e.post[1].v = NULL, q->e.post[1].narrow = q->narrow_r;
    q->e.widen = o->f16 ? widen_f16 : widen_bf16;
  }
  return true;
}

static void release(ck *c, conv_run *q) {
  free(q->step);
  free(q->at);
  ck_release_all(c);
}

/* One output, with the bound of its error. */
static double oracle(const hn_bf16_ops *o, const ck_conv_case *s, const conv_run *q, const int64_t at[4],
                     int64_t column, double *bound, double *sum) {
  const hn_bf16_conv *g = &q->g;
  double acc = 0, mag = 0, mag_a = 0, mag_b = 0, more = 0;
  const int64_t group = column / s->cout, taps = q->k / s->cin;
  for (int64_t t = 0; t < taps; t++) {
    const int64_t tap[3] = {t / (s->kernel[1] * s->kernel[2]), t / s->kernel[2] % s->kernel[1],
                            t % s->kernel[2]};
    int64_t pixel = at[0];
    bool in = true;
    for (int i = 0; i < 3; i++) {
      const int64_t v = at[i + 1] * s->stride[i] + tap[i] * s->dilation[i] - s->pad[i];
      in = in && v >= 0 && v < s->in[i];
      pixel = pixel * s->in[i] + v;
    }
    for (int64_t ci = 0; ci < s->cin; ci++) {
      /* padding multiplies by zero: Inf and NaN weights make NaN there, as in the kernel */
      const double a = in ? (double)q->x[pixel * q->ip + group * s->cin + ci] : 0.0,
                   b = (double)q->w[(column * s->cin + ci) * taps + t];
      acc += a * b, mag += fabs(a * b), mag_a += fabs(a), mag_b += fabs(b);
    }
  }
  *sum = acc;
  const int64_t y = hn_view_at(&g->view, at[0], at[1], at[2], at[3]) + column;
  double want = ck_epilogue(s->flags, acc, &more, q->bias[column], q->r[y], q->e.lo, q->e.hi, q->e.slope);
  *bound = ck_bf16_bound(o, (uint32_t)g->parts, (size_t)(g->steps * 32), mag, mag_a, mag_b);
  *bound += 4 * CK_EPS * (more + mag + *bound) + 4 * CK_TINY;
  if (s->post) { /* derivative of 2 x^2 r, and its three roundings */
    *bound = 2 * (2 * fabs(want) * *bound + *bound * *bound) * fabs((double)q->r[y]);
    want = 2.0 * want * want * q->r[y];
    *bound += 4 * CK_EPS * fabs(want) + 4 * CK_TINY;
  }
  return want;
}

static void check_conv(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, uint32_t parts, bool narrow,
                       int64_t joined, enum ck_fill fill, size_t l2) {
  ck_case(c,
          "conv parts %u n%lld g%lld %lld->%lld in %lldx%lldx%lld k %lldx%lldx%lld s%lld,%lld d%lld p%lld "
          "pitch+%lld/%lld fill=%s l2=%zu%s joined %lld",
          parts, (long long)s->batch, (long long)s->groups, (long long)s->cin, (long long)s->cout,
          (long long)s->in[0], (long long)s->in[1], (long long)s->in[2], (long long)s->kernel[0],
          (long long)s->kernel[1], (long long)s->kernel[2], (long long)s->stride[1], (long long)s->stride[2],
          (long long)s->dilation[2], (long long)s->pad[2], (long long)s->extra_in, (long long)s->extra_out,
          ck_fill_name(fill), l2, narrow ? " narrow" : "", (long long)joined);
  conv_run q;
  if (!prepare(c, o, s, parts, narrow, joined, fill, l2, &q)) {
    ck_true(c, false, "the driver refuses the case");
    return;
  }
  const void *x = narrow ? (const void *)q.narrow_x : q.x;
  void *y = narrow ? (void *)q.narrow_y : q.y;
  const hn_bf16_args args = {&q.g, o, q.step, x, q.packed, y, &q.e, q.workspace, 2, NULL, NULL};
  hn_bf16_exec(&args, ck_serial, NULL);
  size_t index = 0;
  int64_t at[4];
  for (at[0] = 0; at[0] < s->batch; at[0]++)
    for (at[1] = 0; at[1] < q.g.out[0]; at[1]++)
      for (at[2] = 0; at[2] < q.g.out[1]; at[2]++)
        for (at[3] = 0; at[3] < q.g.out[2]; at[3]++)
          for (int64_t j = 0; j < q.oc; j++, index++) {
            double bound, sum, want = oracle(o, s, &q, at, j, &bound, &sum);
            const int64_t place = hn_view_at(&q.g.view, at[0], at[1], at[2], at[3]) + j;
            float got = q.y[place];
            if (narrow) {
              q.e.widen(&got, q.narrow_y + place, 1);
              want = ck_bf16_stored(o, got, want, &bound);
            }
            /* Folded lines multiply a few neighbours of the last tap by 0, joined groups other groups'
             * pixels; three parts promise f32. */
            if ((q.g.fold || joined > 1) && parts < 3 && fill == CK_SPECIAL && isnan(got)) want = NAN;
            /* Three parts promise f32. */
            ck_near_or_nan(c, index, got, want, bound, parts == 3 ? 0 : sum);
          }
  release(c, &q);
}

/* What is not finite in the last image changes no bit of the others, whatever lies beside each other. */
static void check_apart(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, float poison, size_t l2) {
  conv_run q;
  ck_case(c, "one %g in the last of %lld images, %lld->%lld k %lldx%lld", (double)poison, (long long)s->batch,
          (long long)s->cin, (long long)s->cout, (long long)s->kernel[1], (long long)s->kernel[2]);
  if (!prepare(c, o, s, 3, false, 1, CK_RANDOM, l2, &q)) {
    ck_true(c, false, "the driver refuses the case");
    return;
  }
  const hn_bf16_args args = {&q.g, o, q.step, q.x, q.packed, q.y, &q.e, q.workspace, 2, NULL, NULL};
  const size_t others = (size_t)((s->batch - 1) * q.g.view.batch);
  float *clean = ck_alloc(c, others, 0);
  hn_bf16_exec(&args, ck_serial, NULL);
  memcpy(clean, q.y, others * sizeof *clean);
  q.x[(s->batch - 1) * q.g.in_batch] = poison;
  hn_bf16_exec(&args, ck_serial, NULL);
  ck_true(c, !memcmp(clean, q.y, others * sizeof *clean), "the other images keep their bits");
  release(c, &q);
}

static void check_poisons(ck *c, const hn_bf16_ops *o) {
  static const ck_conv_case cases[] = {
      {3, 1, 64, 40, {1, 1, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false},
      {3, 1, 3, 33, {1, 9, 8}, {1, 3, 3}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
      {2, 1, 40, 70, {1, 1, 9}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, 0, false},
      {4, 1, 3, 48, {1, 16, 16}, {1, 8, 8}, {1, 8, 8}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t l2 = 8u << 10; l2 <= 1u << 20; l2 <<= 7) {
      check_apart(c, o, &cases[i], NAN, l2);
      check_apart(c, o, &cases[i], -INFINITY, l2);
    }
}

/* The driver refuses empty tensors, and groups that leave most of a step of 32 channels unused. */
static bool is_taken(const ck_conv_case *s) {
  return s->batch > 0 && s->cin > 0 && (s->groups == 1 || s->cin >= 16);
}

void ck_bf16_convs(ck *c, const hn_bf16_ops *o) {
  if (o->parts > 2) check_poisons(c, o);
  for (size_t i = 0; i < ck_n_conv_cases && !ck_failed(c); i++) {
    const ck_conv_case *s = &ck_conv_cases[i];
    for (int fill = 0, fills = ck_fills(c); fill < fills && is_taken(s); fill++)
      for (uint32_t parts = 1; parts <= o->parts && ck_bf16_in_range(o, (enum ck_fill)fill); parts++) {
        check_conv(c, o, s, parts, false, 1, (enum ck_fill)fill, 1u << 20);
        check_conv(c, o, s, parts, false, 1, (enum ck_fill)fill, 8u << 10); /* many slabs */
        if (parts == 1) check_conv(c, o, s, 1, true, 1, (enum ck_fill)fill, (i % 2 ? 1u << 20 : 8u << 10));
      }
    for (int fill = 0, fills = ck_fills(c);
         fill < fills && s->groups > 1 && s->batch && s->cin * s->groups <= 96; fill++)
      if (ck_bf16_in_range(o, (enum ck_fill)fill))
        check_conv(c, o, s, 1, i % 2, s->groups, (enum ck_fill)fill, i % 3 ? 1u << 20 : 8u << 10);
  }
}

/* ---------------------------------------------------------------- bench: one thread, through the driver */

static void bench_call(void *p) { hn_bf16_exec(p, ck_alone, NULL); }

void ck_bf16_bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t cin, cout, h, w, kernel, stride;
  } shape[] = {
      {"conv 7x7s2 3->64 224", 3, 64, 224, 224, 7, 2},    {"conv 1x1 64->256 56", 64, 256, 56, 56, 1, 1},
      {"conv 1x1 256->64 56", 256, 64, 56, 56, 1, 1},     {"conv 3x3 64->64 56", 64, 64, 56, 56, 3, 1},
      {"conv 3x3 128->128 28", 128, 128, 28, 28, 3, 1},   {"conv 3x3s2 256->256 28", 256, 256, 28, 28, 3, 2},
      {"conv 3x3 256->256 14", 256, 256, 14, 14, 3, 1},   {"conv 3x3 512->512 7", 512, 512, 7, 7, 3, 1},
      {"conv 1x1 1024->256 14", 1024, 256, 14, 14, 1, 1}, {"conv 3x3 512->1024 13", 512, 1024, 13, 13, 3, 1},
      {"gemm 128x768x3072", 768, 3072, 1, 128, 1, 1},     {"gemv 1x1000x2048", 2048, 1000, 1, 1, 1, 1}};
  const hn_bf16_ops *o = k->ops;
  const hn_cpu_info *cpu = hn_cpu();
  for (size_t i = 0;
       i < sizeof shape / sizeof *shape && k->isa > HN_ISA_SCALAR && ck_bf16_has_instructions(c, o); i++)
    for (uint32_t parts = 1; parts <= o->parts; parts++) {
      const int64_t pad = shape[i].kernel / 2, kh = shape[i].h > 1 ? shape[i].kernel : 1;
      const ck_conv_case s = {1,
                              1,
                              shape[i].cin,
                              shape[i].cout,
                              {1, shape[i].h, shape[i].w},
                              {1, kh, shape[i].kernel},
                              {1, shape[i].h > 1 ? shape[i].stride : 1, shape[i].stride},
                              {1, 1, 1},
                              {0, pad, pad},
                              {0, pad, pad},
                              0,
                              0,
                              HN_EPI_BIAS,
                              false};
      conv_run q;
      if (!prepare(c, o, &s, parts, false, 1, CK_RANDOM, cpu->l2, &q)) continue;
      hn_bf16_args args = {&q.g, o, q.step, q.x, q.packed, q.y, &q.e, q.workspace, 1, NULL, NULL};
      double pixels = (double)(q.g.out[1] * q.g.out[2]), flops = 2.0 * pixels * (double)(s.cout * q.k);
      /* Twice the lanes of f32 in f16; products of parts. */
      const ck_work work = {.unit = o->f16 ? CK_F32 : CK_BF16,
                            .flops = o->f16 ? flops / 2 : hn_bf16_products(parts) * flops,
                            .read = 4.0 * (double)(s.in[1] * s.in[2] * s.cin) +
                                    2.0 * (double)hn_bf16_weights(&q.g),
                            .written = 4.0 * pixels * (double)s.cout};
      char label[64];
      static const char *const names[] = {"x1", "x3", "x6"};
      snprintf(label, sizeof label, "%s %s", shape[i].label, o->f16 ? "f16" : names[parts - 1]);
      ck_bench_line(c, label, ck_time(bench_call, &args), &work, 0);
      release(c, &q);
    }
}
