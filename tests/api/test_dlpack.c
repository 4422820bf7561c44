/* DLPack: tensors there and back, and what is not taken. A program whose compiler sees dlpack.h beside hone's
 * words for it would find the same bytes at the same places: they are checked here by number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/dlpack.h>
#include <string.h>

static void test_places(void **state) {
  (void)state;
  assert_int_equal(offsetof(hone_dl_tensor, device_type), 8);
  assert_int_equal(offsetof(hone_dl_tensor, ndim), 16);
  assert_int_equal(offsetof(hone_dl_tensor, code), 20);
  assert_int_equal(offsetof(hone_dl_tensor, bits), 21);
  assert_int_equal(offsetof(hone_dl_tensor, lanes), 22);
  assert_int_equal(offsetof(hone_dl_tensor, shape), 24);
  assert_int_equal(offsetof(hone_dl_tensor, strides), 32);
  assert_int_equal(offsetof(hone_dl_tensor, byte_offset), 40);
  assert_int_equal(sizeof(hone_dl_tensor), 48);
}

static void test_there_and_back(void **state) {
  (void)state;
  static float x[24];
  for (hone_dtype type = HONE_DTYPE_NONE; type < HONE_DTYPE_COUNT; type++) {
    hone_tensor t = {hone_desc(type, 3, (const int64_t[]){2, 3, 4}), x}, back;
    int64_t dim[2 * HONE_MAX_RANK];
    hone_dl_tensor d;
    t.desc.device = 2;
    const hone_status status = hone_dlpack_export(&t, false, &d, dim, NULL);
    const bool has = type && type <= HONE_DTYPE_BF16 && type != HONE_DTYPE_STRING;
    assert_int_equal(status, has ? HONE_OK : HONE_ERROR_UNSUPPORTED);
    if (!has) continue;
    assert_int_equal(d.device_type, HONE_DL_CUDA);
    assert_int_equal(d.device_id, 1);
    assert_int_equal(hone_dlpack_import(&d, &back, NULL), HONE_OK);
    assert_int_equal(back.desc.dtype, type);
    assert_int_equal(back.desc.device, 2);
    assert_int_equal(back.desc.layout, HONE_LAYOUT_ROW_MAJOR);
    assert_true(hone_desc_same_dims(&back.desc, &t.desc));
    assert_ptr_equal(back.data, x);
  }
}

static void test_views(void **state) {
  (void)state;
  static float x[24];
  int64_t shape[] = {2, 1, 3}, strides[] = {12, 99, 4}, dense[] = {3, 99, 1};
  hone_dl_tensor d = {.data = x,
                      .device_type = HONE_DL_CUDA_HOST,
                      .ndim = 3,
                      .code = 2,
                      .bits = 32,
                      .lanes = 1,
                      .shape = shape,
                      .strides = strides,
                      .byte_offset = 8};
  hone_tensor t;
  assert_int_equal(hone_dlpack_import(&d, &t, NULL), HONE_OK);
  assert_int_equal(t.desc.layout, HONE_LAYOUT_STRIDED);
  assert_memory_equal(t.desc.stride, strides, sizeof strides);
  assert_int_equal(t.desc.device, 0);
  assert_ptr_equal(t.data, x + 2);
  d.strides = dense; /* of a dimension of 1 it does not matter */
  assert_int_equal(hone_dlpack_import(&d, &t, NULL), HONE_OK);
  assert_int_equal(t.desc.layout, HONE_LAYOUT_ROW_MAJOR);
  d.strides = NULL;
  assert_int_equal(hone_dlpack_import(&d, &t, NULL), HONE_OK);
  assert_int_equal(t.desc.stride[0], 3);
}

static void refuse(hone_dl_tensor d, hone_status status, const char *word) {
  hone_tensor t;
  hone_error e = {0};
  assert_int_equal(hone_dlpack_import(&d, &t, &e), status);
  if (!strstr(e.what, word)) fail_msg("%s", e.what);
}

static void test_refused(void **state) {
  (void)state;
  int64_t shape[HONE_MAX_RANK + 1] = {2, -1};
  const hone_dl_tensor d = {
      .device_type = HONE_DL_CPU, .ndim = 1, .code = 2, .bits = 32, .lanes = 1, .shape = shape};
  hone_dl_tensor other = d;
  other.lanes = 4;
  refuse(other, HONE_ERROR_UNSUPPORTED, "4 lanes");
  other = d, other.bits = 24;
  refuse(other, HONE_ERROR_UNSUPPORTED, "24 bits");
  other = d, other.device_type = 4;
  refuse(other, HONE_ERROR_UNSUPPORTED, "device type 4");
  other = d, other.ndim = HONE_MAX_RANK + 1;
  refuse(other, HONE_ERROR_UNSUPPORTED, "dimensions");
  other = d, other.ndim = 2;
  refuse(other, HONE_ERROR_USAGE, "negative");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_there_and_back),
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
