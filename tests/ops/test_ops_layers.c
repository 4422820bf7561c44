/* Own cases for the layers of networks: convolutions, poolings, normalisations, quantisation, resampling and
 * recurrences, at borders and in dtypes that the public suites leave out. */
#include "ops/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define V(...) ((const double[]){__VA_ARGS__})
#define F32 HONE_DTYPE_F32

/* ------------------------------------------------------------------ convolution against its definition */

typedef struct conv_case {
  const char *x, *w, *attrs;
  int64_t stride[2], dilation[2], pad[2], group;
} conv_case;

/* One output element, by the formula, indices in the open. */
static double conv_at(const op_case *c, const conv_case *k, int64_t n, int64_t m, int64_t oy, int64_t ox) {
  const hone_tensor_desc *x = &c->in[0].desc, *w = &c->in[1].desc;
  int64_t group = m / (w->dim[0] / k->group);
  double sum = op_get(&c->in[2], m);
  for (int64_t ch = 0; ch < w->dim[1]; ch++)
    for (int64_t i = 0; i < w->dim[2]; i++)
      for (int64_t j = 0; j < w->dim[3]; j++) {
        int64_t y = oy * k->stride[0] + i * k->dilation[0] - k->pad[0];
        int64_t z = ox * k->stride[1] + j * k->dilation[1] - k->pad[1];
        if (y < 0 || z < 0 || y >= x->dim[2] || z >= x->dim[3]) continue;
        int64_t at = ((n * x->dim[1] + group * w->dim[1] + ch) * x->dim[2] + y) * x->dim[3] + z;
        sum +=
            op_get(&c->in[0], at) * op_get(&c->in[1], ((m * w->dim[1] + ch) * w->dim[2] + i) * w->dim[3] + j);
      }
  return sum;
}

static void check_conv(hone_dtype dtype, double tolerance) {
  static const conv_case cases[] = {
      {"2x4x7x9", "6x4x3x3", "pads=1,1,1,1", {1, 1}, {1, 1}, {1, 1}, 1},
      {"1x4x7x9", "6x2x3x2", "group=2 pads=2,0,1,1 strides=2,3", {2, 3}, {1, 1}, {2, 0}, 2},
      {"1x6x8x8", "6x1x3x3", "group=6 dilations=2,1 pads=2,1,2,1", {1, 1}, {2, 1}, {2, 1}, 6},
      {"1x3x1x600", "5x3x1x1", "", {1, 1}, {1, 1}, {0, 0}, 1}, /* joined rows longer than one chunk */
      {"1x3x5x5", "2x3x1x1", "strides=2,2", {2, 2}, {1, 1}, {0, 0}, 1},
      {"1x1x3x3", "1x1x3x3", "pads=2,2,2,2 dilations=2,2", {1, 1}, {2, 2}, {2, 2}, 1},
      {"1x2x5x5", "2x2x1x1", "pads=0,3,0,0", {1, 1}, {1, 1}, {0, 3}, 1}, /* outputs that see only padding */
      {"0x2x5x5", "2x2x3x3", "", {1, 1}, {1, 1}, {0, 0}, 1},
  };
  for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
    op_case c;
    op_begin(&c, "Conv", 22);
    op_in(&c, dtype, cases[t].x, NULL, 1);
    hone_tensor *w = op_in(&c, dtype, cases[t].w, NULL, 2);
    char bias[16];
    snprintf(bias, sizeof bias, "%lld", (long long)w->desc.dim[0]);
    op_in(&c, dtype, bias, NULL, 3);
    op_attrs(&c, cases[t].attrs);
    assert_int_equal(op_run(&c, 1), HONE_OK);
    const hone_tensor_desc *y = &c.out[0].desc;
    assert_int_equal(y->dtype, dtype);
    int64_t at = 0;
    for (int64_t n = 0; n < y->dim[0]; n++)
      for (int64_t m = 0; m < y->dim[1]; m++)
        for (int64_t i = 0; i < y->dim[2]; i++)
          for (int64_t j = 0; j < y->dim[3]; j++, at++) {
            double want = conv_at(&c, &cases[t], n, m, i, j);
            assert_true(fabs(op_get(&c.out[0], at) - want) <= tolerance * (1 + fabs(want)));
          }
    op_end(&c);
  }
}

static void conv_matches_definition(void **state) {
  (void)state;
  check_conv(HONE_DTYPE_F32, 1e-7); /* half a unit in the last place: sums are double */
  check_conv(HONE_DTYPE_F64, 1e-14);
  check_conv(HONE_DTYPE_F16, 1.0 / 2048);
  check_conv(HONE_DTYPE_BF16, 1.0 / 256);
}

