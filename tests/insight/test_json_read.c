/* What reading JSON asks for beforehand: enough, and not many times what it takes. */
#include "base/json_read.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t live, peak;

static void *counted_malloc(size_t size) {
  void *p = malloc(size);
  live += p ? malloc_usable_size(p) + sizeof(size_t) : 0;
  if (live > peak) peak = live;
  return p;
}

static void counted_free(void *p) {
  if (p) live -= malloc_usable_size(p) + sizeof(size_t);
  free(p);
}

/* `count` times `unit` between two ends, read; returns the length. */
static size_t read_one(const char *first, const char *unit, const char *last, size_t count, bool numbered) {
  const size_t size = strlen(first) + strlen(last) + count * (strlen(unit) + 24) + 1;
  char *text = malloc(size);
  size_t n = (size_t)sprintf(text, "%s", first);
  for (size_t i = 0; i < count; i++)
    n += (size_t)(numbered ? sprintf(text + n, "%s\"%zx\":%s", i ? "," : "", i, unit)
                           : sprintf(text + n, "%s", unit));
  n += (size_t)sprintf(text + n, "%s", last);
  json_error_t where;
  live = peak = 0;
  json_t *root = hn_json_load(text, n, 0, &where);
  json_decref(root);
  const size_t need = hn_json_need(text, n);
  if (need < peak) fail_msg("%s: %zu needed, %zu foreseen", unit, peak, need);
  if (need > 3 * peak + (65 << 10)) fail_msg("%s: %zu needed, %zu foreseen", unit, peak, need);
  free(text);
  return n;
}

static void enough_is_foreseen(void **state) {
  (void)state;
  json_set_alloc_funcs(counted_malloc, counted_free);
  for (size_t n = 1000; n < 40000; n = n * 17 / 10) {
    read_one("[0", ",1", "]", n, false);
    read_one("[0", ",1.25e3", "]", n, false);
    read_one("[0", ",true", "]", n, false);
    read_one("[0", ",[]", "]", n, false);
    read_one("[0", ",{}", "]", n, false);
    read_one("[0", ",\"\"", "]", n, false);
    read_one("[0", ",\"a \\\" \\\\ name\"", "]", n, false);
    read_one("[0", ",{\"a\":1,\"b\":[2]}", "]", n, false);
    read_one("{", "1", "}", n, true);
    read_one("{", "{\"a\":\"b\"}", "}", n, true);
    read_one("[\"", "long text ", "\"]", n, false);
    read_one("[\"", "\\u4e2d", "\"]", n, false);
  }
  read_one("", "[", "", 2000, false);
  read_one("", "{\"\":", "", 2000, false);
  json_set_alloc_funcs(malloc, free);
}

/* Long names and numbers with many digits take little more than their bytes. */
static void names_are_not_tokens(void **state) {
  (void)state;
  char text[20002];
  memset(text, 'x', sizeof text);
  text[0] = text[sizeof text - 1] = '"';
  assert_true(hn_json_need(text, sizeof text) < (64u << 10) + 6 * sizeof text);
}

/* Text that is no JSON is looked at to its end and no further. */
static void any_text_is_looked_at(void **state) {
  (void)state;
  static const char *const texts[] = {"",         "\"", "\"\\", "[\"a\\", "]", "}}}}",
                                      "{\"a\":-", "-",  "1e",   ",,,,",   "::"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const size_t n = strlen(texts[i]);
    char *exact = malloc(n + 1); /* a sanitizer sees what is read behind it */
    memcpy(exact + 1, texts[i], n);
    assert_true(hn_json_need(exact + 1, n) >= 64u << 10);
    free(exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(enough_is_foreseen),
      cmocka_unit_test(names_are_not_tokens),
      cmocka_unit_test(any_text_is_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
