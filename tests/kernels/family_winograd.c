/* Family "winograd": the transforms through the driver, with the gemm or gemm_bf16 kernel of the same tier,
 * against the direct sum in f64.  The bound is the tile's norm-wise one of kernels/winograd/winograd.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/conv/winograd_driver.h"
#include "backends/cpu/kernels/features.h"
#include "base/half.h"
#include "check.h"

enum { MOST_CHANNELS = 96, MOST_DEPTH = 3 };
/* What lies in bf16, where the products are of bf16. */
enum { NARROW_IN = 1, NARROW_OUT = 2, NARROW_RESIDUAL = 4 };

/* Kernels of a tier: those of the products are gemm's, or bf16's where there are some. */
typedef struct kernels {
  const hn_winograd_ops *winograd;
  const hn_gemm_ops *gemm;
  const hn_bf16_ops *bf16;
} kernels;

static kernels kernels_of(const struct hn_kernel *k) {
  const bool bf16 = strstr(k->role, "_bf16") != NULL;
  return (kernels){k->ops, hn_gemm_find(k->isa), bf16 ? hn_bf16_find(k->isa) : NULL};
}

typedef struct shape {
  int64_t batch, in[2], pad[2], pad_end[2], extra_in, extra_out;
  uint32_t flags;
  bool post;
  hn_winograd_depth depth; /* all 0: a plane */
  int64_t groups;          /* 0: one */
} shape;

static void serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, 0);
}

static hn_winograd describe(const shape *s, const kernels *k, int64_t cin, int64_t cout, int narrow,
                            uint32_t threads, size_t l2) {
  const int64_t stride = k->winograd->stride;
  hn_winograd p = {.m = k->winograd->m,
                   .stride = stride,
                   .batch = s->batch,
                   .groups = s->groups ? s->groups : 1,
                   .cin = cin,
                   .cout = cout};
  const hn_winograd_depth plane = {1, 1, 1, 1, 1, 0};
  p.depth = s->depth.kernel ? s->depth : plane;
  if (k->bf16) {
    p.bf16_rows = k->bf16->rows, p.bf16_rate = 2;
    p.narrow_in = (narrow & NARROW_IN) != 0, p.narrow_out = (narrow & NARROW_OUT) != 0;
  }
  for (int i = 0; i < 2; i++) {
    p.in[i] = s->in[i], p.pad[i] = s->pad[i];
    p.out[i] = (s->in[i] + s->pad[i] + s->pad_end[i] - 3) / stride + 1;
  }
  p.in_pixel = p.groups * cin + s->extra_in, p.in_row = p.in_pixel * s->in[1],
  p.in_slice = p.in_row * s->in[0];
  p.in_batch = p.in_slice * p.depth.in;
  const int64_t pitch = p.groups * cout + s->extra_out, slice = p.out[0] * p.out[1] * pitch;
  p.y = (hn_view){p.depth.out * slice, slice, p.out[1] * pitch, pitch};
  const hone_machine machine = {.threads = threads, .peak_flops = 1e11, .l1 = 32768, .l2 = l2};
  hn_winograd_plan(&p, k->gemm, &machine);
  return p;
}

static void negate(float *x, size_t n, const float *p) {
  for (size_t i = 0; i < n; i++) x[i] = -x[i] * p[0];
}

typedef struct problem {
  hn_winograd p;
  const float *x, *w, *bias, *residual;
  const float *largest_w; /* |weight| of each nine */
  hn_epilogue e;
} problem;

/* A place of the output, and the taps that find an input there: which, and how far into a slice. */
typedef struct pixel {
  int64_t n, z, v, u;
  int taps, tap[9];
  int64_t at[9];
} pixel;

static void find_taps(const hn_winograd *p, pixel *to) {
  to->taps = 0;
  for (int t = 0; t < 9; t++) {
    const int64_t y = to->v * p->stride + t / 3 - p->pad[0], x = to->u * p->stride + t % 3 - p->pad[1];
    if (y < 0 || y >= p->in[0] || x < 0 || x >= p->in[1]) continue;
    to->at[to->taps] = y * p->in_row + x * p->in_pixel, to->tap[to->taps++] = t;
  }
}