static void conv_same_padding(void **state) {
  (void)state;
  op_case c; /* 5 wide, kernel 2, stride 1: one element of padding, at the end or at the beginning */
  op_begin(&c, "Conv", 11);
  op_in(&c, F32, "1x1x5", V(1, 2, 3, 4, 5), 0);
  op_in(&c, F32, "1x1x2", V(1, 10), 0);
  op_attrs(&c, "auto_pad=s:SAME_UPPER");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x5", V(21, 32, 43, 54, 5), 0);
  op_end(&c);
  op_begin(&c, "Conv", 11);
  op_in(&c, F32, "1x1x5", V(1, 2, 3, 4, 5), 0);
  op_in(&c, F32, "1x1x2", V(1, 10), 0);
  op_attrs(&c, "auto_pad=s:SAME_LOWER");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x5", V(10, 21, 32, 43, 54), 0);
  op_end(&c);
}

static void conv_transpose_small(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "ConvTranspose", 11);
  op_in(&c, F32, "1x2x2", V(1, 2, 3, 4), 0);
  op_in(&c, F32, "2x1x3", V(1, 10, 100, 1, 10, 100), 0);
  op_attrs(&c, "group=2 strides=2, dilations=1, output_padding=1,");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x2x6", V(1, 10, 102, 20, 200, 0, 3, 30, 304, 40, 400, 0), 0);
  op_end(&c);
  op_begin(&c, "ConvTranspose", 11); /* the output is cut where pads say */
  op_in(&c, F32, "1x1x2", V(1, 2), 0);
  op_in(&c, F32, "1x1x3", V(1, 10, 100), 0);
  op_attrs(&c, "strides=2, pads=1,0");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x4", V(10, 102, 20, 200), 0);
  op_end(&c);
  static const char *const same[] = {"strides=3, auto_pad=s:SAME_UPPER", "strides=3, auto_pad=s:SAME_LOWER"};
  /* Three times the length, as the standard says, though no kernel reaches the end. */
  for (int i = 0; i < 2; i++) {
    op_begin(&c, "ConvTranspose", 11);
    op_in(&c, F32, "1x1x2", V(1, 2), 0);
    op_in(&c, F32, "1x1x2", V(1, 10), 0);
    op_in(&c, F32, "1", V(7), 0);
    op_attrs(&c, same[i]);
    assert_int_equal(op_run(&c, 1), HONE_OK);
    op_expect(&c, 0, F32, "1x1x6", V(8, 17, 7, 9, 27, 7), 0);
    op_end(&c);
  }
}

/* ------------------------------------------------------------------ pooling */

static void pool_borders(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "MaxPool", 12); /* the third window starts in the input and runs over its end */
  op_in(&c, F32, "1x1x5", V(1, -2, 3, -4, -5), 0);
  op_attrs(&c, "kernel_shape=2, strides=2, ceil_mode=1");
  assert_int_equal(op_run(&c, 2), HONE_OK);
  op_expect(&c, 0, F32, "1x1x3", V(1, 3, -5), 0);
  op_expect(&c, 1, HONE_DTYPE_I64, "1x1x3", V(0, 2, 4), 0);
  op_end(&c);
  op_begin(&c, "MaxPool", 12); /* a window that would start in the padding behind the input is left out */
  op_in(&c, F32, "1x1x3", V(1, 2, 3), 0);
  op_attrs(&c, "kernel_shape=2, strides=3, pads=0,1 ceil_mode=1");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x1", V(2), 0);
  op_end(&c);
  op_begin(&c, "AveragePool", 19); /* the padding counts, what ceil_mode adds behind it does not */
  op_in(&c, F32, "1x1x4", V(1, 2, 3, 4), 0);
  op_attrs(&c, "kernel_shape=3, strides=2, pads=1,1 ceil_mode=1 count_include_pad=1");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x3", V(1, 3, 2), 1e-7); /* (0 1 2)/3, (2 3 4)/3, (4 0)/2 */
  op_end(&c);
  op_begin(&c, "AveragePool", 19);
  op_in(&c, F32, "1x1x5", V(1, 2, 3, 4, 5), 0);
  op_attrs(&c, "kernel_shape=2, dilations=3, pads=1,1");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x4", V(3, 2.5, 3.5, 3), 1e-7);
  op_end(&c);
  op_begin(&c, "MaxPool", 12); /* column-major positions within the plane, planes one after the other */
  op_in(&c, HONE_DTYPE_I8, "1x2x2x2", V(-1, -2, -3, 4, 5, -6, -7, -8), 0);
  op_attrs(&c, "kernel_shape=2,2 storage_order=1");
  assert_int_equal(op_run(&c, 2), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_I8, "1x2x1x1", V(4, 5), 0);
  op_expect(&c, 1, HONE_DTYPE_I64, "1x2x1x1", V(3, 4), 0);
  op_end(&c);
  op_begin(&c, "MaxPool", 12); /* NaN is the largest of all */
  op_in(&c, F32, "1x1x4", V(1, NAN, INFINITY, 4), 0);
  op_attrs(&c, "kernel_shape=2, strides=2,");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x2", V(NAN, INFINITY), 0);
  op_end(&c);
}

/* One row of five through a pooling: what ONNX's reference implementation says of the same node, and where
 * ONNX Runtime says something else (docs/reference/onnx.md). */
