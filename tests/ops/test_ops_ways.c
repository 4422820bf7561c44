/* References that go another way than their definitions: largest and smallest elements, different numbers,
 * columns, places of maxima, deformed windows, powers of integers; against the definitions. */
#include "ops/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t state = 1;
static uint32_t draw(uint32_t n) {
  state = state * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

/* ------------------------------------------------------------------ ReduceMax and ReduceMin */

/* axes: bit d for dimension d. */
static void check_best(const char *op, hone_dtype dtype, const char *dims, uint32_t axes, bool nan) {
  op_case c;
  op_begin(&c, op, 20);
  hone_tensor *x = op_in(&c, dtype, dims, NULL, draw(1000));
  const hone_tensor_desc d = x->desc;
  const int64_t n = hone_desc_count(&d);
  const bool largest = strcmp(op, "ReduceMax") == 0;
  if (nan) op_set(x, draw((uint32_t)n), NAN);
  double list[HONE_MAX_RANK], best[4096];
  char text[16];
  int32_t count = 0;
  for (int32_t k = 0; k < d.rank; k++)
    if (axes >> k & 1) list[count++] = k;
  snprintf(text, sizeof text, "%d", count);
  op_in(&c, HONE_DTYPE_I64, text, list, 0);
  op_attrs(&c, "keepdims=1");
  for (int i = 0; i < 4096; i++) best[i] = largest ? -INFINITY : INFINITY;
  for (int64_t i = 0; i < n; i++) {
    int64_t to = 0, left = i, at[HONE_MAX_RANK];
    for (int32_t k = d.rank - 1; k >= 0; k--) at[k] = left % d.dim[k], left /= d.dim[k];
    for (int32_t k = 0; k < d.rank; k++)
      if (!(axes >> k & 1)) to = to * d.dim[k] + at[k];
    assert_true(to < 4096);
    const double v = op_get(x, i);
    if (v != v || (largest ? v > best[to] : v < best[to])) best[to] = best[to] == best[to] ? v : best[to];
  }
  assert_int_equal(op_run(&c, 1), HONE_OK);
  for (int64_t i = 0; i < hone_desc_count(&c.out[0].desc); i++) {
    const double got = op_get(&c.out[0], i);
    if (!(got == best[i] || (got != got && best[i] != best[i])))
      fail_msg("%s %s of %s, axes %x: element %lld is %g, not %g", op, hone_dtype_name(dtype), dims, axes,
               (long long)i, got, best[i]);
  }
  op_end(&c);
}

static void largest_and_smallest(void **unused) {
  (void)unused;
  static const hone_dtype types[] = {HONE_DTYPE_I8,  HONE_DTYPE_U8,  HONE_DTYPE_BOOL, HONE_DTYPE_I32,
                                     HONE_DTYPE_U32, HONE_DTYPE_I64, HONE_DTYPE_U64,  HONE_DTYPE_F32,
                                     HONE_DTYPE_F64, HONE_DTYPE_F16};
  static const char *const dims[] = {"3x5x70", "2x9x3x1", "65x33", "4x1x31x2", "1x129"};
  static const int32_t ranks[] = {3, 4, 2, 4, 2};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
      for (uint32_t axes = 1; axes < 1u << ranks[i]; axes++)
        for (int nan = 0; nan <= hone_dtype_is_float(types[t]); nan++) {
          check_best("ReduceMax", types[t], dims[i], axes, nan);
          check_best("ReduceMin", types[t], dims[i], axes, nan);
        }
}

/* ------------------------------------------------------------------ Unique */

static void check_unique(hone_dtype dtype, int64_t n, int bits, bool sorted) {
  op_case c;
  char dims[16];
  snprintf(dims, sizeof dims, "%lld", (long long)n);
  op_begin(&c, "Unique", 11);
  hone_tensor *x = op_in(&c, dtype, dims, NULL, 0);
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = (int64_t)draw(1u << (bits > 20 ? 20 : bits)) << (bits > 20 ? bits - 20 : 0);
    if (dtype == HONE_DTYPE_I64)
      ((int64_t *)x->data)[i] = draw(50) ? v - (1ll << (bits - 1)) : draw(2) ? INT64_MIN : INT64_MAX;
    else
      op_set(x, i, (double)v - (double)(1ll << (bits - 1)));
  }
  op_attrs(&c, sorted ? "sorted=1" : "sorted=0");
  assert_int_equal(op_run(&c, 4), HONE_OK);
  const int64_t groups = c.out[0].desc.dim[0], *first = c.out[1].data, *inverse = c.out[2].data,
                *count = c.out[3].data;
  int64_t *seen = calloc((size_t)groups, sizeof *seen);
  const size_t size = hone_dtype_size(dtype);
  for (int64_t i = 0; i < n; i++) {
    assert_true(inverse[i] >= 0 && inverse[i] < groups);
    assert_memory_equal((char *)c.out[0].data + (size_t)inverse[i] * size, (char *)x->data + (size_t)i * size,
                        size);
    if (!seen[inverse[i]]++) assert_int_equal(first[inverse[i]], i);
  }
  for (int64_t g = 0; g < groups; g++) {
    assert_int_equal(seen[g], count[g]);
    if (g && !sorted) assert_true(first[g - 1] < first[g]);
    if (g && sorted && dtype == HONE_DTYPE_I64)
      assert_true(((int64_t *)c.out[0].data)[g - 1] < ((int64_t *)c.out[0].data)[g]);
    else if (g && sorted)
      assert_true(op_get(&c.out[0], g - 1) < op_get(&c.out[0], g));
  }
  free(seen);
  op_end(&c);
}

