/* Numbers of 8 bits and fewer: every code, its neighbours, and what files hold. */
#include "base/narrow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const hone_dtype types[] = {HONE_DTYPE_F8E4M3FN,   HONE_DTYPE_F8E4M3FNUZ, HONE_DTYPE_F8E5M2,
                                   HONE_DTYPE_F8E5M2FNUZ, HONE_DTYPE_F8E8M0,     HONE_DTYPE_F6E2M3,
                                   HONE_DTYPE_F6E3M2,     HONE_DTYPE_F4E2M1,     HONE_DTYPE_I4,
                                   HONE_DTYPE_U4,         HONE_DTYPE_I2,         HONE_DTYPE_U2};
enum { TYPES = sizeof types / sizeof *types };

/* What lies in memory for a code of a file. */
static uint8_t stored(hone_dtype d, int code) {
  return hn_narrow_is_float(d) ? (uint8_t)code : hn_narrow_from_i64(d, code);
}

static void every_code_is_its_number(void **state) {
  (void)state;
  for (int t = 0; t < TYPES; t++)
    for (int code = 0; code < 1 << hn_narrow_bits(types[t]); code++)
      for (int overflow = 0; overflow < 2; overflow++) {
        const float v = hn_narrow_to_f32(types[t], stored(types[t], code));
        const uint8_t again = hn_narrow_from_f64(types[t], (double)v, (hn_narrow_rule){.overflow = overflow});
        const float w = hn_narrow_to_f32(types[t], again);
        assert_true(isnan(v)                ? isnan(w)
                    : isinf(v) && !overflow ? isfinite(w)
                                            : w == v && signbit(w) == signbit(v));
      }
}

/* Between two numbers the nearer is taken, in the middle the even code. */
static void between_numbers(void **state) {
  (void)state;
  for (int t = 0; t < TYPES; t++) {
    const hone_dtype d = types[t];
    if (!hn_narrow_is_float(d) || d == HONE_DTYPE_F8E8M0) continue;
    for (int code = 0; code + 1 < 1 << (hn_narrow_bits(d) - 1); code++) {
      const double a = (double)hn_narrow_to_f32(d, (uint8_t)code),
                   b = (double)hn_narrow_to_f32(d, (uint8_t)(code + 1));
      if (!isfinite(a) || !isfinite(b)) break;
      const hn_narrow_rule rule = {.overflow = true};
      assert_int_equal(hn_narrow_from_f64(d, a + (b - a) * 0.49, rule), code);
      assert_int_equal(hn_narrow_from_f64(d, a + (b - a) * 0.51, rule), code + 1);
      assert_int_equal(hn_narrow_from_f64(d, (a + b) / 2, rule), code % 2 ? code + 1 : code);
    }
  }
}

static void packing(void **state) {
  (void)state;
  assert_int_equal(hn_narrow_packed_bytes(HONE_DTYPE_I4, 3), 2);
  assert_int_equal(hn_narrow_packed_bytes(HONE_DTYPE_U2, 5), 2);
  assert_int_equal(hn_narrow_packed_bytes(HONE_DTYPE_F6E2M3, 3), 3);
  assert_int_equal(hn_narrow_packed_bytes(HONE_DTYPE_F8E5M2, 3), 3);
  uint8_t two[3];
  hn_narrow_unpack(HONE_DTYPE_I4, (const uint8_t[]){0x8f, 0x07}, 3, two);
  assert_memory_equal(two, ((const uint8_t[]){0xff, 0xf8, 7}), 3);
  for (int t = 0; t < TYPES; t++)
    for (int64_t n = 0; n < 20; n++) {
      uint8_t *from = malloc((size_t)n + 1), *to = malloc((size_t)n + 1);
      const size_t bytes = (size_t)hn_narrow_packed_bytes(types[t], n);
      uint8_t *file = malloc(bytes + !bytes);
      assert_true(from && to && file);
      for (int64_t i = 0; i < n; i++)
        from[i] = stored(types[t], (int)(i * 37 + 5) & ((1 << hn_narrow_bits(types[t])) - 1));
      hn_narrow_pack(types[t], from, n, file);
      hn_narrow_unpack(types[t], file, n, to);
      assert_memory_equal(from, to, (size_t)n);
      free(from), free(to), free(file);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_code_is_its_number),
                                     cmocka_unit_test(between_numbers), cmocka_unit_test(packing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
