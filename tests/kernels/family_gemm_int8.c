/* Family "gemm_int8" through its driver: convolutions of codes, element for element against sums of 64-bit
 * integers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/quantized/int8_driver.h"
#include "check.h"

typedef struct shape {
  int64_t batch, groups, cin, cout, in[3], kernel[3], stride[3], dilation[3], pad[3];
  int64_t extra_in, extra_out;
  bool flip, is_signed, is_u8;
  size_t l2;
} shape;

/* Zero points of the weights: 0 of i8 or 128 of u8; one other for all; one a channel, the outermost among
 * them. */
typedef enum zeros { PLAIN, ONE_ZERO, A_CHANNEL, ZEROS } zeros;

/* What codes and weights are: any; the largest, whose pairs of products need more than 16 bits; the largest
 * whose pairs just fit, and now and then any. */
typedef enum range { ANY, EXTREME, FITTING, RANGES } range;

static uint8_t weight_in(ck *c, range kind) {
  if (kind == EXTREME) return ck_random(c) % 4 ? 128 : 127;
  if (kind == FITTING && ck_random(c) % 200) return ck_random(c) % 2 ? 64 : (uint8_t)-64;
  return (uint8_t)ck_random(c);
}

static void serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, (uint32_t)(i % 3));
}

/* Bytes whose last one lies at the guard page. */
static uint8_t *bytes_at_guard(ck *c, size_t n) {
  const size_t words = (n + 3) / 4;
  return (uint8_t *)(ck_alloc(c, words, 0) + words) - n;
}