static void different_numbers(void **unused) {
  (void)unused;
  static const int64_t sizes[] = {1, 2, 47, 48, 49, 500, 1300, 3000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int sorted = 0; sorted < 2; sorted++) {
      check_unique(HONE_DTYPE_F32, sizes[i], 8, sorted);
      check_unique(HONE_DTYPE_F64, sizes[i], 30, sorted);
      check_unique(HONE_DTYPE_I8, sizes[i], 8, sorted);
      check_unique(HONE_DTYPE_I64, sizes[i], 10, sorted);
      check_unique(HONE_DTYPE_I64, sizes[i], 40, sorted);
    }
}

/* ------------------------------------------------------------------ places of maxima */

typedef struct pool_case {
  const char *dims, *attrs;
  int64_t kernel[2], stride[2], dilation[2], pad[2];
} pool_case;

static void check_places(const pool_case *p, hone_dtype dtype, bool nan) {
  op_case c;
  op_begin(&c, "MaxPool", 22);
  hone_tensor *x = op_in(&c, dtype, p->dims, NULL, draw(1000));
  for (int64_t i = 0; i < hone_desc_count(&x->desc); i++)
    op_set(x, i, draw(40) || !nan ? (double)draw(9) : NAN);
  op_attrs(&c, p->attrs);
  assert_int_equal(op_run(&c, 2), HONE_OK);
  const hone_tensor_desc *d = &x->desc, *y = &c.out[0].desc;
  for (int64_t i = 0; i < hone_desc_count(y); i++) {
    const int64_t ox = i % y->dim[3], oy = i / y->dim[3] % y->dim[2], plane = i / y->dim[3] / y->dim[2];
    int64_t place = -1;
    double best = 0;
    for (int64_t a = 0; a < p->kernel[0]; a++)
      for (int64_t b = 0; b < p->kernel[1]; b++) {
        const int64_t iy = oy * p->stride[0] + a * p->dilation[0] - p->pad[0],
                      ix = ox * p->stride[1] + b * p->dilation[1] - p->pad[1];
        if (iy < 0 || ix < 0 || iy >= d->dim[2] || ix >= d->dim[3]) continue;
        const int64_t at = (plane * d->dim[2] + iy) * d->dim[3] + ix;
        const double v = op_get(x, at);
        if (place < 0 || v > best || (v != v && best == best)) best = v, place = at;
      }
    const double got = op_get(&c.out[0], i);
    assert_true(got == best || (got != got && best != best));
    assert_int_equal(((const int64_t *)c.out[1].data)[i], place);
  }
  op_end(&c);
}

static void places_of_maxima(void **unused) {
  (void)unused;
  static const pool_case cases[] = {
      {"2x3x9x21", "kernel_shape=3,3 pads=1,1,1,1", {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"1x2x8x20", "kernel_shape=2,2 strides=2,2", {2, 2}, {2, 2}, {1, 1}, {0, 0}},
      {"1x2x9x13", "kernel_shape=2,5 strides=3,1 pads=0,2,1,3", {2, 5}, {3, 1}, {1, 1}, {0, 2}},
      {"1x1x11x17", "kernel_shape=3,2 dilations=2,3 pads=2,1,2,1", {3, 2}, {1, 1}, {2, 3}, {2, 1}},
  };
  static const hone_dtype types[] = {HONE_DTYPE_F32, HONE_DTYPE_F64, HONE_DTYPE_F16, HONE_DTYPE_U8};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t t = 0; t < 4; t++)
      for (int nan = 0; nan <= hone_dtype_is_float(types[t]); nan++) check_places(&cases[i], types[t], nan);
}

