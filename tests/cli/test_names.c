/* Names in a column: whole where there is room, else cut in the middle, between characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/terminal/names.h"
#include "cli/terminal/term.h"

#include <string.h>

int cli_columns(void) { return 100; }

static void cuts(void **state) {
  (void)state;
  char buf[CLI_NAME_ROOM];
  assert_string_equal(cli_name_cut("short", 28, buf), "short");
  assert_string_equal(cli_name_cut("exactly", 7, buf), "exactly");
  assert_string_equal(cli_name_cut("/model/layers.10/self_attn/q_proj/MatMul", 28, buf),
                      "/model/l...ttn/q_proj/MatMul");
  assert_string_equal(cli_name_cut("abcdefghij", 3, buf), "abc"); /* no room for dots */
  assert_string_equal(cli_name_cut("", 28, buf), "");
}

static void cells(void **state) {
  (void)state;
  char buf[CLI_NAME_ROOM];
  assert_string_equal(cli_name_cell("conv", 6, buf), "conv  ");
  assert_string_equal(cli_name_cell("0123456789", 8, buf), "0...6789");
  /* Characters, not bytes. */
  assert_string_equal(cli_name_cell("\xc3\xa9\xc3\xa9", 4, buf), "\xc3\xa9\xc3\xa9  ");
  assert_string_equal(cli_name_cell("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 6, buf),
                      "\xc3\xa9...\xc3\xa9\xc3\xa9");
  /* What is no UTF-8 and what is longer than any column end within the buffer. */
  assert_string_equal(cli_name_cut("\x80\x80\x80", 2, buf), "\x80\x80\x80");
  char wide[4000];
  memset(wide, 'x', sizeof wide - 1);
  wide[sizeof wide - 1] = '\0';
  assert_int_equal(strlen(cli_name_cell(wide, 240, buf)), 240);
  assert_int_equal(strlen(cli_name_cell(wide, 5000, buf)), CLI_NAME_ROOM - 1);
}

static void widths(void **state) {
  (void)state;
  int width = 0;
  cli_name_widen(&width, "layer");
  cli_name_widen(&width, "a");
  assert_int_equal(width, 5);
  cli_name_widen(&width, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
  assert_int_equal(width, 6);
  assert_int_equal(cli_name_width(6, 80), 6);
  assert_true(cli_name_width(60, 80) == 60 || cli_name_width(60, 80) == 28); /* a terminal or none */
  assert_true(cli_name_width(1000, 10) <= 240);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cuts), cmocka_unit_test(cells),
                                     cmocka_unit_test(widths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