static void pool_row(const char *op, int opset, const char *attrs, const char *shape,
                     const double *expected) {
  op_case c;
  op_begin(&c, op, opset);
  op_in(&c, F32, "1x1x5", V(-2, -1, 0, 1, 2), 0);
  op_attrs(&c, attrs);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, shape, expected, 1e-6);
  op_end(&c);
}

static void pool_windows_without_room(void **state) {
  (void)state;
  /* auto_pad counts what the dilated kernel spans; ONNX Runtime what the kernel has. */
  pool_row("MaxPool", 18, "kernel_shape=3, dilations=2, auto_pad=s:SAME_LOWER", "1x1x5", V(0, 1, 2, 1, 2));
  pool_row("MaxPool", 18, "kernel_shape=2, dilations=2, auto_pad=s:SAME_LOWER", "1x1x5", V(-1, 0, 1, 2, 1));
  pool_row("MaxPool", 18, "kernel_shape=2, dilations=3, auto_pad=s:SAME_UPPER", "1x1x5", V(0, 1, 2, 0, 1));
  /* The padding makes room, or ceil_mode does. */
  pool_row("LpPool", 18, "kernel_shape=7, pads=1,1", "1x1x1", V(3.16227766));
  pool_row("MaxPool", 18, "kernel_shape=7, pads=1,1", "1x1x1", V(2));
  pool_row("MaxPool", 18, "kernel_shape=7, strides=3, ceil_mode=1", "1x1x1", V(2));
  /* Less than a stride is missing: one window with what there is, as of ONNX's shape inference and ONNX
   * Runtime (the reference implementation has none). */
  pool_row("MaxPool", 18, "kernel_shape=7, strides=3,", "1x1x1", V(2));
  pool_row("AveragePool", 18, "kernel_shape=7, strides=3,", "1x1x1", V(0));
  pool_row("AveragePool", 19, "kernel_shape=8, strides=3, pads=1,0 count_include_pad=1", "1x1x1", V(0));
  pool_row("LpPool", 18, "kernel_shape=7, strides=3,", "1x1x1", V(3.16227766));
  pool_row("MaxPool", 18, "kernel_shape=3, dilations=3, strides=3,", "1x1x1", V(1));
  /* Nothing does: no elements. */
  pool_row("MaxPool", 18, "kernel_shape=6,", "1x1x0", V(0));
  pool_row("MaxPool", 18, "kernel_shape=8, strides=3,", "1x1x0", V(0));
  pool_row("LpPool", 18, "kernel_shape=7, pads=0,1", "1x1x0", V(0));
  pool_row("AveragePool", 18, "kernel_shape=7, pads=0,1", "1x1x0", V(0));
}

static void unpool_bounds(void **state) {
  (void)state;
  op_case c;
  for (int bad = 0; bad < 3; bad++) {
    op_begin(&c, "MaxUnpool", 11);
    op_in(&c, F32, "1x1x2", V(5, 6), 0);
    op_in(&c, HONE_DTYPE_I64, "1x1x2", bad == 1 ? V(0, 4) : bad == 2 ? V(-1, 3) : V(1, 3), 0);
    op_attrs(&c, "kernel_shape=2, strides=2,");
    assert_int_equal(op_run(&c, 1), bad ? HONE_ERROR_INPUT : HONE_OK);
    if (!bad) op_expect(&c, 0, F32, "1x1x4", V(0, 5, 0, 6), 0);
    op_end(&c);
  }
}

/* ------------------------------------------------------------------ normalisation */