static hn_int8_conv describe(const shape *s, const hn_int8_ops *o, uint32_t threads, zeros kind, bool *ok) {
  hn_int8_conv c = {.batch = s->batch,
                    .groups = s->groups,
                    .cin = s->cin,
                    .cout = s->cout,
                    .zero = s->is_signed ? -9 : 37,
                    .flip = s->flip,
                    .is_signed = s->is_signed,
                    .offsets = kind != PLAIN,
                    .padding = s->flip ? 133 : 101};
  for (int i = 0; i < 3; i++) {
    c.in[i] = s->in[i], c.kernel[i] = s->kernel[i], c.stride[i] = s->stride[i],
    c.dilation[i] = s->dilation[i];
    c.pad[i] = s->pad[i];
    c.out[i] = (s->in[i] + 2 * s->pad[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
  }
  c.in_pitch = s->groups * s->cin + s->extra_in, c.out_pitch = s->groups * s->cout + s->extra_out;
  /* The last pixel ends with its channels. */
  c.in_bytes = s->batch * s->in[0] * s->in[1] * s->in[2] * c.in_pitch - s->extra_in;
  const char *why = "";
  *ok = hn_int8_plan(&c, o, threads, s->l2, &why);
  return c;
}

static int64_t value(const shape *s, uint8_t byte) { return s->flip ? (int8_t)byte + 128 : byte; }

static int64_t code(bool is_u8, uint8_t byte) { return is_u8 ? byte : (int8_t)byte; }

/* Weight i of channel j, of all groups. */
static int64_t weight_of(const hn_weight_codes *w, int64_t j, int64_t i) {
  return code(w->is_u8, ((const uint8_t *)w->w)[i]) -
         code(w->is_u8, ((const uint8_t *)w->zero)[w->zeros == 1 ? 0 : j]);
}

/* Sum of one output of channel j of group g, as the plan has groups. */
static int64_t oracle(const shape *s, const hn_int8_conv *p, const uint8_t *x, const hn_weight_codes *w,
                      int64_t row, int64_t g, int64_t j) {
  int64_t at[3], n = row, sum = 0;
  for (int i = 2; i >= 0; i--) at[i] = n % p->out[i], n /= p->out[i];
  const int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t t[3] = {tap / p->kernel[2] / p->kernel[1], tap / p->kernel[2] % p->kernel[1],
                          tap % p->kernel[2]};
    int64_t pixel = n;
    bool inside = true;
    for (int i = 0; i < 3; i++) {
      const int64_t v = at[i] * p->stride[i] + t[i] * p->dilation[i] - p->pad[i];
      inside = inside && v >= 0 && v < p->in[i];
      pixel = pixel * p->in[i] + v;
    }
    const int64_t channel = g * p->cout + j, group = channel / s->cout;
    for (int64_t c = 0; c < s->cin; c++) {
      const int64_t weight = weight_of(w, channel, (channel * s->cin + c) * taps + tap);
      sum += weight * (inside ? value(s, x[pixel * p->in_pitch + group * s->cin + c]) : p->padding);
    }
  }
  return sum;
}

static void check_shape(ck *c, const hn_int8_ops *o, const shape *s, uint32_t threads, range extreme,
                        zeros kind) {
  bool ok;
  const hn_int8_conv p = describe(s, o, threads, kind, &ok);
  ck_case(
      c,
      "batch=%d groups=%d %d->%d in=%dx%dx%d kernel=%dx%dx%d stride=%d pad=%d flip=%d extreme=%d threads=%u "
      "zeros=%d",
      (int)s->batch, (int)s->groups, (int)s->cin, (int)s->cout, (int)s->in[0], (int)s->in[1], (int)s->in[2],
      (int)s->kernel[0], (int)s->kernel[1], (int)s->kernel[2], (int)s->stride[2], (int)s->pad[2], s->flip,
      extreme, threads, kind);
  ck_true(c, ok, "the driver refuses");
  if (!ok) return;
  const int64_t most = (p.rows + 64) * (p.ld + 64 * p.k / p.cin) * 3;
  const size_t workspace = hn_int8_workspace(&p, o, 3);
  ck_true(c, workspace <= (size_t)most, "scratch is larger than three times all rows of A");
  if (workspace > (size_t)most) return;
  ck_true(c, p.rows < 200 || p.tiles * p.n_panels * p.groups >= (int64_t)threads,
          "a large product is not shared by the threads");
  const size_t weights = hn_int8_weights(&p), columns = hn_int8_columns(&p);
  const int64_t own_k = p.k / p.joined;
  const size_t n_w = (size_t)(p.groups * p.cout * own_k), n_y = (size_t)(p.rows * p.out_pitch - s->extra_out);
  uint8_t *x = bytes_at_guard(c, (size_t)p.in_bytes), *w = bytes_at_guard(c, n_w),
          *y = bytes_at_guard(c, n_y);
  for (size_t i = 0; i < (size_t)p.in_bytes; i++)
    x[i] = extreme != ANY ? (uint8_t)(ck_random(c) % 4 ? 255 : 0) : (uint8_t)ck_random(c);
  for (size_t i = 0; i < n_w; i++) w[i] = weight_in(c, extreme);
  memset(y, 0xa5, n_y);
  int8_t *packed = aligned_alloc(64, hn_int8_round(weights * (size_t)p.groups, 64));
  int32_t *bias = calloc(columns * (size_t)p.groups, sizeof *bias),
          *offset = calloc(columns * (size_t)p.groups, sizeof *offset);
  float *scale = calloc(columns * (size_t)p.groups, sizeof *scale);
  const int64_t n_zeros = kind == A_CHANNEL ? p.groups * p.cout : 1;
  uint8_t *zero = bytes_at_guard(c, (size_t)n_zeros);
  for (int64_t i = 0; i < n_zeros; i++)
    zero[i] = kind == PLAIN ? (s->is_u8 ? 128 : 0)
              : i % 5 == 1  ? 255
              : i % 5 == 2  ? 0
                            : (uint8_t)ck_random(c);
  const hn_weight_codes codes = {.w = w, .zero = zero, .zeros = n_zeros, .is_u8 = s->is_u8};
  uint8_t *scratch = bytes_at_guard(c, workspace);
  const int64_t taps = p.k / p.cin;
  bool any = false, wanted = false;
  for (int64_t g = 0; g < p.groups; g++) {
    any |= hn_int8_pack(&p, o, &codes, g, own_k, 1, taps, packed + (size_t)g * weights,
                        bias + (size_t)g * columns, offset + (size_t)g * columns);
    for (int64_t j = 0; j < p.cout; j++) {
      int64_t sum = 0;
      for (int64_t k = 0; k < own_k; k++) {
        const int64_t v = weight_of(&codes, g * p.cout + j, (g * p.cout + j) * own_k + k);
        wanted |= v < -128 || v > 127;
        sum += v;
      }
      int32_t *b = &bias[(size_t)g * columns + (size_t)j];
      ck_same(c, (size_t)j, (float)*b, (float)sum);
      *b = (int32_t)(ck_random(c) % 2000) - 1000 - (int32_t)(p.padding * sum);
      scale[(size_t)g * columns + (size_t)j] =
          (extreme != ANY ? 0.00002f : 0.0004f) * (float)(1 + ck_random(c) % 9);
    }
  }
  ck_true(c, any == wanted, "offsets are not said to be what they are");
  hn_int8_args a = {.conv = &p,
                    .ops = o,
                    .x = x,
                    .w = packed,
                    .bias = bias,
                    .offset = offset,
                    .scale = scale,
                    .y = y,
                    .scratch = scratch};
  hn_int8_exec(&a, serial, NULL);
  /* The same as f32, without gaps but the last pixel's. */
  hn_int8_conv wide = p;
  wide.wide = 1, wide.out_pitch = p.out_pitch * (int64_t)sizeof(float);
  float *z = ck_alloc(c, n_y, 0);
  hn_int8_args b = a;
  b.conv = &wide, b.y = z;
  for (size_t i = 0; i < n_y; i++) z[i] = 77;
  hn_int8_exec(&b, serial, NULL);
  /* And the sums themselves. */
  hn_int8_conv whole = wide;
  whole.whole = 1;
  int32_t *sums = (int32_t *)(void *)ck_alloc(c, n_y, 0);
  b.conv = &whole, b.y = sums, b.scale = NULL;
  for (size_t i = 0; i < n_y; i++) sums[i] = 77;
  hn_int8_exec(&b, serial, NULL);
  for (int64_t r = 0; r < p.rows; r++) {
    for (int64_t g = 0; g < p.groups; g++)
      for (int64_t j = 0; j < p.cout; j++) {
        const size_t column = (size_t)g * columns + (size_t)j;
        const int64_t sum = oracle(s, &p, x, &codes, r, g, j) + bias[column];
        const float lo = s->is_signed ? -128 : 0, hi = s->is_signed ? 127 : 255,
                    v = rintf((float)sum * scale[column]) + (float)p.zero,
                    want = v < lo   ? lo
                           : v > hi ? hi
                                    : v;
        const uint8_t got = y[r * p.out_pitch + g * p.cout + j];
        ck_true(c, sums[r * p.out_pitch + g * p.cout + j] == sum, "a sum is another");
        ck_same(c, (size_t)j, z[r * p.out_pitch + g * p.cout + j], (float)sum * scale[column]);
        ck_same(c, (size_t)(r * p.out_pitch + g * p.cout + j), s->is_signed ? (float)(int8_t)got : (float)got,
                want);
      }
    for (int64_t j = 0; j < s->extra_out && r + 1 < p.rows; j++)
      ck_true(c,
              y[r * p.out_pitch + p.groups * p.cout + j] == 0xa5 &&
                  z[r * p.out_pitch + p.groups * p.cout + j] == 77 &&
                  sums[r * p.out_pitch + p.groups * p.cout + j] == 77,
              "bytes between pixels are written");
  }
  free(packed);
  free(bias);
  free(offset);
  free(scale);
  ck_release_all(c);
}

#define ONE                                                                                                  \
  { 1, 1, 1 }
#define NONE                                                                                                 \
  { 0, 0, 0 }

enum { FAR = 1 << 30 };

/* A matrix of the run in the kernels' order, with the sums of its columns. */
static void check_operand(ck *c, const hn_int8_ops *o, size_t k, size_t n, size_t gap, uint8_t turn) {
  const size_t packed = hn_int8_round(k, o->k_step), columns = hn_int8_round(n, HN_INT8_BLOCK);
  uint8_t *b = bytes_at_guard(c, (k - 1) * (n + gap) + n);
  int8_t *dst = aligned_alloc(64, hn_int8_round(packed * columns, 64));
  int32_t *sums = calloc(columns, sizeof *sums);
  ck_case(c, "operand k=%zu n=%zu gap=%zu turn=%d", k, n, gap, turn);
  for (size_t i = 0; i < (k - 1) * (n + gap) + n; i++) b[i] = (uint8_t)ck_random(c);
  memset(dst, 0x55, packed * columns);
  const hn_int8_operand a = {b, (ptrdiff_t)(n + gap), k, n, packed, turn, dst, sums};
  o->operand(&a);
  for (size_t j = 0; j < columns; j++) {
    int32_t sum = 0;
    for (size_t i = 0; i < packed; i++) {
      const int8_t want = i < k && j < n ? (int8_t)(b[i * (n + gap) + j] ^ turn) : 0;
      sum += want;
      ck_same(c, i * columns + j,
              dst[j / HN_INT8_BLOCK * HN_INT8_BLOCK * packed + i / 4 * 64 + j % HN_INT8_BLOCK * 4 + i % 4],
              want);
    }
    ck_same(c, j, (float)sums[j], (float)sum);
  }
  free(dst);
  free(sums);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t sides[][2] = {{1, 1}, {4, 16}, {5, 17}, {36, 256}, {63, 31}, {64, 48}, {67, 5}};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    for (int form = 0; form < 4; form++)
      check_operand(c, k->ops, sides[i][0], sides[i][1], form & 1 ? 3 : 0, form & 2 ? 0x80 : 0);
  static const shape shapes[] = {
      {1, 1, 1, 1, ONE, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 20},
      {1, 1, 4, 16, {1, 1, 13}, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 20},
      {1, 1, 8, 32, {1, 3, 14}, ONE, ONE, ONE, NONE, 0, 0, false, true, false, 1 << 20},
      {2, 1, 7, 33, {1, 5, 6}, ONE, ONE, ONE, NONE, 0, 3, false, false, true, 1 << 20},
      {1, 1, 63, 17, {1, 3, 5}, ONE, ONE, ONE, NONE, 5, 0, true, true, false, 1 << 20},
      {1, 1, 64, 48, {1, 4, 4}, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 20},
      {1, 1, 130, 70, {1, 7, 7}, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 13},
      {1, 1, 3, 24, {1, 17, 19}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 1}, 0, 0, false, false, false, 1 << 20},
      {2, 1, 16, 40, {1, 9, 8}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, 0, 1, false, true, true, 1 << 14},
      {1, 1, 5, 9, {1, 9, 11}, {1, 5, 3}, ONE, {1, 2, 2}, {0, 4, 2}, 2, 0, true, false, false, 1 << 20},
      {1, 1, 2, 7, {5, 6, 7}, {3, 3, 3}, {2, 1, 2}, ONE, {1, 1, 1}, 0, 0, false, false, false, 1 << 20},
      {1, 3, 6, 20, {1, 6, 5}, {1, 1, 3}, ONE, ONE, {0, 0, 1}, 0, 0, false, false, false, 1 << 20},
      {1, 2, 12, 5, {1, 6, 5}, ONE, ONE, ONE, NONE, 0, 0, false, true, false, 1 << 20},
      /* groups that are joined */
      {1, 8, 4, 4, {1, 9, 10}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, 0, 0, false, false, false, 1 << 20},
      {2, 6, 5, 3, {1, 7, 11}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 1}, 4, 1, true, true, true, 1 << 14},
      {1, 4, 3, 9, {1, 5, 7}, ONE, ONE, ONE, NONE, 0, 0, false, false, true, 1 << 20},
      {1, 1, 40, 65, {1, 1, 61}, {1, 1, 1}, {1, 1, 2}, ONE, NONE, 0, 0, true, false, true, 1 << 20},
      {1, 1, 33, 96, {1, 20, 21}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, 0, 0, false, false, false, 1 << 16},
      /* a matrix of signed codes; a single line */
      {1, 1, 9, 7, {1, 1, 300}, ONE, ONE, ONE, NONE, 0, 0, true, true, false, 1 << 20},
      {1, 1, 6, 9, {1, 1, 301}, {1, 1, 5}, ONE, ONE, {0, 0, 2}, 0, 0, false, false, true, 1 << 12},
      /* taps, or outputs, that lie far apart */
      {1,
       1,
       8,
       8,
       {1, 4, 28},
       {1, 2, 1},
       ONE,
       {1, FAR, 1},
       {0, FAR / 2, 0},
       0,
       0,
       false,
       false,
       false,
       1 << 20},
      {1,
       1,
       8,
       8,
       {1, 30, 30},
       {1, 2, 2},
       ONE,
       {1, FAR, FAR},
       {0, FAR / 2, FAR / 2},
       0,
       0,
       true,
       false,
       true,
       1 << 20},
      {2, 1, 5, 20, {1, 23, 140}, {1, 2, 2}, {1, 7, 5}, ONE, {0, 1, 0}, 0, 0, false, true, false, 1 << 14},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (uint32_t threads = 1; threads <= 3; threads += 2)
      for (range extreme = ANY; extreme < RANGES; extreme++)
        for (zeros kind = PLAIN; kind < ZEROS; kind++)
          check_shape(c, k->ops, &shapes[i], threads, extreme, kind);
}

