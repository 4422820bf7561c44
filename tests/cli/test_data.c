/* Arrays and pictures as files: round trips, conversions, and files that lie. */
#include "temporary.h"
#include "cli/make_files.h"
#include "net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <png.h>

#include <hone/hone.h>

static char path[128];

static int setup(void **state) {
  (void)state;
  int fd = mkstemp(temporary(path, sizeof path, "hone-data"));
  if (fd >= 0) close(fd);
  return fd < 0;
}

static int teardown(void **state) {
  (void)state;
  return unlink(path);
}

static void put(const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

static hone_tensor_desc any(hone_dtype dtype) { return hone_desc(dtype, -1, NULL); }

static hone_status load(hone_tensor_desc want, hone_data *out, hone_error *e) {
  memset(e, 0, sizeof *e);
  return hone_data_load(path, "x", &want, NULL, out, e);
}

static void expect_refusal(hone_tensor_desc want, const char *words) {
  hone_data d;
  hone_error e;
  assert_int_not_equal(load(want, &d, &e), HONE_OK);
  assert_null(d.impl);
  char line[1200];
  hone_error_format(&e, line, sizeof line);
  if (!strstr(line, words) || !strstr(line, path)) fail_msg("'%s' lacks '%s'", line, words);
}

static void test_npy_round_trip(void **state) {
  (void)state;
  float v[6] = {1, -2, 3.5f, 0, 1e-30f, 7};
  hone_tensor t = {hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){2, 3}), v};
  hone_error e = {0};
  hone_data d;
  assert_int_equal(hone_data_save_npy(&t, path, &e), HONE_OK);
  assert_int_equal(load(any(HONE_DTYPE_NONE), &d, &e), HONE_OK);
  assert_true(hone_desc_same_dims(&d.tensor.desc, &t.desc));
  assert_memory_equal(d.tensor.data, v, sizeof v);
  hone_data_free(&d);
  /* every dtype that has a NumPy name, through f64 and back */
  static const hone_dtype dtypes[] = {HONE_DTYPE_U8,  HONE_DTYPE_I8,  HONE_DTYPE_U16, HONE_DTYPE_I16,
                                      HONE_DTYPE_I32, HONE_DTYPE_I64, HONE_DTYPE_U32, HONE_DTYPE_U64,
                                      HONE_DTYPE_F16, HONE_DTYPE_F64, HONE_DTYPE_BOOL};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    hone_data a, b;
    hone_tensor_desc want = hone_desc(dtypes[i], 1, (int64_t[]){5});
    assert_int_equal(hone_data_random("ids", &want, 0, 3, &a, &e), HONE_OK);
    assert_int_equal(hone_data_save_npy(&a.tensor, path, &e), HONE_OK);
    assert_int_equal(load(want, &b, &e), HONE_OK);
    assert_memory_equal(a.tensor.data, b.tensor.data, 5 * hone_dtype_size(dtypes[i]));
    hone_data_free(&a);
    hone_data_free(&b);
  }
}

static void test_strings(void **state) {
  (void)state;
  hone_string s[3] = {{"a", 1}, {"gr\xc3\xbc\xc3\x9f", 6}, {"", 0}};
  hone_tensor t = {hone_desc(HONE_DTYPE_STRING, 1, (int64_t[]){3}), s};
  hone_error e = {0};
  hone_data d;
  assert_int_equal(hone_data_save_npy(&t, path, &e), HONE_OK);
  assert_int_equal(load(any(HONE_DTYPE_STRING), &d, &e), HONE_OK);
  const hone_string *r = d.tensor.data;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(r[i].len, s[i].len);
    assert_memory_equal(r[i].ptr, s[i].ptr, s[i].len);
  }
  hone_data_free(&d);
}

static void test_conversions(void **state) {
  (void)state;
  double v[3] = {1, 2.5, -3};
  hone_tensor t = {hone_desc(HONE_DTYPE_F64, 1, (int64_t[]){3}), v};
  hone_error e = {0};
  hone_data d;
  assert_int_equal(hone_data_save_npy(&t, path, &e), HONE_OK);
  assert_int_equal(load(any(HONE_DTYPE_F32), &d, &e), HONE_OK);
  assert_float_equal(((float *)d.tensor.data)[1], 2.5, 0);
  hone_data_free(&d);
  expect_refusal(any(HONE_DTYPE_I64), "do not fit"); /* 2.5 */
  expect_refusal(hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){4}), "another shape");
  v[0] = 1e300;
  assert_int_equal(hone_data_save_npy(&t, path, &e), HONE_OK);
  expect_refusal(any(HONE_DTYPE_F32), "do not fit"); /* overflow */
  expect_refusal(any(HONE_DTYPE_STRING), "do not fit");
}