static void batch_norm_versions(void **state) {
  (void)state;
  op_case c;
  const double one[] = {1, 1}, zero[] = {0, 0};
  op_begin(&c, "BatchNormalization", 15); /* training: statistics of the batch, and running ones */
  op_in(&c, F32, "2x2x1", V(1, 10, 3, 30), 0);
  op_in(&c, F32, "2", one, 0);
  op_in(&c, F32, "2", zero, 0);
  op_in(&c, F32, "2", V(4, 4), 0);
  op_in(&c, F32, "2", V(8, 8), 0);
  op_attrs(&c, "training_mode=1 momentum=f:0.5 epsilon=f:0");
  assert_int_equal(op_run(&c, 3), HONE_OK);
  op_expect(&c, 0, F32, "2x2x1", V(-1, -1, 1, 1), 1e-6);
  op_expect(&c, 1, F32, "2", V(3, 12), 1e-6);
  op_expect(&c, 2, F32, "2", V(4.5, 54), 1e-5);
  op_end(&c);
  op_begin(&c, "BatchNormalization", 11); /* as exporters wrote it: by its outputs */
  op_in(&c, F32, "2x2x1", V(1, 10, 3, 30), 0);
  op_in(&c, F32, "2", one, 0);
  op_in(&c, F32, "2", zero, 0);
  op_in(&c, F32, "2", V(4, 4), 0);
  op_in(&c, F32, "2", V(8, 8), 0);
  op_attrs(&c, "momentum=f:0.5 epsilon=f:0");
  assert_int_equal(op_run(&c, 5), HONE_OK);
  op_expect(&c, 0, F32, "2x2x1", V(-1, -1, 1, 1), 1e-6);
  op_expect(&c, 1, F32, "2", V(3, 12), 1e-6);
  op_expect(&c, 2, F32, "2", V(4.5, 54), 1e-5);
  op_expect(&c, 3, F32, "2", V(2, 20), 1e-6);
  op_expect(&c, 4, F32, "2", V(1, 0.1), 1e-6);
  op_end(&c);
  static const struct {
    int64_t opset;
    const char *attrs;
    uint32_t outputs;
    hone_status want;
  } cases[] = {
      {7, "", 1, HONE_OK},           {7, "spatial=0", 5, HONE_ERROR_UNSUPPORTED},
      {6, "is_test=1", 1, HONE_OK},  {6, "is_test=0", 1, HONE_ERROR_UNSUPPORTED},
      {6, "", 1, HONE_OK},           {6, "", 5, HONE_ERROR_UNSUPPORTED},
      {14, "", 3, HONE_ERROR_INPUT}, {15, "training_mode=0", 1, HONE_OK},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_begin(&c, "BatchNormalization", cases[i].opset);
    op_in(&c, F32, "1x2x2", V(1, 2, 3, 4), 0);
    op_in(&c, F32, "2", V(2, 1), 0);
    op_in(&c, F32, "2", V(0, 1), 0);
    op_in(&c, F32, "2", V(1, 3), 0);
    op_in(&c, F32, "2", V(4, 1), 0);
    op_attrs(&c, cases[i].attrs);
    hone_status s = op_run(&c, cases[i].outputs);
    assert_int_equal(s, cases[i].want);
    if (!s) op_expect(&c, 0, F32, "1x2x2", V(0, 1, 1, 2), 1e-4);
    op_end(&c);
  }
  op_begin(&c, "BatchNormalization", 7); /* spatial 0: parameters of every activation */
  op_in(&c, F32, "1x1x2", V(1, 2), 0);
  for (int i = 0; i < 4; i++) op_in(&c, F32, "1x2", i == 0 ? V(1, 10) : i == 3 ? V(1, 1) : V(0, 0), 0);
  op_attrs(&c, "spatial=0 epsilon=f:0");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x1x2", V(1, 20), 1e-6);
  op_end(&c);
}

static void layer_norm_outputs(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "LayerNormalization", 17);
  op_in(&c, HONE_DTYPE_F16, "2x2", V(1, 3, -2, 2), 0);
  op_in(&c, HONE_DTYPE_F16, "2", V(1, 2), 0);
  op_in(&c, HONE_DTYPE_F16, "1", V(5), 0); /* broadcasts */
  op_attrs(&c, "epsilon=f:0");
  assert_int_equal(op_run(&c, 3), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_F16, "2x2", V(4, 7, 4, 7), 1e-3);
  op_expect(&c, 1, F32, "2x1", V(2, 0), 0);
  op_expect(&c, 2, F32, "2x1", V(1, 0.5), 1e-6);
  op_end(&c);
}

/* The first stage has the range of f32 (stash_type): a variance beyond it is infinite, one below it is zero.
 */
static void norms_have_the_range_of_their_stash(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "LayerNormalization", 17);
  op_in(&c, F32, "2x4", V(4e30, -4e30, 3e30, 1, 1, 1, 3, 3), 0);
  op_in(&c, F32, "4", V(1, 1, 1, 1), 0);
  op_attrs(&c, "epsilon=f:0");
  assert_int_equal(op_run(&c, 3), HONE_OK);
  op_expect(&c, 0, F32, "2x4", V(0, 0, 0, 0, -1, -1, 1, 1), 1e-6);
  op_expect(&c, 2, F32, "2x1", V(0, 1), 1e-6);
  op_end(&c);
  op_begin(&c, "LayerNormalization", 17); /* f64 keeps its own range */
  op_in(&c, HONE_DTYPE_F64, "1x2", V(4e30, -4e30), 0);
  op_in(&c, HONE_DTYPE_F64, "2", V(1, 1), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_F64, "1x2", V(1, -1), 1e-6);
  op_end(&c);
  op_begin(&c, "LayerNormalization", 17); /* 300 * 300 is beyond f16, and within f32 */
  op_in(&c, HONE_DTYPE_F16, "1x2", V(300, -300), 0);
  op_in(&c, HONE_DTYPE_F16, "2", V(1, 1), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_F16, "1x2", V(1, -1), 1e-3);
  op_end(&c);
  for (int stash = 1; stash <= 10; stash += 9) {
    op_begin(&c, "GroupNormalization", 21);
    op_in(&c, HONE_DTYPE_F16, "1x2x1", V(300, -300), 0);
    op_in(&c, HONE_DTYPE_F16, "2", V(1, 1), 0);
    op_in(&c, HONE_DTYPE_F16, "2", V(0, 0), 0);
    op_attrs(&c, stash == 1 ? "num_groups=1 stash_type=1" : "num_groups=1 stash_type=10");
    assert_int_equal(op_run(&c, 1), HONE_OK);
    op_expect(&c, 0, HONE_DTYPE_F16, "1x2x1", stash == 1 ? V(1, -1) : V(0, 0), 1e-3);
    op_end(&c);
  }
  op_begin(&c, "RMSNormalization", 23);
  op_in(&c, F32, "1x2", V(4e30, -4e30), 0);
  op_in(&c, F32, "2", V(1, 1), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x2", V(0, 0), 0);
  op_end(&c);
}