/* The slice that tap j of depth finds, or -1. */
static int64_t slice_of(const hn_winograd *p, int64_t z, int64_t j) {
  const int64_t at = z * p->depth.stride + j * p->depth.dilation - p->depth.pad;
  return at < p->depth.in ? at : -1;
}

/* The largest |input| of a channel in the tile that an output pixel belongs to, in a slice that it reads. */
static double tile_max(const problem *q, const pixel *at, int64_t j, int64_t c) {
  const hn_winograd *p = &q->p;
  const int64_t side = hn_winograd_form_of(p->m, p->stride)->pieces;
  int64_t y0 = at->v / p->m * p->m * p->stride - p->pad[0], x0 = at->u / p->m * p->m * p->stride - p->pad[1];
  const int64_t z = slice_of(p, at->z, j);
  double largest = 0;
  if (z < 0) return 0;
  for (int64_t y = y0 > 0 ? y0 : 0; y < y0 + side && y < p->in[0]; y++)
    for (int64_t x = x0 > 0 ? x0 : 0; x < x0 + side && x < p->in[1]; x++) {
      double a =
          fabs((double)q->x[at->n * p->in_batch + z * p->in_slice + y * p->in_row + x * p->in_pixel + c]);
      if (isnan(a)) return a;
      if (a > largest) largest = a;
    }
  return largest;
}

/* largest_in: tile_max of every channel and tap of depth. */
static void check_output(ck *c, const problem *q, size_t index, float got, const pixel *to, int64_t k,
                         const double *largest_in) {
  const hn_winograd *p = &q->p;
  const hn_epilogue *e = &q->e;
  double acc = 0, norm = 0, sum_in = 0, sum_w = 0;
  for (int64_t i = 0; i < p->cin * p->depth.kernel; i++) {
    const int64_t ci = i / p->depth.kernel, z = slice_of(p, to->z, i % p->depth.kernel);
    const float *g = q->w + (k * p->cin * p->depth.kernel + i) * 9;
    const double largest = (double)q->largest_w[k * p->cin * p->depth.kernel + i];
    const float *x = q->x + to->n * p->in_batch + (z < 0 ? 0 : z) * p->in_slice + k / p->cout * p->cin + ci;
    for (int t = 0; z >= 0 && t < to->taps; t++) acc += (double)x[to->at[t]] * (double)g[to->tap[t]];
    norm += largest * largest_in[i], sum_in += largest_in[i], sum_w += largest;
  }
  const hn_winograd_form *form = hn_winograd_form_of(p->m, p->stride);
  double operations = (double)(hn_winograd_terms(form, p->cin * p->depth.kernel) + HN_WINOGRAD_ROUNDINGS),
         tile_norm = form->norm;
  double bound = operations * CK_EPS * tile_norm * norm + operations * tile_norm * CK_TINY;
  if (p->bf16_rows) { /* both operands are rounded; what is below 2^-126 may count as 0 */
    bound += (0x1p-7 + 0x1p-16) * tile_norm * norm + tile_norm * (sum_in + sum_w) * 0x1p-126;
  }
  if (!(norm <= 3e38)) { /* Inf or NaN somewhere in the tile: what is not finite must not become so */
    if (!(e->flags & HN_EPI_CLAMP)) ck_true(c, isfinite(acc) || !isfinite(got), "an Inf or NaN is lost");
    return;
  }
  double mag = fabs(acc);
  int64_t at = hn_view_at(&e->residual_view, to->n, to->z, to->v, to->u) + k;
  bool add = e->flags & HN_EPI_RESIDUAL, after = e->flags & HN_EPI_RESIDUAL_AFTER;
  if (e->flags & HN_EPI_BIAS) acc += q->bias[k], mag += fabs((double)q->bias[k]);
  if (add) mag += fabs((double)q->residual[at]);
  if (add && !after) acc += q->residual[at];
  if (e->flags & HN_EPI_CLAMP) acc = acc < e->lo ? e->lo : acc > e->hi ? e->hi : acc;
  if (e->flags & HN_EPI_LEAKY) acc = acc < 0 ? acc * e->slope : acc;
  if (add && after) acc += q->residual[at];
  bound += 4 * CK_EPS * (mag + bound);
  if (e->n_post) acc *= -2, bound *= 2;
  if (p->narrow_out) bound += 0x1p-8 * (fabs(acc) + bound) + 0x1p-126;
  ck_near(c, index, got, acc, bound);
}

