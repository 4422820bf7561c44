/* Resize, crop, letterbox, colours: exact on small pictures. */
#include "accuracy/pictures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

/* Bytes as they are. */
static hone_preprocess plain(void) {
  return (hone_preprocess){.normalise = true, .scale = 1, .std = {1, 1, 1}};
}

/* Red is 10 row + column, green 100 more, blue 200. */
static void numbered(const char *name, int width, int height) {
  uint8_t rgb[20 * 20 * 3];
  for (int i = 0; i < width * height; i++)
    for (int c = 0; c < 3; c++) rgb[3 * i + c] = (uint8_t)(100 * c + 10 * (i / width) + i % width);
  pictures_png(name, width, height, rgb);
}

static hone_data loaded(const char *name, hone_tensor_desc want, const hone_preprocess *p) {
  hone_data d;
  hone_error e = {0};
  if (hone_data_load(pictures_path(name), "x", &want, p, &d, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  return d;
}

static hone_tensor_desc nchw(int64_t c, int64_t h, int64_t w) {
  return hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, c, h, w});
}

static void expect(const hone_data *d, const float *values, size_t n) {
  const float *v = d->tensor.data;
  assert_true(hone_desc_count(&d->tensor.desc) >= (int64_t)n);
  for (size_t i = 0; i < n; i++)
    if (v[i] < values[i] - 1e-4f || v[i] > values[i] + 1e-4f) fail_msg("%zu: %g, not %g", i, v[i], values[i]);
}

static void test_letterbox(void **state) {
  (void)state;
  hone_preprocess p = plain();
  p.fit = HONE_FIT_LETTERBOX, p.pad = 114;
  numbered("wide.png", 4, 2);
  hone_data d = loaded("wide.png", nchw(3, 4, 4), &p);
  expect(&d, (const float[]){114, 114, 114, 114, 0, 1, 2, 3, 10, 11, 12, 13, 114, 114, 114, 114}, 16);
  hone_data_free(&d);
  p.pad = 0; /* an odd bar more on the lower side */
  d = loaded("wide.png", nchw(3, 5, 4), &p);
  expect(&d, (const float[]){0, 0, 0, 0, 0, 1, 2, 3, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0}, 20);
  hone_data_free(&d);
  numbered("high.png", 2, 4);
  d = loaded("high.png", nchw(1, 4, 4), &p); /* bars beside it, of the grey that bytes make */
  const float *v = d.tensor.data;
  assert_float_equal(v[0], 0, 0);
  assert_float_equal(v[3], 0, 0);
  assert_float_equal(v[1], 0.587 * 100 + 0.114 * 200, 1e-3);
  hone_data_free(&d);
  /* bars are normalised as pixels are */
  hone_preprocess usual = {.fit = HONE_FIT_LETTERBOX, .pad = 114};
  d = loaded("wide.png", nchw(3, 4, 4), &usual);
  expect(&d, (const float[]){(114 / 255.0f - 0.485f) / 0.229f}, 1);
  hone_data_free(&d);
}

/* A corner of the picture and of its part of the tensor are the same place. */
static void test_map(void **state) {
  (void)state;
  hone_dataset *set = NULL;
  hone_picture_map map;
  hone_error e = {0};
  hone_data d;
  numbered("set/map.png", 10, 20);
  const char *path = pictures_path("set");
  assert_int_equal(hone_dataset_open(&(hone_dataset_options){.paths = &path, .n_paths = 1}, &set, &e),
                   HONE_OK);
  hone_preprocess p = plain();
  p.fit = HONE_FIT_LETTERBOX;
  hone_tensor_desc want = nchw(3, 40, 60); /* twice as large, 20 of 60 wide */
  assert_int_equal(hone_dataset_load(set, 0, &want, &p, &d, &map, &e), HONE_OK);
  assert_int_equal(map.width, 10);
  assert_int_equal(map.height, 20);
  assert_float_equal(map.x0 + map.dx * 20, 0, 1e-9);
  assert_float_equal(map.x0 + map.dx * 40, 10, 1e-9);
  assert_float_equal(map.y0, 0, 1e-9);
  assert_float_equal(map.y0 + map.dy * 40, 20, 1e-9);
  hone_data_free(&d);
  p.resize_h = 20; /* the shorter side, 20x40; then the middle 12 of it, twice as large */
  p.crop_h = p.crop_w = 12;
  want = nchw(3, 24, 24);
  assert_int_equal(hone_dataset_load(set, 0, &want, &p, &d, &map, &e), HONE_OK);
  assert_float_equal(map.x0, 2, 1e-9); /* (20 - 12) / 2 of doubled pixels */
  assert_float_equal(map.x0 + map.dx * 24, 8, 1e-9);
  assert_float_equal(map.y0, 7, 1e-9); /* (40 - 12) / 2 */
  assert_float_equal(map.y0 + map.dy * 24, 13, 1e-9);
  hone_data_free(&d);
  hone_dataset_close(set);
}