static void group_norm_versions(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "GroupNormalization", 18); /* scale by group */
  op_in(&c, F32, "1x4x1", V(1, 3, 10, 30), 0);
  op_in(&c, F32, "2", V(1, 2), 0);
  op_in(&c, F32, "2", V(0, 1), 0);
  op_attrs(&c, "num_groups=2 epsilon=f:0");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x4x1", V(-1, 1, -1, 3), 1e-6);
  op_end(&c);
  op_begin(&c, "GroupNormalization", 21); /* by channel */
  op_in(&c, F32, "1x4x1", V(1, 3, 10, 30), 0);
  op_in(&c, F32, "4", V(1, 2, 3, 4), 0);
  op_in(&c, F32, "4", V(0, 0, 0, 1), 0);
  op_attrs(&c, "num_groups=2 epsilon=f:0");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x4x1", V(-1, 2, -3, 5), 1e-6);
  op_end(&c);
}

/* ------------------------------------------------------------------ quantisation */

static void quantise_saturates_and_ties(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "QuantizeLinear", 13); /* ties go to even, before the zero point is added */
  op_in(&c, F32, "8", V(0.5, 1.5, -0.5, -1.5, 1e30, -1e30, INFINITY, 2.5), 0);
  op_in(&c, F32, "", V(1), 0);
  op_in(&c, HONE_DTYPE_I8, "", V(1), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_I8, "8", V(1, 3, 1, -1, 127, -128, 127, 3), 0);
  op_end(&c);
  op_begin(&c, "QuantizeLinear", 21); /* blocks of two along the axis, the last one short */
  op_in(&c, F32, "1x3", V(10, 20, 30), 0);
  op_in(&c, F32, "1x2", V(10, 3), 0);
  op_attrs(&c, "axis=1 block_size=2 output_dtype=4");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_U16, "1x3", V(1, 2, 10), 0);
  op_end(&c);
  op_begin(&c, "DequantizeLinear", 19); /* the result has scale's dtype */
  op_in(&c, HONE_DTYPE_I8, "2x2", V(-128, 0, 127, 1), 0);
  op_in(&c, HONE_DTYPE_F16, "2", V(0.5, 2), 0);
  op_in(&c, HONE_DTYPE_I8, "2", V(0, 1), 0);
  op_attrs(&c, "axis=-1");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_F16, "2x2", V(-64, -2, 63.5, 0), 0);
  op_end(&c);
  op_begin(&c, "DynamicQuantizeLinear", 11); /* all zero: no division by zero */
  op_in(&c, F32, "3", V(0, 0, 0), 0);
  assert_int_equal(op_run(&c, 3), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_U8, "3", V(0, 0, 0), 0);
  op_end(&c);
}

static void qlinear_conv_by_channel(void **state) {
  (void)state;
  op_case c; /* padding stands for the zero point: it adds nothing */
  op_begin(&c, "QLinearConv", 10);
  op_in(&c, HONE_DTYPE_U8, "1x1x2", V(130, 120), 0);
  op_in(&c, F32, "", V(0.5), 0);
  op_in(&c, HONE_DTYPE_U8, "", V(128), 0);
  op_in(&c, HONE_DTYPE_I8, "2x1x2", V(3, 1, -2, 2), 0);
  op_in(&c, F32, "2", V(1, 2), 0);
  op_in(&c, HONE_DTYPE_I8, "2", V(0, 0), 0);
  op_in(&c, F32, "", V(0.5), 0);
  op_in(&c, HONE_DTYPE_U8, "", V(10), 0);
  op_in(&c, HONE_DTYPE_I32, "2", V(1, -1), 0);
  op_attrs(&c, "pads=1,0");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  /* x = [0 2 -8]; filter 0: 2+1, 6-8+1; filter 1: (4-1)*2, (-4-16-1)*2; all + 10 */
  op_expect(&c, 0, HONE_DTYPE_U8, "1x2x2", V(13, 9, 16, 0), 0);
  op_end(&c);
}

/* ------------------------------------------------------------------ resampling */