/* Values of bf16; x becomes what they hold. */
static uint16_t *narrowed(ck *c, float *x, size_t n) {
  uint16_t *to = (uint16_t *)(void *)ck_alloc(c, (n + 1) / 2, 0);
  for (size_t i = 0; i < n; i++) x[i] = hn_bf16_to_f32(to[i] = hn_f32_to_bf16(x[i]));
  return to;
}

/* Packs all weights; bf16: with the steps' places behind them. */
static void pack(const hn_winograd *p, const kernels *k, const float *w, float *packed, int32_t *step) {
  const size_t steps = (size_t)hn_winograd_steps(p);
  hn_winograd_fill_steps(p, step);
  float *wide = malloc(hn_winograd_panel(p) * sizeof *wide);
  int64_t *at = malloc(steps * HN_BF16_STEP * sizeof *at);
  if (!wide || !at) exit(6);
  for (int64_t i = 0; i < p->n_panels; i++)
    if (k->bf16)
      hn_winograd_pack_bf16(p, k->bf16, w, i, wide, at, (uint16_t *)(void *)packed);
    else
      hn_winograd_pack_panel(p, k->gemm, w, i, packed);
  free(at);
  free(wide);
}

static void check_shape(ck *c, const kernels *k, const shape *s, int64_t cin, int64_t cout, int narrow,
                        enum ck_fill fill, size_t l2) {
  problem q = {.p = describe(s, k, cin, cout, narrow, 2, l2)};
  const hn_winograd *p = &q.p;
  ck_case(c,
          "winograd m%lld s%lld n%lld g%lld c%lld>%lld depth %lld>%lld k%lld %lldx%lld p%lld,%lld "
          "pitch+%lld/%lld "
          "flags=%u post=%d fill=%s narrow=%d",
          (long long)p->m, (long long)p->stride, (long long)s->batch, (long long)p->groups, (long long)cin,
          (long long)cout, (long long)p->depth.in, (long long)p->depth.out, (long long)p->depth.kernel,
          (long long)s->in[0], (long long)s->in[1], (long long)s->pad[0], (long long)s->pad[1],
          (long long)s->extra_in, (long long)s->extra_out, s->flags, s->post, ck_fill_name(fill), narrow);
  int64_t in_pixels = s->batch * p->depth.in * s->in[0] * s->in[1],
          pixels = s->batch * p->depth.out * p->out[0] * p->out[1];
  size_t nx = (size_t)(in_pixels ? (in_pixels - 1) * p->in_pixel + p->groups * cin : 0);
  const int64_t filters = p->groups * cout;
  size_t ny = (size_t)(pixels ? (pixels - 1) * p->y.pixel + filters : 0),
         nw = (size_t)(cin * filters * p->depth.kernel * 9);
  float *x = ck_alloc(c, nx, 0), *y = ck_alloc(c, ny, (size_t)(s->extra_out ? 1 : 0)),
        *r = ck_alloc(c, ny, 0);
  float *w = ck_alloc(c, nw, 0), *bias = ck_alloc(c, (size_t)filters, 0);
  const size_t n_packed = hn_winograd_packed_size(p, k->gemm);
  float *packed = ck_alloc(c, k->bf16 ? n_packed / 2 : n_packed, 0),
        *scratch = ck_alloc(c, hn_winograd_scratch(p, k->gemm), 0);
  int32_t step[(MOST_CHANNELS / HN_BF16_STEP + 1) * 4];
  ck_fill(c, x, nx, fill);
  ck_fill(c, r, ny, fill == CK_SPECIAL ? CK_RANDOM : fill);
  ck_fill(c, w, nw, fill == CK_SPECIAL ? CK_RANDOM : fill);
  ck_fill(c, bias, (size_t)filters, fill == CK_SPECIAL ? CK_RANDOM : fill);
  pack(p, k, w, packed, step);
  float *largest_w = ck_alloc(c, nw / 9, 0);
  for (size_t i = 0; i < nw / 9; i++) {
    largest_w[i] = 0;
    for (int t = 0; t < 9; t++) largest_w[i] = fmaxf(largest_w[i], fabsf(w[i * 9 + (size_t)t]));
  }
  q.x = x, q.w = w, q.largest_w = largest_w, q.bias = bias, q.residual = r;
  q.e = (hn_epilogue){.flags = s->flags,
                      .lo = -0.25f,
                      .hi = 0.5f,
                      .slope = 0.125f,
                      .bias = bias,
                      .residual = r,
                      .residual_view = p->y};
  if (s->post)
    q.e.rows = hn_post_find(HN_ISA_SCALAR), q.e.n_post = 1,
    q.e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = negate, .p = {2.0f}};
  const void *in = narrow & NARROW_IN ? (const void *)narrowed(c, x, nx) : x;
  uint16_t *narrow_y = narrow & NARROW_OUT ? (uint16_t *)(void *)ck_alloc(c, (ny + 1) / 2, 0) : NULL;
  if (narrow & NARROW_RESIDUAL && s->flags & HN_EPI_RESIDUAL)
    q.e.narrow_residual = narrowed(c, r, ny), q.e.residual = NULL;
  hn_winograd_args a = {.plan = p,
                        .gemm = k->gemm,
                        .ops = k->winograd,
                        .bf16 = k->bf16,
                        .step = step,
                        .x = in,
                        .w = packed,
                        .y = narrow_y ? (void *)narrow_y : y,
                        .epilogue = &q.e,
                        .scratch = scratch};
  hn_winograd_exec(&a, serial, NULL);
  size_t index = 0;
  for (int64_t i = 0; i < pixels; i++) {
    pixel to = {.n = i / (p->out[0] * p->out[1] * p->depth.out),
                .z = i / (p->out[0] * p->out[1]) % p->depth.out,
                .v = i / p->out[1] % p->out[0],
                .u = i % p->out[1]};
    find_taps(p, &to);
    double largest_in[MOST_CHANNELS * MOST_DEPTH];
    for (int64_t j = 0; j < filters; j++, index++) {
      for (int64_t ci = 0; j % cout == 0 && ci < cin * p->depth.kernel; ci++)
        largest_in[ci] = tile_max(&q, &to, ci % p->depth.kernel, j / cout * cin + ci / p->depth.kernel);
      const int64_t at = hn_view_at(&p->y, to.n, to.z, to.v, to.u) + j;
      check_output(c, &q, index, narrow_y ? hn_bf16_to_f32(narrow_y[at]) : y[at], &to, j, largest_in);
    }
  }
  ck_release_all(c);
}