/* ------------------------------------------------------------------ columns to images */

typedef struct fold_case {
  const char *attrs;
  int64_t image[2], block[2], stride[2], dilation[2], pad[2]; /* pads as large behind as before */
} fold_case;

static void check_fold(const fold_case *f, hone_dtype dtype) {
  enum { BATCH = 2, CHANNELS = 2 };
  int64_t places[2];
  double sizes[2][2], want[BATCH * CHANNELS * 40 * 40] = {0};
  for (int d = 0; d < 2; d++) {
    places[d] = (f->image[d] + 2 * f->pad[d] - (f->block[d] - 1) * f->dilation[d] - 1) / f->stride[d] + 1;
    sizes[0][d] = (double)f->image[d], sizes[1][d] = (double)f->block[d];
  }
  const int64_t taps = f->block[0] * f->block[1], all = places[0] * places[1];
  char dims[48];
  op_case c;
  op_begin(&c, "Col2Im", 18);
  snprintf(dims, sizeof dims, "%dx%lldx%lld", BATCH, (long long)(CHANNELS * taps), (long long)all);
  const hone_tensor *x = op_in(&c, dtype, dims, NULL, 3);
  for (int i = 0; i < 2; i++) op_in(&c, HONE_DTYPE_I64, "2", sizes[i], 0);
  op_attrs(&c, f->attrs);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  for (int64_t i = 0; i < BATCH * CHANNELS * taps * all; i++) {
    const int64_t place = i % all, tap = i / all % taps, plane = i / all / taps,
                  y = place / places[1] * f->stride[0] + tap / f->block[1] * f->dilation[0] - f->pad[0],
                  z = place % places[1] * f->stride[1] + tap % f->block[1] * f->dilation[1] - f->pad[1];
    if (y >= 0 && z >= 0 && y < f->image[0] && z < f->image[1])
      want[(plane * f->image[0] + y) * f->image[1] + z] += op_get(x, i);
  }
  assert_int_equal(hone_desc_count(&c.out[0].desc), BATCH * CHANNELS * f->image[0] * f->image[1]);
  for (int64_t i = 0; i < BATCH * CHANNELS * f->image[0] * f->image[1]; i++)
    assert_true(fabs(op_get(&c.out[0], i) - want[i]) <=
                (dtype == HONE_DTYPE_F32 ? 1e-6 : 1e-14) * (1 + fabs(want[i])));
  op_end(&c);
}