static void resize_edges(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "Resize", 19); /* u8, linear: truncated, but exact values stay */
  op_in(&c, HONE_DTYPE_U8, "3", V(0, 30, 255), 0);
  op_skip(&c);
  op_skip(&c);
  op_in(&c, HONE_DTYPE_I64, "1", V(5), 0);
  op_attrs(&c, "mode=s:linear coordinate_transformation_mode=s:align_corners");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_U8, "5", V(0, 15, 30, 142, 255), 0);
  op_end(&c);
  op_begin(&c, "Resize", 18); /* the same with antialiasing: rounded */
  op_in(&c, HONE_DTYPE_U8, "6", V(0, 10, 20, 33, 255, 7), 0);
  op_skip(&c);
  op_in(&c, F32, "1", V(0.5), 0);
  op_attrs(&c, "mode=s:linear antialias=1");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_U8, "3", V(6, 53, 103), 0);
  op_end(&c);
  op_begin(&c, "Resize", 18); /* strings can be repeated, axes count from the end, and the rest stays */
  op_in(&c, HONE_DTYPE_BOOL, "2x1x2", V(1, 0, 0, 1), 0);
  op_skip(&c);
  op_in(&c, F32, "1", V(2), 0);
  op_attrs(&c, "axes=-1, coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor");
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_BOOL, "2x1x4", V(1, 1, 0, 0, 0, 0, 1, 1), 0);
  op_end(&c);
  op_begin(&c, "Resize", 13); /* to nothing */
  op_in(&c, F32, "1x3", NULL, 1);
  op_skip(&c);
  op_in(&c, F32, "2", V(1, 0.3), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, F32, "1x0", NULL, 0);
  op_end(&c);
  static const struct {
    const char *x, *attrs;
    double scale;
  } bad[] = {{"1x3", "", 0},
             {"1x3", "", -1},
             {"1x3", "", INFINITY},
             {"1x3", "", 1e30},
             {"1x3", "mode=s:quadratic", 1},
             {"1x3", "nearest_mode=s:x", 1},
             {"1x3", "coordinate_transformation_mode=s:x", 1},
             {"1x3", "coordinate_transformation_mode=s:tf_crop_and_resize", 1},
             {"1x3", "axes=1,1", 1},
             {"1x3", "axes=2,0", 1}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    op_begin(&c, "Resize", 19);
    op_in(&c, F32, bad[i].x, NULL, 1);
    op_skip(&c);
    op_in(&c, F32, "2", V(1, bad[i].scale), 0);
    op_attrs(&c, bad[i].attrs);
    assert_int_equal(op_run(&c, 1), HONE_ERROR_INPUT);
    op_end(&c);
  }
}

static void grid_sample_wild_coordinates(void **state) {
  (void)state;
  static const char *const modes[] = {"nearest", "linear", "cubic"}, *const pads[] = {"zeros", "border",
                                                                                      "reflection"};
  for (int m = 0; m < 3; m++)
    for (int p = 0; p < 3; p++)
      for (int align = 0; align < 2; align++) {
        op_case c;
        char attrs[96];
        snprintf(attrs, sizeof attrs, "mode=s:%s padding_mode=s:%s align_corners=%d", modes[m], pads[p],
                 align);
        op_begin(&c, "GridSample", 20);
        op_in(&c, F32, "1x1x2x1", V(1, 2), 0);
        op_in(&c, F32, "1x1x6x2", V(NAN, 0, 0, INFINITY, -INFINITY, 0, 1e30, 1e30, -1e30, 3, 0, 0), 0);
        op_attrs(&c, attrs);
        assert_int_equal(op_run(&c, 1), HONE_OK);
        for (int i = 0; i < 6; i++) assert_true(isfinite(op_get(&c.out[0], i)));
        op_end(&c);
      }
}

static void regions(void **state) {
  (void)state;
  op_case c;
  static const double boxes[][4] = {{0, 0, 1e30, 1}, {NAN, 0, 1, 1}, {0, 0, 1e7, 1e7}, {-INFINITY, 0, 1, 1}};
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) { /* would sample for ever */
    op_begin(&c, "RoiAlign", 16);
    op_in(&c, F32, "1x1x2x2", NULL, 1);
    op_in(&c, F32, "1x4", boxes[i], 0);
    op_in(&c, HONE_DTYPE_I64, "1", V(0), 0);
    assert_int_equal(op_run(&c, 1), HONE_ERROR_INPUT);
    op_end(&c);
  }
  for (int k = -1; k < 2; k++) {
    op_begin(&c, "RoiAlign", 16);
    op_in(&c, F32, "1x1x2x2", V(1, 2, 3, 4), 0);
    op_in(&c, F32, "1x4", V(0, 0, 2, 2), 0);
    op_in(&c, HONE_DTYPE_I64, "1", V(k), 0);
    assert_int_equal(op_run(&c, 1), k == 0 ? HONE_OK : HONE_ERROR_INPUT);
    if (k == 0) op_expect(&c, 0, F32, "1x1x1x1", V(2.5), 1e-6);
    op_end(&c);
  }
}