static const int64_t channels[][2] = {{1, 1}, {7, 33}, {16, 16}, {17, 32}, {33, 70}, {MOST_CHANNELS, 5}};
static const shape shapes[] = {
    {1, {9, 9}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false, {0}, 0},
    {2, {7, 14}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS, false, {0}, 0},
    {1, {12, 19}, {0, 2}, {1, 0}, 3, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY, false, {0}, 0},
    {1, {8, 13}, {2, 0}, {2, 1}, 0, 5, HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER, false, {0}, 0},
    {1, {1, 1}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS, true, {0}, 0},
    {3, {3, 4}, {0, 0}, {0, 0}, 1, 1, HN_EPI_BIAS | HN_EPI_CLAMP, true, {0}, 0},
    {1, {5, 2}, {4, 6}, {5, 3}, 0, 0, 0, false, {0}, 0}, /* tiles that lie outside the image */
    {0, {5, 5}, {1, 1}, {1, 1}, 0, 0, 0, false, {0}, 0},
    {2, {5, 9}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS, true, {3, 2, 1, 2, 1, 0}, 0}, /* slices apart */
};
/* Channels of a group; groups, and batch, size, padding at both ends, further floats of a pixel, flags, post.
 */
static const int64_t group_channels[][2] = {{2, 3}, {4, 4}, {8, 8}, {16, 16}, {24, 24}, {7, 33}, {5, 70}};
static const shape grouped[] = {
    {1, {9, 9}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false, {0}, 2},
    {2, {7, 14}, {1, 1}, {1, 1}, 3, 5, HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY, true, {0}, 5},
    {1, {4, 3}, {0, 1}, {1, 0}, 0, 0, HN_EPI_BIAS, false, {3, 3, 3, 1, 1, 1}, 3},
    {1, {30, 2}, {1, 1}, {1, 1}, 0, 0, 0, false, {0}, 19},
};
/* Several taps of depth: depth in, out, kernel, stride, dilation, padding. */
static const shape deep[] = {
    {1, {9, 9}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false, {4, 4, 3, 1, 1, 1}, 0},
    {2,
     {5, 10},
     {1, 1},
     {1, 1},
     3,
     5,
     HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY,
     false,
     {1, 1, 3, 1, 1, 1},
     0},
    {1, {7, 4}, {1, 0}, {1, 0}, 0, 0, HN_EPI_RESIDUAL, true, {9, 5, 3, 2, 1, 1}, 0},
    {1, {4, 3}, {1, 1}, {1, 1}, 0, 1, HN_EPI_BIAS, false, {7, 7, 3, 1, 2, 2}, 0},
    {2, {3, 5}, {1, 1}, {0, 2}, 1, 0, 0, false, {2, 6, 2, 1, 3, 3}, 0}, /* slices of padding alone */
    {1, {3, 3}, {1, 1}, {1, 1}, 0, 0, HN_EPI_BIAS, false, {19, 17, 3, 1, 1, 0}, 0},
};