static void test_lying_npy(void **state) {
  (void)state;
  static const struct {
    const char *dict, *words;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }", "cut off"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "bad shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "bad shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "dimensions"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "element type"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "element type"},
      {"{'descr': '<U99999999', 'fortran_order': False, 'shape': (1,), }", "element type"},
      {"{'descr': '<f4', 'shape': (1,), }", "lacks"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 4", "bad shape"},
  };
  char head[128];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    npy_header(head, sizeof head, cases[i].dict);
    put(head, sizeof head);
    expect_refusal(any(HONE_DTYPE_NONE), cases[i].words);
  }
  put("\x93NUMPY\1\0\xff\xff", 10);
  expect_refusal(any(HONE_DTYPE_NONE), ".npy");
  put("", 0);
  expect_refusal(any(HONE_DTYPE_NONE), "not an array or picture");
}

static void test_fortran_and_big_endian(void **state) {
  (void)state;
  char file[128 + 12];
  npy_header(file, 128, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }");
  static const char body[12] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6}; /* 1 2 3 / 4 5 6 by columns */
  memcpy(file + 128, body, sizeof body);
  put(file, sizeof file);
  hone_data d;
  hone_error e;
  assert_int_equal(load(any(HONE_DTYPE_I32), &d, &e), HONE_OK);
  for (int i = 0; i < 6; i++) assert_int_equal(((int32_t *)d.tensor.data)[i], i + 1);
  hone_data_free(&d);
}

static void test_npz(void **state) {
  (void)state;
  enum { N = 1000 };
  static uint8_t npy[128 + N], zip[4096 + N];
  npy_header((char *)npy, 128, "{'descr': '|u1', 'fortran_order': False, 'shape': (1000,), }");
  for (int i = 0; i < N; i++) npy[128 + i] = (uint8_t)(i % 7);
  for (int deflated = 0; deflated < 2; deflated++) {
    size_t n = make_zip(zip, npy, sizeof npy, deflated, sizeof npy);
    put(zip, n);
    hone_data d;
    hone_error e;
    assert_int_equal(load(any(HONE_DTYPE_U8), &d, &e), HONE_OK);
    assert_memory_equal(d.tensor.data, npy + 128, N);
    hone_data_free(&d);
    for (size_t cut = 0; cut < n; cut += 13) { /* any prefix is one error */
      put(zip, cut);
      assert_int_not_equal(load(any(HONE_DTYPE_U8), &d, &e), HONE_OK);
    }
  }
  /* bombs: more than the input can hold; more than deflate can do; another size than told */
  put(zip, make_zip(zip, npy, sizeof npy, true, 1u << 30));
  expect_refusal(hone_desc(HONE_DTYPE_U8, 1, (int64_t[]){1000}), "claims more data");
  expect_refusal(any(HONE_DTYPE_U8), "claims more data");
  put(zip, make_zip(zip, npy, sizeof npy, true, sizeof npy + 1));
  expect_refusal(any(HONE_DTYPE_U8), "inflate");
  put(zip, make_zip(zip, npy, sizeof npy, true, sizeof npy - 1));
  expect_refusal(any(HONE_DTYPE_U8), "inflate");
}

static size_t make_png(uint8_t *out, size_t room, int width, int height, const uint8_t *rgb) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = PNG_FORMAT_RGB};
  png_alloc_size_t n = room;
  assert_true(png_image_write_to_memory(&image, out, &n, 0, rgb, 0, NULL));
  return n;
}