static void suppression(void **state) {
  (void)state;
  const double boxes[] = {0, 0, 2, 2, 2, 2, 0, 0,
                          0, 1, 2, 3, 5, 5, 6, 6}; /* 1 is 0 with its corners exchanged */
  op_case c;
  op_begin(&c, "NonMaxSuppression", 11);
  op_in(&c, F32, "1x4x4", boxes, 0);
  op_in(&c, F32, "1x1x4", V(0.5, 0.5, 0.9, 0.1), 0);
  op_in(&c, HONE_DTYPE_I64, "1", V(10), 0);
  op_in(&c, F32, "1", V(1.0 / 3), 0); /* boxes 0 and 2 overlap by a third: not more, so both stay */
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_I64, "3x3", V(0, 0, 2, 0, 0, 0, 0, 0, 3), 0);
  op_end(&c);
  op_begin(&c, "NonMaxSuppression", 11); /* no limit given: nothing is chosen */
  op_in(&c, F32, "1x4x4", boxes, 0);
  op_in(&c, F32, "1x1x4", V(1, 1, 1, 1), 0);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  op_expect(&c, 0, HONE_DTYPE_I64, "0x3", NULL, 0);
  op_end(&c);
}

/* Whether two boxes overlap by more than `iou`, by the definition. */
static bool boxes_overlap(const hone_tensor *t, int64_t i, int64_t j, float iou) {
  const float *a = (const float *)t->data + 4 * i, *b = (const float *)t->data + 4 * j;
  const float height = fminf(a[2], b[2]) - fmaxf(a[0], b[0]), width = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
  const float of_a = (a[2] - a[0]) * (a[3] - a[1]), of_b = (b[2] - b[0]) * (b[3] - b[1]);
  if (!(height > 0 && width > 0 && of_a > 0 && of_b > 0)) return false;
  return height * width / (of_a + of_b - height * width) > iou;
}

/* Many boxes, near each other or far apart on either axis, of very different sizes, some without area,
 * infinite or NaN: what is kept must be what the definition keeps, whatever is compared with what. */
static void suppression_of_many(void **state) {
  (void)state;
  enum { N = 700 };
  static const struct {
    float apart[2], size; /* of 7 groups of boxes, along each axis; of the largest box */
    bool odd;             /* some boxes are no boxes */
  } fields[] = {{{0, 0}, 40, false}, {{0, 500}, 40, false},   {{900, 0}, 40, true},  {{3, 3}, 1, false},
                {{0, 0}, 1, true},   {{0, 500}, 4000, false}, {{1e30F, 0}, 1, true}, {{0, 0}, 0, false}};
  uint32_t seed = 5;
  for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
    op_case c;
    op_begin(&c, "NonMaxSuppression", 11);
    hone_tensor *boxes = op_in(&c, F32, "1x700x4", NULL, 1), *scores = op_in(&c, F32, "1x1x700", NULL, 2);
    float *box = boxes->data;
    for (int64_t i = 0; i < N; i++) {
      float random[4];
      for (int k = 0; k < 4; k++) random[k] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-24F;
      for (int k = 0; k < 2; k++) {
        box[4 * i + k] = random[k] * 100 + fields[f].apart[k] * (float)(i % 7);
        box[4 * i + 2 + k] = box[4 * i + k] + fields[f].size * random[2 + k] * random[2 + k];
      }
      if (fields[f].odd && i % 50 == 3) box[4 * i + 3] = INFINITY;
      if (fields[f].odd && i % 50 == 13) box[4 * i] = -INFINITY;
      if (fields[f].odd && i % 50 == 23) box[4 * i] = box[4 * i + 2] = NAN;
      if (fields[f].odd && i % 50 == 33) box[4 * i + 2] = box[4 * i];
      ((float *)scores->data)[i] = (float)((i * 331) % N); /* all different */
    }
    double want[3 * N] = {0}; /* image, class, box */
    int64_t kept = 0;
    for (int64_t score = N - 1; score >= 0; score--)
      for (int64_t i = 0; i < N; i++) {
        if ((i * 331) % N != score) continue;
        bool stays = true;
        for (int64_t k = 0; stays && k < kept; k++)
          stays = !boxes_overlap(boxes, i, (int64_t)want[3 * k + 2], 0.3F);
        if (stays) want[3 * kept++ + 2] = (double)i;
      }
    op_in(&c, HONE_DTYPE_I64, "1", V(N), 0);
    op_in(&c, F32, "1", V(0.3F), 0);
    assert_int_equal(op_run(&c, 1), HONE_OK);
    char dims[32];
    snprintf(dims, sizeof dims, "%lldx3", (long long)kept);
    op_expect(&c, 0, HONE_DTYPE_I64, dims, want, 0);
    op_end(&c);
  }
}

/* ------------------------------------------------------------------ recurrences */