static void check_grouped(ck *c, const kernels *of) {
  for (size_t i = 0; i < sizeof grouped / sizeof *grouped; i++)
    for (size_t j = 0; j < sizeof group_channels / sizeof *group_channels; j++)
      for (int fill = 0, fills = ck_fills(c); fill < fills && !ck_failed(c); fill++)
        check_shape(c, of, &grouped[i], group_channels[j][0], group_channels[j][1], 0, (enum ck_fill)fill,
                    fill % 2 ? 1u << 20 : 1u << 15);
}

static void check_deep(ck *c, const kernels *of) {
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
    for (size_t j = 0; j < sizeof channels / sizeof *channels; j++)
      for (int fill = 0, fills = ck_fills(c); fill < fills && !ck_failed(c); fill++)
        check_shape(c, of, &deep[i], channels[j][0], channels[j][1], 0, (enum ck_fill)fill,
                    fill % 2 ? 1u << 20 : 1u << 15);
}

/* The kernels of products that the driver would take on this tier. */
static void check(ck *c, const struct hn_kernel *k) {
  static const int narrow[] = {0, NARROW_IN | NARROW_OUT | NARROW_RESIDUAL, NARROW_IN | NARROW_RESIDUAL,
                               NARROW_OUT};
  const kernels of = kernels_of(k);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t j = 0; j < sizeof channels / sizeof *channels; j++)
      for (size_t n = 0; n < (of.bf16 ? sizeof narrow / sizeof *narrow : 1); n++)
        for (int fill = 0, fills = ck_fills(c); fill < fills && !ck_failed(c); fill++)
          check_shape(c, &of, &shapes[i], channels[j][0], channels[j][1], narrow[n], (enum ck_fill)fill,
                      fill % 2 ? 1u << 20 : 1u << 15);
  if (of.bf16) return;
  check_deep(c, &of);
  check_grouped(c, &of);
}

