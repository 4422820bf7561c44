/* Family "depthwise_int8" through its driver: depthwise convolutions of codes, element for element against
 * sums of 64-bit integers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/quantized/depthwise_int8_driver.h"
#include "check.h"

typedef struct shape {
  int64_t batch, channels, in[2], kernel[2], stride[2], dilation[2], pad[2];
  bool flip, is_signed, is_u8;
} shape;

/* Zero points of the weights: 0 of i8 or 128 of u8; one other for all; one a channel, the outermost among
 * them. */
typedef enum zeros { PLAIN, ONE_ZERO, A_CHANNEL, ZEROS } zeros;

static void serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = tasks - 1; i >= 0; i--) fn(arg, i, 0);
}

static uint8_t *bytes_at_guard(ck *c, size_t n) {
  const size_t words = (n + 3) / 4;
  return (uint8_t *)(ck_alloc(c, words, 0) + words) - n;
}

static hn_dw8 describe(const shape *s, uint32_t threads, int64_t extra_out, zeros kind) {
  hn_dw8 d = {.parts = kind == PLAIN ? 0 : HN_DW8_PARTS,
              .batch = s->batch,
              .channels = s->channels,
              .flip = s->flip,
              .is_signed = s->is_signed};
  d.zero = s->is_signed ? -9 : 37, d.padding = s->flip ? 133 : 101;
  for (int i = 0; i < 2; i++) {
    d.in[i] = s->in[i], d.kernel[i] = s->kernel[i], d.stride[i] = s->stride[i],
    d.dilation[i] = s->dilation[i];
    d.pad[i] = s->pad[i];
    d.out[i] = (s->in[i] + 2 * s->pad[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
  }
  d.in_pitch = s->channels, d.out_pitch = s->channels + extra_out;
  hn_dw8_plan(&d, threads, 32768);
  return d;
}

static int64_t code_at(const hn_weight_codes *w, const void *p, int64_t i) {
  return w->is_u8 ? ((const uint8_t *)p)[i] : ((const int8_t *)p)[i];
}

static int64_t oracle(const shape *s, const hn_dw8 *d, const uint8_t *x, const hn_weight_codes *w, int64_t n,
                      int64_t y0, int64_t x0, int64_t c) {
  const int64_t zero = code_at(w, w->zero, w->zeros == 1 ? 0 : c);
  int64_t sum = 0;
  for (int64_t v = 0; v < d->kernel[0]; v++)
    for (int64_t u = 0; u < d->kernel[1]; u++) {
      const int64_t iy = y0 * d->stride[0] + v * d->dilation[0] - d->pad[0],
                    ix = x0 * d->stride[1] + u * d->dilation[1] - d->pad[1];
      int64_t code = d->padding;
      if (iy >= 0 && iy < d->in[0] && ix >= 0 && ix < d->in[1]) {
        const uint8_t byte = x[((n * d->in[0] + iy) * d->in[1] + ix) * d->in_pitch + c];
        code = s->flip ? (int8_t)byte + 128 : byte;
      }
      sum += code * (code_at(w, w->w, (c * d->kernel[0] + v) * d->kernel[1] + u) - zero);
    }
  return sum;
}

static void check_shape(ck *c, const hn_dw8_ops *o, const shape *s, uint32_t threads, bool extreme,
                        zeros kind) {
  const int64_t extra = threads == 1 ? 0 : 3;
  hn_dw8 d = describe(s, threads, extra, kind);
  ck_case(
      c,
      "batch=%d channels=%d in=%dx%d kernel=%dx%d stride=%d dilation=%d pad=%d flip=%d extreme=%d threads=%u "
      "zeros=%d",
      (int)s->batch, (int)s->channels, (int)s->in[0], (int)s->in[1], (int)s->kernel[0], (int)s->kernel[1],
      (int)s->stride[1], (int)s->dilation[1], (int)s->pad[1], s->flip, extreme, threads, kind);
  const int64_t taps = d.kernel[0] * d.kernel[1], pixels = d.batch * d.out[0] * d.out[1];
  const size_t n_x = (size_t)(d.batch * d.in[0] * d.in[1] * d.in_pitch), n_w = (size_t)(d.channels * taps),
               n_y = (size_t)(pixels * d.out_pitch - extra), values = hn_dw8_values(&d);
  uint8_t *x = bytes_at_guard(c, n_x), *w = bytes_at_guard(c, n_w), *y = bytes_at_guard(c, n_y),
          *line = bytes_at_guard(c, hn_dw8_line(&d));
  int32_t *bias = calloc(values, sizeof *bias);
  float *scale = calloc(values, sizeof *scale);
  for (size_t i = 0; i < n_x; i++)
    x[i] = extreme ? (uint8_t)(ck_random(c) % 4 ? 255 : 0) : (uint8_t)ck_random(c);
  for (size_t i = 0; i < n_w; i++)
    w[i] = extreme ? (uint8_t)(ck_random(c) % 4 ? 128 : 127) : (uint8_t)ck_random(c);
  memset(y, 0xa5, n_y);
  const int64_t n_zeros = kind == A_CHANNEL ? d.channels : 1;
  uint8_t *zero = bytes_at_guard(c, (size_t)n_zeros);
  for (int64_t i = 0; i < n_zeros; i++)
    zero[i] = kind == PLAIN ? (s->is_u8 ? 128 : 0)
              : i % 5 == 1  ? 255
              : i % 5 == 2  ? 0
                            : (uint8_t)ck_random(c);
  const hn_weight_codes codes = {.w = w, .zero = zero, .zeros = n_zeros, .is_u8 = s->is_u8};
  /* As many parts as needed, or all. */
  if (threads == 1) hn_dw8_split(&d, hn_dw8_parts(&d, &codes));
  int8_t *packed = (int8_t *)bytes_at_guard(c, hn_dw8_weights(&d));
  hn_dw8_pack(&d, &codes, packed, bias);
  hn_dw8_fill_line(&d, line);
  for (size_t i = 0; i < values; i++) {
    bias[i] = (int32_t)(ck_random(c) % 2000) - 1000 - (int32_t)d.padding * bias[i];
    scale[i] = (extreme ? 0.0005f : 0.004f) * (float)(1 + ck_random(c) % 9);
    for (size_t j = 0; j < i; j++) /* of folded pixels a channel has several */
      if (hn_dw8_value_channel(&d, (int64_t)i) == hn_dw8_value_channel(&d, (int64_t)j))
        bias[i] = bias[j], scale[i] = scale[j];
  }
  hn_dw8_args a = {.d = &d,
                   .ops = o,
                   .x = x,
                   .line = line,
                   .w = packed,
                   .bias = bias,
                   .scale = scale,
                   .y = y,
                   .scratch = bytes_at_guard(c, hn_dw8_scratch(&d))};
  hn_dw8_exec(&a, serial, NULL);
  hn_dw8 wide = d; /* the same as f32 */
  wide.wide = 1, wide.out_pitch = d.out_pitch * (int64_t)sizeof(float);
  float *z = ck_alloc(c, n_y, 0);
  for (size_t i = 0; i < n_y; i++) z[i] = 77;
  a.d = &wide, a.y = z;
  hn_dw8_exec(&a, serial, NULL);
  hn_dw8 whole = wide; /* and the sums themselves */
  whole.whole = 1;
  int32_t *sums = (int32_t *)(void *)ck_alloc(c, n_y, 0);
  for (size_t i = 0; i < n_y; i++) sums[i] = 77;
  a.d = &whole, a.scale = NULL, a.y = sums;
  hn_dw8_exec(&a, serial, NULL);
  for (size_t i = 0; i < values; i++) {
    const int64_t ch = hn_dw8_value_channel(&d, (int64_t)i);
    if (ch < 0) continue;
    for (int64_t p = 0; p < pixels; p++) {
      const int64_t sum = bias[i] + oracle(s, &d, x, &codes, p / d.out[1] / d.out[0], p / d.out[1] % d.out[0],
                                           p % d.out[1], ch);
      const float lo = s->is_signed ? -128 : 0, hi = s->is_signed ? 127 : 255,
                  v = rintf((float)sum * scale[i]) + (float)d.zero,
                  want = v < lo   ? lo
                         : v > hi ? hi
                                  : v;
      const uint8_t got = y[p * d.out_pitch + ch];
      ck_same(c, (size_t)ch, z[p * d.out_pitch + ch], (float)sum * scale[i]);
      ck_true(c, sums[p * d.out_pitch + ch] == (int32_t)(uint32_t)(uint64_t)sum, "a sum is another");
      ck_same(c, (size_t)(p * d.out_pitch + ch), s->is_signed ? (float)(int8_t)got : (float)got, want);
    }
  }
  for (int64_t p = 0; p + 1 < pixels; p++)
    for (int64_t j = 0; j < extra; j++)
      ck_true(c,
              y[p * d.out_pitch + d.channels + j] == 0xa5 && z[p * d.out_pitch + d.channels + j] == 77 &&
                  sums[p * d.out_pitch + d.channels + j] == 77,
              "bytes between pixels are written");
  free(bias);
  free(scale);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const shape shapes[] = {
      {1, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, false, false, false},
      {1, 32, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
      {2, 33, {6, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, true, true},
      {1, 61, {13, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true, false, false},
      {1, 96, {12, 12}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, false, false, false},
      {1, 40, {15, 13}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, false, true, false},
      {1, 7, {9, 10}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, true, true, true},
      {1, 64, {1, 30}, {1, 7}, {1, 3}, {1, 1}, {0, 3}, false, false, false},
      {2, 35, {9, 2}, {4, 3}, {1, 1}, {1, 1}, {2, 2}, false, false, false},
      {1, 130, {3, 3}, {9, 3}, {1, 1}, {1, 1}, {4, 0}, false, false, false},
      /* pixels beside each other share a block */
      {2, 8, {9, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
      {1, 16, {12, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true, true, false},
      {1, 8, {12, 18}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, false, true},
      {2, 8, {7, 16}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, true, false, false},
      {1, 16, {9, 13}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, false, false, false},
      {1, 16, {5, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, true, false},
      {1, 3, {4, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
      {1, 12, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, true, false, false},
      {1, 8, {1, 40}, {1, 7}, {1, 2}, {1, 1}, {0, 3}, false, false, false},
  };
  /* There is none of AVX-512 alone. */
  const struct hn_kernel *of_avx512 = hn_kernel_find(k->family, k->role, HN_ISA_AVX512);
  ck_true(c, of_avx512 && of_avx512->isa == HN_ISA_AVX2,
          "with AVX-512 a kernel of AVX-VNNI is found, or none");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (uint32_t threads = 1; threads <= 3; threads += 2)
      for (int extreme = 0; extreme < 2; extreme++)
        for (zeros kind = PLAIN; kind < ZEROS; kind++)
          check_shape(c, k->ops, &shapes[i], threads, extreme, kind);
}

static void run_args(void *arg) { hn_dw8_exec(arg, serial, NULL); }

/* Weights as sums of so many i8. */
static hn_dw8 split(const shape *s, int64_t parts) {
  hn_dw8 d = describe(s, 1, 0, PLAIN);
  hn_dw8_split(&d, parts);
  return d;
}

static double seconds(const hn_dw8_ops *o, const shape *s, int64_t parts) {
  const hn_dw8 d = split(s, parts);
  uint8_t *x = calloc((size_t)(d.in[0] * d.in[1] * d.in_pitch), 1), *line = calloc(hn_dw8_line(&d), 1),
          *y = calloc((size_t)(d.out[0] * d.out[1] * d.out_pitch), 1);
  int8_t *w = calloc(hn_dw8_weights(&d), 1);
  int32_t *bias = calloc(hn_dw8_values(&d), sizeof *bias);
  float *scale = calloc(hn_dw8_values(&d), sizeof *scale);
  uint8_t *scratch = calloc(hn_dw8_scratch(&d) + 1, 1);
  hn_dw8_args a = {.d = &d,
                   .ops = o,
                   .x = x,
                   .line = line,
                   .w = w,
                   .bias = bias,
                   .scale = scale,
                   .y = y,
                   .scratch = scratch};
  const double t = ck_time(run_args, &a);
  free(x), free(line), free(y), free(w), free(bias), free(scale), free(scratch);
  return t;
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const shape s[] = {{1, 144, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
                            {1, 96, {112, 112}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, false, false},
                            {1, 576, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
                            {1, 240, {28, 28}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, false, false, false},
                            {1, 8, {112, 112}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false, false},
                            {1, 16, {112, 112}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, false, false}};
  static const char *const names[] = {"3x3 144ch 56x56", "3x3 s2 96ch 112x112", "3x3 576ch 14x14",
                                      "5x5 240ch 28x28", "3x3 8ch 112x112",     "3x3 s2 16ch 112x112"};
  const struct hn_kernel *scalar = hn_kernel_find("depthwise_int8", "u8s8", HN_ISA_SCALAR);
  for (size_t at = 0; at < HN_DW8_PARTS * (sizeof s / sizeof *s); at++) {
    const size_t i = at / HN_DW8_PARTS;
    const int64_t parts = (int64_t)(at % HN_DW8_PARTS) + 1;
    const hn_dw8 d = split(&s[i], parts);
    const double t = seconds(k->ops, &s[i], parts), ts = k == scalar ? 0 : seconds(scalar->ops, &s[i], parts);
    const double outputs = (double)(d.out[0] * d.out[1] * d.channels);
    const ck_work work = {.unit = CK_INT8,
                          .flops = 2 * outputs * (double)(d.kernel[0] * d.kernel[1]),
                          .instructions = 4 * outputs,
                          .read = (double)(d.in[0] * d.in[1] * d.channels),
                          .written = outputs};
    char name[64];
    snprintf(name, sizeof name, "%s, parts %d", names[i], (int)parts);
    ck_bench_line(c, parts == 1 ? names[i] : name, t, &work, ts);
  }
}

const ck_family ck_family_depthwise_int8 = {"depthwise_int8", check, bench};