static void columns_to_images(void **unused) {
  (void)unused;
  static const fold_case cases[] = {
      {"pads=1,1,1,1", {9, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"strides=2,2", {8, 40}, {2, 2}, {2, 2}, {1, 1}, {0, 0}},
      {"strides=1,3 dilations=2,1 pads=2,3,2,3", {11, 20}, {3, 4}, {1, 3}, {2, 1}, {2, 3}},
      {"pads=2,4,2,4", {3, 4}, {3, 5}, {1, 1}, {1, 1}, {2, 4}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_fold(&cases[i], HONE_DTYPE_F32);
    check_fold(&cases[i], HONE_DTYPE_F64);
  }
}

/* ------------------------------------------------------------------ DeformConv */

static double between(const hone_tensor *x, int64_t plane, int64_t h, int64_t w, double y, double z) {
  double sum = 0;
  const int64_t top = (int64_t)floor(y), left = (int64_t)floor(z);
  for (int64_t a = top; a < top + 2; a++)
    for (int64_t b = left; b < left + 2; b++)
      if (a >= 0 && b >= 0 && a < h && b < w)
        sum += (1 - fabs(y - (double)a)) * (1 - fabs(z - (double)b)) * op_get(x, (plane * h + a) * w + b);
  return sum;
}

/* Two images of 6 channels of 7 x 9, kernels of 3 x 2, two strides down; 10 filters in `group`. */
static void check_deform(hone_dtype dtype, int64_t group, int64_t parts, bool mask) {
  enum { N = 2, C = 6, H = 7, W = 9, F = 10, KH = 3, KW = 2, OH = 4, OW = 10, TAPS = KH * KW };
  char text[5][64];
  op_case c;
  op_begin(&c, "DeformConv", 19);
  snprintf(text[0], 64, "%dx%dx%dx%d", F, (int)(C / group), KH, KW);
  snprintf(text[1], 64, "%dx%dx%dx%d", N, (int)(parts * TAPS * 2), OH, OW);
  snprintf(text[2], 64, "%dx%dx%dx%d", N, (int)(parts * TAPS), OH, OW);
  snprintf(text[3], 64, "group=%d offset_group=%d pads=1,1,1,1 strides=2,1", (int)group, (int)parts);
  hone_tensor *x = op_in(&c, dtype, "2x6x7x9", NULL, 1), *w = op_in(&c, dtype, text[0], NULL, 2),
              *o = op_in(&c, dtype, text[1], NULL, 3), *b = op_in(&c, dtype, "10", NULL, 4),
              *m = mask ? op_in(&c, dtype, text[2], NULL, 5) : NULL;
  for (int64_t i = 0; i < hone_desc_count(&o->desc); i++)
    op_set(o, i, draw(9) ? 3 * op_get(o, i) : (double)draw(3) - 1);
  op_attrs(&c, text[3]);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  assert_int_equal(hone_desc_count(&c.out[0].desc), N * F * OH * OW);
  for (int64_t i = 0; i < N * F * OH * OW; i++) {
    const int64_t at = i % (OH * OW), f = i / (OH * OW) % F, n = i / (OH * OW) / F, own = C / group;
    double want = op_get(b, f), size = 1;
    for (int64_t k = 0; k < own; k++)
      for (int64_t t = 0; t < TAPS; t++) {
        const int64_t channel = f / (F / group) * own + k, part = channel / (C / parts),
                      tap = (n * parts + part) * TAPS + t;
        const double y = (double)(at / OW * 2 - 1 + t / KW) + op_get(o, tap * 2 * OH * OW + at),
                     z = (double)(at % OW - 1 + t % KW) + op_get(o, (tap * 2 + 1) * OH * OW + at),
                     v = op_get(w, (f * own + k) * TAPS + t) * between(x, n * C + channel, H, W, y, z) *
                         (m ? op_get(m, tap * OH * OW + at) : 1);
        want += v, size += fabs(v);
      }
    assert_true(fabs(op_get(&c.out[0], i) - want) <= (dtype == HONE_DTYPE_F32 ? 1e-6 : 1e-13) * size);
  }
  op_end(&c);
}

static void deformed_windows(void **unused) {
  (void)unused;
  check_deform(HONE_DTYPE_F32, 1, 1, false);
  check_deform(HONE_DTYPE_F32, 2, 3, true);
  check_deform(HONE_DTYPE_F64, 1, 2, true);
  check_deform(HONE_DTYPE_F64, 2, 1, false);
}

/* ------------------------------------------------------------------ powers */

static void check_powers(hone_dtype base, hone_dtype exponent, bool one) {
  op_case c;
  op_begin(&c, "Pow", 15);
  hone_tensor *x = op_in(&c, base, "300", NULL, 0), *y = op_in(&c, exponent, one ? "1" : "300", NULL, 0);
  for (int64_t i = 0; i < 300; i++) op_set(x, i, (double)draw(2001) - 1000);
  for (int64_t i = 0; i < (one ? 1 : 300); i++) op_set(y, i, one ? 2 + draw(2) : (double)draw(20) / 2 - 2);
  if (one && draw(2)) op_set(x, 299, base == HONE_DTYPE_I32 ? 2e9 : 9e18);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  hone_tensor want = {hone_desc(base, 1, (const int64_t[]){1}), &(int64_t){0}};
  for (int64_t i = 0; i < 300; i++) {
    op_set(&want, 0, pow(op_get(x, i), op_get(y, one ? 0 : i)));
    if (op_get(&c.out[0], i) != op_get(&want, 0))
      fail_msg("%g to the %g is %.17g, not %.17g", op_get(x, i), op_get(y, one ? 0 : i), op_get(&c.out[0], i),
               op_get(&want, 0));
  }
  op_end(&c);
}

static void powers_of_integers(void **unused) {
  (void)unused;
  for (int i = 0; i < 8; i++)
    for (int one = 0; one < 2; one++) {
      check_powers(HONE_DTYPE_I32, HONE_DTYPE_F32, one);
      check_powers(HONE_DTYPE_I64, HONE_DTYPE_F64, one);
      check_powers(HONE_DTYPE_I32, HONE_DTYPE_F64, one);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(largest_and_smallest), cmocka_unit_test(different_numbers),
      cmocka_unit_test(places_of_maxima),     cmocka_unit_test(columns_to_images),
      cmocka_unit_test(deformed_windows),     cmocka_unit_test(powers_of_integers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