static void bench_call(void *p) { hn_winograd_exec(p, serial, NULL); }

/* Products of bf16: tensors in bf16, too. */
static double bench_one(const struct hn_kernel *k, const shape *s, int64_t cin, int64_t cout) {
  const kernels of = kernels_of(k);
  hn_winograd p = describe(s, &of, cin, cout, NARROW_IN | NARROW_OUT, 1, hn_cpu()->l2);
  size_t nx = (size_t)p.in_batch, ny = (size_t)p.y.batch, nw = hn_winograd_packed_size(&p, of.gemm),
         all = nx + ny + nw + hn_winograd_scratch(&p, of.gemm) + 64;
  float *mem = aligned_alloc(4096, (all * 4 + 4095) / 4096 * 4096);
  int32_t *step = malloc((size_t)hn_winograd_row_steps(&p) * sizeof *step);
  if (!mem || !step) exit(6);
  hn_winograd_fill_steps(&p, step);
  for (size_t i = 0; i < all; i++) mem[i] = (float)(i % 13) * 0.1f - 0.6f;
  hn_epilogue e = {.flags = HN_EPI_CLAMP, .lo = 0, .hi = INFINITY};
  float *w = mem, *scratch = w + (nw + 15) / 16 * 16, *x = scratch + hn_winograd_scratch(&p, of.gemm),
        *y = x + nx;
  hn_winograd_args a = {.plan = &p,
                        .gemm = of.gemm,
                        .ops = of.winograd,
                        .bf16 = of.bf16,
                        .step = step,
                        .x = x,
                        .w = w,
                        .y = y,
                        .epilogue = &e,
                        .scratch = scratch};
  double t = ck_time(bench_call, &a);
  free(step);
  free(mem);
  return t;
}

/* Reported against the FLOPs of the products that the algorithm does, all tiles whole. */
static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t size, cin, cout;
  } line[] = {
      {"56x56 64>64", 56, 64, 64},     {"28x28 128>128", 28, 128, 128}, {"14x14 256>256", 14, 256, 256},
      {"7x7 512>512", 7, 512, 512},    {"208x208 32>64", 208, 32, 64},  {"104x104 64>128", 104, 64, 128},
      {"52x52 128>256", 52, 128, 256}, {"26x26 256>512", 26, 256, 512}, {"13x13 512>1024", 13, 512, 1024}};
  const hn_winograd_ops *const ops = k->ops;
  const hn_winograd_form *const form = hn_winograd_form_of(ops->m, ops->stride);
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
    shape s = {1, {line[i].size, line[i].size}, {1, 1}, {1, 1}, 0, 0, 0, false, {0}, 0};
    double t = bench_one(k, &s, line[i].cin, line[i].cout), n = (double)(form->pieces * form->pieces);
    const int64_t side = (line[i].size + form->m * form->stride - 1) / (form->m * form->stride);
    const double tiles = (double)(side * side);
    double flops = 2 * n * tiles * (double)(line[i].cin * line[i].cout);
    double pixels = (double)(line[i].size * line[i].size);
    const bool bf16 = kernels_of(k).bf16 != NULL;
    const double size = bf16 ? 2 : 4;
    const ck_work work = {
        .unit = bf16 ? CK_BF16 : CK_F32,
        .flops = flops,
        .read = size * (n * (double)(line[i].cin * line[i].cout) + pixels * (double)line[i].cin),
        .written = size * pixels * (double)line[i].cout / (double)(form->stride * form->stride)};
    bool slow = k == scalar || !scalar || i > 3;
    ck_bench_line(c, line[i].label, t, &work, slow ? 0 : bench_one(scalar, &s, line[i].cin, line[i].cout));
  }
}

const ck_family ck_family_winograd = {"winograd", check, bench};