static void rnn_lengths(void **state) {
  (void)state;
  op_case c; /* running sums: each sample stops at its own length, the reverse direction starts there */
  op_begin(&c, "RNN", 14);
  op_in(&c, F32, "3x2x1", V(1, 10, 2, 20, 4, 40), 0);
  op_in(&c, F32, "2x1x1", V(1, 1), 0);
  op_in(&c, F32, "2x1x1", V(1, 1), 0);
  op_skip(&c);
  op_in(&c, HONE_DTYPE_I32, "2", V(3, 1), 0);
  op_attrs(&c, "hidden_size=1 direction=s:bidirectional activations=S:Affine,Affine");
  assert_int_equal(op_run(&c, 2), HONE_OK);
  op_expect(&c, 0, F32, "3x2x2x1", V(1, 10, 7, 10, 3, 0, 6, 0, 7, 0, 4, 0), 0);
  op_expect(&c, 1, F32, "2x2x1", V(7, 10, 7, 10), 0);
  op_end(&c);
  for (int length = -1; length < 5; length += 5) {
    op_begin(&c, "GRU", 14);
    op_in(&c, F32, "3x1x1", NULL, 1);
    op_in(&c, F32, "1x3x1", NULL, 2);
    op_in(&c, F32, "1x3x1", NULL, 3);
    op_skip(&c);
    op_in(&c, HONE_DTYPE_I32, "1", V(length), 0);
    op_attrs(&c, "hidden_size=1");
    assert_int_equal(op_run(&c, 2), HONE_ERROR_INPUT);
    op_end(&c);
  }
}

/* layout 1 is layout 0 with batch and time exchanged. */
static void lstm_layouts_agree(void **state) {
  (void)state;
  op_case a, b;
  op_case *both[] = {&a, &b};
  for (int k = 0; k < 2; k++) {
    op_case *c = both[k];
    op_begin(c, "LSTM", 14);
    op_in(c, F32, k ? "1x3x2" : "3x1x2", NULL, 1); /* one sample: the same bytes */
    op_in(c, F32, "1x8x2", NULL, 2);
    op_in(c, F32, "1x8x2", NULL, 3);
    op_in(c, F32, "1x16", NULL, 4);
    op_attrs(c, k ? "hidden_size=2 layout=1" : "hidden_size=2");
    assert_int_equal(op_run(c, 3), HONE_OK);
  }
  for (int o = 0; o < 3; o++)
    for (int i = 0; i < (o ? 2 : 6); i++) assert_true(op_get(&a.out[o], i) == op_get(&b.out[o], i));
  op_expect(&b, 0, F32, "1x3x1x2", NULL, 0);
  op_end(&a);
  op_end(&b);
}

static void dropout_training(void **state) {
  (void)state;
  op_case c;
  op_begin(&c, "Dropout", 13);
  op_in(&c, F32, "2", V(1, 2), 0);
  op_in(&c, F32, "", V(0), 0);
  op_in(&c, HONE_DTYPE_BOOL, "", V(1), 0);
  assert_int_equal(op_run(&c, 2), HONE_OK);
  op_expect(&c, 0, F32, "2", V(1, 2), 0);
  op_expect(&c, 1, HONE_DTYPE_BOOL, "2", V(1, 1), 0);
  op_end(&c);
  op_begin(&c, "Dropout", 13);
  op_in(&c, F32, "6", V(1, 2, 3, 4, 5, 6), 0);
  op_in(&c, F32, "", V(0.5), 0);
  op_in(&c, HONE_DTYPE_BOOL, "", V(1), 0);
  op_attrs(&c, "seed=5");
  assert_int_equal(op_run(&c, 2), HONE_OK);
  /* numpy.random.seed(5), numpy.random.uniform(0, 1, 6) >= 0.5 */
  op_expect(&c, 0, F32, "6", V(0, 4, 0, 8, 0, 12), 0);
  op_expect(&c, 1, HONE_DTYPE_BOOL, "6", V(0, 1, 0, 1, 0, 1), 0);
  op_end(&c);
  op_begin(&c, "Dropout", 13);
  op_in(&c, F32, "2", V(1, 2), 0);
  op_in(&c, F32, "", V(1), 0);
  op_in(&c, HONE_DTYPE_BOOL, "", V(1), 0);
  assert_int_equal(op_run(&c, 1), HONE_ERROR_INPUT);
  op_end(&c);
  op_begin(&c, "Dropout", 6); /* who wants a mask, and does not say that this is no training, trains */
  op_in(&c, F32, "2", V(1, 2), 0);
  assert_int_equal(op_run(&c, 2), HONE_ERROR_UNSUPPORTED);
  op_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conv_matches_definition),
      cmocka_unit_test(conv_same_padding),
      cmocka_unit_test(conv_transpose_small),
      cmocka_unit_test(pool_borders),
      cmocka_unit_test(pool_windows_without_room),
      cmocka_unit_test(unpool_bounds),
      cmocka_unit_test(batch_norm_versions),
      cmocka_unit_test(layer_norm_outputs),
      cmocka_unit_test(norms_have_the_range_of_their_stash),
      cmocka_unit_test(group_norm_versions),
      cmocka_unit_test(quantise_saturates_and_ties),
      cmocka_unit_test(qlinear_conv_by_channel),
      cmocka_unit_test(resize_edges),
      cmocka_unit_test(grid_sample_wild_coordinates),
      cmocka_unit_test(regions),
      cmocka_unit_test(suppression),
      cmocka_unit_test(suppression_of_many),
      cmocka_unit_test(rnn_lengths),
      cmocka_unit_test(lstm_layouts_agree),
      cmocka_unit_test(dropout_training),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