struct job {
  hn_int8_args a;
  hn_int8_conv p;
};
static void run_job(void *arg) {
  struct job *j = arg;
  hn_int8_exec(&j->a, serial, NULL);
}

static double seconds(const hn_int8_ops *o, const shape *s, zeros kind) {
  bool ok;
  struct job j = {.p = describe(s, o, 1, kind, &ok)};
  const size_t weights = hn_int8_weights(&j.p), columns = hn_int8_columns(&j.p);
  uint8_t *x = calloc((size_t)j.p.in_bytes, 1), *y = calloc((size_t)(j.p.rows * j.p.out_pitch), 1),
          *scratch = calloc(hn_int8_workspace(&j.p, o, 3), 1);
  int8_t *w = aligned_alloc(64, hn_int8_round(weights, 64));
  int32_t *bias = calloc(columns, sizeof *bias), *offset = calloc(columns, sizeof *offset);
  float *scale = calloc(columns, sizeof *scale);
  const size_t own = (size_t)(j.p.cout * j.p.k);
  uint8_t *source = malloc(own);
  memset(source, 3, own);
  const hn_weight_codes codes = {.w = source};
  hn_int8_pack(&j.p, o, &codes, 0, j.p.k, 1, j.p.k / j.p.cin, w, bias, offset);
  free(source);
  j.a = (hn_int8_args){.conv = &j.p,
                       .ops = o,
                       .x = x,
                       .w = w,
                       .bias = bias,
                       .offset = offset,
                       .scale = scale,
                       .y = y,
                       .scratch = scratch};
  const double t = ck_time(run_job, &j);
  free(x), free(y), free(scratch), free(w), free(bias), free(offset), free(scale);
  return t;
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const shape s[] = {
      {1, 1, 256, 256, {1, 14, 14}, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 20},
      {1, 1, 24, 144, {1, 56, 56}, ONE, ONE, ONE, NONE, 0, 0, false, false, false, 1 << 20},
      {1, 1, 64, 64, {1, 56, 56}, {1, 3, 3}, ONE, ONE, {0, 1, 1}, 0, 0, false, false, false, 1 << 20},
      {1, 1, 3, 32, {1, 224, 224}, {1, 3, 3}, {1, 2, 2}, ONE, {0, 1, 1}, 0, 0, false, false, false, 1 << 20}};
  static const char *const names[] = {"1x1 256->256 14x14", "1x1 24->144 56x56", "3x3 64->64 56x56",
                                      "3x3 s2 3->32 224x224"};
  const struct hn_kernel *scalar = hn_kernel_find("gemm_int8", "u8s8", HN_ISA_SCALAR);
  for (size_t at = 0; at < 2 * (sizeof s / sizeof *s); at++) {
    const size_t i = at / 2;
    const zeros kind = at % 2 ? ONE_ZERO : PLAIN;
    bool ok;
    const hn_int8_conv p = describe(&s[i], k->ops, 1, kind, &ok);
    const double t = seconds(k->ops, &s[i], kind), ts = k == scalar ? 0 : seconds(scalar->ops, &s[i], kind);
    const ck_work work = {.unit = CK_INT8,
                          .flops = 2.0 * (double)(p.rows * p.cout * p.k),
                          .read = (double)p.in_bytes + (double)hn_int8_weights(&p),
                          .written = (double)(p.rows * p.out_pitch)};
    char name[64];
    snprintf(name, sizeof name, "%s%s", names[i], kind == PLAIN ? "" : ", offsets");
    ck_bench_line(c, name, t, &work, ts);
  }
}

const ck_family ck_family_gemm_int8 = {"gemm_int8", check, bench};