static void test_crop(void **state) {
  (void)state;
  hone_preprocess p = plain();
  p.crop_h = p.crop_w = 2;
  numbered("four.png", 4, 4);
  hone_data d = loaded("four.png", nchw(3, 2, 2), &p);
  expect(&d, (const float[]){11, 12, 21, 22, 111, 112, 121, 122, 211, 212, 221, 222}, 12);
  hone_data_free(&d);
  /* the crop settles what the model leaves open */
  d = loaded("four.png", nchw(3, -1, -1), &p);
  assert_int_equal(d.tensor.desc.dim[2], 2);
  assert_int_equal(d.tensor.desc.dim[3], 2);
  hone_data_free(&d);
  /* resize, then crop: the middle of what resizing alone makes */
  numbered("long.png", 8, 4);
  hone_preprocess whole = plain();
  p.resize_h = 2;
  hone_data all = loaded("long.png", nchw(3, 2, 4), &whole);
  d = loaded("long.png", nchw(3, 2, 2), &p);
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < 2; y++)
      for (int x = 0; x < 2; x++)
        assert_float_equal(((float *)d.tensor.data)[(c * 2 + y) * 2 + x],
                           ((float *)all.tensor.data)[(c * 2 + y) * 4 + x + 1], 1e-4);
  hone_data_free(&d);
  hone_data_free(&all);
  /* larger than the picture: it is enlarged until it covers the crop */
  pictures_plain("small.png", 2, 3, 50, 60, 70);
  p = plain();
  p.crop_h = p.crop_w = 6;
  d = loaded("small.png", nchw(3, 6, 6), &p);
  for (int i = 0; i < 36; i++) assert_float_equal(((float *)d.tensor.data)[i], 50, 1e-4);
  hone_data_free(&d);
}

static void test_colours(void **state) {
  (void)state;
  pictures_plain("colour.png", 3, 3, 10, 20, 40);
  hone_preprocess p = {.normalise = true, .scale = 0.5f, .mean = {1, 2, 3}, .std = {1, 2, 4}};
  hone_data d = loaded("colour.png", nchw(3, 1, 1), &p);
  expect(&d, (const float[]){5 - 1, (10 - 2) / 2.0f, (20 - 3) / 4.0f}, 3);
  hone_data_free(&d);
  p.bgr = true; /* mean and deviation belong to the tensor's channels */
  d = loaded("colour.png", nchw(3, 1, 1), &p);
  expect(&d, (const float[]){20 - 1, (10 - 2) / 2.0f, (5 - 3) / 4.0f}, 3);
  hone_data_free(&d);
  /* bytes stay bytes, in the order that was asked for */
  d = loaded("colour.png", hone_desc(HONE_DTYPE_U8, 4, (int64_t[]){1, 2, 2, 3}), &p);
  assert_memory_equal(d.tensor.data, ((uint8_t[]){40, 20, 10}), 3);
  hone_data_free(&d);
  /* 1x3x3x3 may be either: said so, it is NHWC */
  p = plain();
  p.pixels = HONE_PIXELS_NHWC;
  d = loaded("colour.png", nchw(3, 3, 3), &p);
  expect(&d, (const float[]){10, 20, 40, 10, 20, 40}, 6);
  hone_data_free(&d);
  p.pixels = HONE_PIXELS_NCHW;
  d = loaded("colour.png", nchw(3, 3, 3), &p);
  expect(&d, (const float[]){10, 10, 10}, 3);
  hone_data_free(&d);
}

static void refused(hone_preprocess p, hone_tensor_desc want, const char *words) {
  hone_data d;
  hone_error e = {0};
  char line[1300];
  assert_int_not_equal(hone_data_load(pictures_path("colour.png"), "x", &want, &p, &d, &e), HONE_OK);
  hone_error_format(&e, line, sizeof line);
  if (!strstr(line, words)) fail_msg("'%s' lacks '%s'", line, words);
}

static void test_refusals(void **state) {
  (void)state;
  pictures_plain("colour.png", 3, 3, 10, 20, 40);
  hone_preprocess p = plain();
  p.std[1] = 0;
  refused(p, nchw(3, 2, 2), "deviation");
  p = plain(), p.resize_w = 4;
  refused(p, nchw(3, 2, 2), "height and width");
  p = plain(), p.crop_h = 70000, p.crop_w = 1;
  refused(p, nchw(3, 2, 2), "70000");
  p = plain(), p.pixels = HONE_PIXELS_NHWC;
  refused(p, nchw(3, 2, 2), "NHWC");
  refused(plain(), nchw(3, 0, 2), "does not fit");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_letterbox), cmocka_unit_test(test_map),      cmocka_unit_test(test_crop),
      cmocka_unit_test(test_colours),   cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, pictures_setup, pictures_teardown);
}