static void test_picture(void **state) {
  (void)state;
  uint8_t rgb[4 * 4 * 3], png[2048];
  for (int i = 0; i < 16; i++) rgb[3 * i] = 255, rgb[3 * i + 1] = 0, rgb[3 * i + 2] = 128;
  size_t n = make_png(png, sizeof png, 4, 4, rgb);
  put(png, n);
  hone_data d;
  hone_error e;
  assert_int_equal(load(hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){2, 3, 8, 8}), &d, &e),
                   HONE_OK); /* a batch of copies */
  const float *v = d.tensor.data;
  for (int b = 0; b < 2; b++) {
    assert_float_equal(v[b * 192], (1 - 0.485) / 0.229, 1e-5);
    assert_float_equal(v[b * 192 + 64], (0 - 0.456) / 0.224, 1e-5);
    assert_float_equal(v[b * 192 + 128 + 63], (128 / 255.0 - 0.406) / 0.225, 1e-5);
  }
  hone_data_free(&d);
  assert_int_equal(load(hone_desc(HONE_DTYPE_U8, 4, (int64_t[]){1, 2, 2, 3}), &d, &e),
                   HONE_OK); /* NHWC bytes */
  assert_memory_equal(d.tensor.data, rgb, 12);
  hone_data_free(&d);
  assert_int_equal(load(hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){-1, 3, -1, -1}), &d, &e),
                   HONE_OK); /* the picture's size */
  assert_int_equal(d.tensor.desc.dim[3], 4);
  hone_data_free(&d);
  expect_refusal(hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){1, 10}), "does not fit");
  for (size_t cut = 8; cut < n - 20; cut += 7) { /* the end mark may be missing, pixels may not */
    put(png, cut);
    assert_int_not_equal(load(hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8}), &d, &e), HONE_OK);
  }
}

static void test_jpeg(void **state) {
  (void)state;
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr err;
  unsigned char *file = NULL;
  unsigned long size = 0;
  uint8_t row[16 * 3];
  memset(row, 200, sizeof row);
  c.err = jpeg_std_error(&err);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, &file, &size);
  c.image_width = c.image_height = 16, c.input_components = 3, c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_start_compress(&c, TRUE);
  for (int i = 0; i < 16; i++) jpeg_write_scanlines(&c, (JSAMPROW[]){row}, 1);
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  put(file, size);
  hone_data d;
  hone_error e;
  assert_int_equal(load(hone_desc(HONE_DTYPE_U8, 3, (int64_t[]){3, 4, 4}), &d, &e), HONE_OK);
  assert_in_range(((uint8_t *)d.tensor.data)[5], 198, 202);
  hone_data_free(&d);
  for (unsigned long cut = 3; cut < size - 2; cut += 11) {
    put(file, cut);
    assert_int_not_equal(load(hone_desc(HONE_DTYPE_F32, 3, (int64_t[]){3, 4, 4}), &d, &e), HONE_OK);
  }
  free(file);
}

static void test_random(void **state) {
  (void)state;
  hone_model *bert = NULL;
  hone_error e = {0};
  assert_int_equal(
      hone_zoo_build("bert_base", &(hone_zoo_options){.batch = 1, .width = 0.09, .size = 16}, &bert, &e),
      HONE_OK);
  for (uint32_t i = 0; i < hone_model_inputs(bert); i++) {
    hone_port p;
    hone_data d;
    assert_true(hone_model_input(bert, i, &p));
    int64_t below = hone_model_input_bound(bert, i);
    if (strcmp(p.name, "input_ids") == 0) assert_int_equal(below, 30522);
    if (strcmp(p.name, "token_type_ids") == 0) assert_int_equal(below, 2);
    assert_int_equal(hone_data_random(p.name, &p.desc, below, 1, &d, &e), HONE_OK);
    const int64_t *v = d.tensor.data;
    for (int k = 0; k < 16; k++) {
      if (strcmp(p.name, "attention_mask") == 0) assert_int_equal(v[k], 1);
      if (strcmp(p.name, "token_type_ids") == 0) assert_int_equal(v[k], 0);
      if (below) assert_in_range(v[k], 0, below - 1);
    }
    hone_data_free(&d);
  }
  hone_model_release(bert);
}

/* Whatever an operator reads as places along a dimension stays inside it. */
static void test_bounds(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t below; /* of input 1 */
  } nets[] = {
      {"graph g(%x: f32[2x3x5x8], %p: i64[2x5], %c: f32[12x4]) -> (%y) {\n"
       "  %y = RotaryEmbedding(%x, %c, %c, %p)\n}\n",
       12},
      {"graph g(%x: f32[2x3x5x8], %p: i64[2x5], %c: f32[12x4]) -> (%y) {\n"
       "  %y = com.microsoft::RotaryEmbedding(%x, %p, %c, %c)\n}\n",
       12},
      {"graph g(%x: f32[2x3x5x8], %p: i64[1], %c: f32[12x4]) -> (%y) {\n"
       "  %y = com.microsoft::RotaryEmbedding(%x, %p, %c, %c)\n}\n",
       8}, /* and the four that follow */
      {"graph g(%x: f32[7x3x5], %p: i64[4x2]) -> (%y) {\n  %y = GatherND(%x, %p)\n}\n", 3},
      {"graph g(%x: f32[7x3], %p: i64[7x3]) -> (%y) {\n  %y = GatherElements(%x, %p) {axis=-1}\n}\n", 3},
      {"graph g(%x: i64[2], %p: i64[3], %t: f32[6x4]) -> (%y) {\n  %i = Concat(%x, %p) {axis=0}\n"
       "  %y = Gather(%t, %i)\n}\n",
       6},
      {"graph g(%x: f32[5x3x2], %p: i64[3]) -> (%y) {\n  %y = ReverseSequence(%x, %p)\n}\n", 6},
      {"graph g(%x: f32[6x4], %p: i64[6]) -> (%y) {\n  %y = SoftmaxCrossEntropyLoss(%x, %p)\n}\n", 4},
      {"graph g(%x: f32[2x3x4], %p: i32[2], %w: f32[1x20x4], %r: f32[1x20x5]) -> (%y) {\n"
       "  %y = LSTM(%x, %w, %r, _, %p) {hidden_size=5, layout=1}\n}\n",
       4},
      {"graph g(%x: f32[2x3x8x5], %p: i64[2], %u: f32[2x3x3x5]) -> (%y) {\n  %y = TensorScatter(%x, %u, "
       "%p)\n}\n",
       6}, /* and the two that follow */
      {"graph g(%x: f32[1x1x2x2], %p: i64[1x1x2x2]) -> (%y) {\n"
       "  %y = MaxUnpool(%x, %p) {kernel_shape=[2, 2], strides=[2, 2]}\n}\n",
       16},
      {"graph g(%q: f32[2x3x4x8], %p: i64[2], %k: f32[2x3x6x8], %v: f32[2x3x6x8]) -> (%y) {\n"
       "  %y = Attention(%q, %k, %v, _, _, _, %p)\n}\n",
       7},
      {"graph g(%n: i64[], %p: i64[1], %t: f32[6x4]) -> (%y, %all) {\n  %y, %all = Loop(%n, _, %p) "
       "{body=graph b("
       "%i: i64[], %go: bool[], %w: i64[1]) -> (%on, %next, %row) {\n    %on = Identity(%go)\n"
       "    %row = Gather(%t, %w)\n    %next = ArgMax(%row) {axis=1, keepdims=0}\n  }}\n}\n",
       6},
      {"graph g(%s: f32[4], %p: i64[3], %t: f32[6x4]) -> (%y) {\n  %y = Scan(%s, %p) {num_scan_inputs=1, "
       "body=graph b(%a: f32[4], %w: i64[]) -> (%on) {\n    %row = Gather(%t, %w)\n    %on = Add(%a, %row)\n"
       "  }}\n}\n",
       6},
      {"graph g(%x: f32[6x4], %p: i64[6x4]) -> (%y) {\n  %c = Cast(%p) {to=1}\n  %y = Add(%x, %c)\n}\n", 0},
  };
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    char text[500];
    snprintf(text, sizeof text, "opset 24\nopset \"com.microsoft\" 1\n%s", nets[i].text);
    hone_model *m = net_parse("test", text);
    if (hone_model_input_bound(m, 1) != nets[i].below)
      fail_msg("%lld: %s", (long long)hone_model_input_bound(m, 1), nets[i].text);
    hone_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_npy_round_trip),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_conversions),
      cmocka_unit_test(test_lying_npy),
      cmocka_unit_test(test_npz),
      cmocka_unit_test(test_fortran_and_big_endian),
      cmocka_unit_test(test_picture),
      cmocka_unit_test(test_jpeg),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_bounds),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
