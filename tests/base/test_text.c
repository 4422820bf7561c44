/* Names that anybody wrote, shown to people. */
#include "base/error.h"
#include "base/text.h"

#include <hone/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void same(const char *text, const char *want) {
  char buf[256];
  assert_int_equal(hone_text_escape(text, buf, sizeof buf), strlen(want));
  assert_string_equal(buf, want);
  char again[256];
  hone_text_escape(buf, again, sizeof again);
  assert_string_equal(again, want);
}

static void hidden_characters_are_written_out(void **state) {
  (void)state;
  same("conv1/Relu:0", "conv1/Relu:0");
  same("中文 é € 😀 C:\\x", "中文 é € 😀 C:\\x");
  same("a\033[31m\033]8;;http://x\a", "a\\x1b[31m\\x1b]8;;http://x\\x07");
  same("a\nb\r\t\x7f", "a\\x0ab\\x0d\\x09\\x7f");
  same("\xc2\x9b"
       "31m\xc2\x80",
       "\\u009b31m\\u0080");
  same("\x9b"
       "31m",
       "\\x9b31m"); /* C1 as one byte is no UTF-8 */
  same("\u202eevil\u2066x\u2069\u200f\u2028\ufeff", "\\u202eevil\\u2066x\\u2069\\u200f\\u2028\\ufeff");
  same("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe4\xb8",
       "\\xc0\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xe4\\xb8");
  same("", "");
  same(NULL, "");
}

static void short_buffers_end_between_characters(void **state) {
  (void)state;
  char buf[6];
  assert_int_equal(hone_text_escape("ab中文", buf, sizeof buf), 8);
  assert_string_equal(buf, "ab中");
  assert_int_equal(hone_text_escape("a中文", buf, sizeof buf), 7);
  assert_string_equal(buf, "a中");
  assert_int_equal(hone_text_escape("abc", NULL, 0), 3);
}

static void formats(const char *want, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void formats(const char *want, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  char *got = hone_text_format(format, ap);
  va_end(ap);
  assert_non_null(got);
  assert_string_equal(got, want);
  hone_text_free(got);
}

/* What printf does, for arguments that hold nothing to hide. */
#define LIKE_PRINTF(...)                                                                                     \
  do {                                                                                                       \
    char want_[256];                                                                                         \
    snprintf(want_, sizeof want_, __VA_ARGS__);                                                              \
    formats(want_, __VA_ARGS__);                                                                             \
  } while (0)

static void formats_are_printf(void **state) {
  (void)state;
  LIKE_PRINTF("%s|%10s|%-10s|%.3s|%-8.2s|%*s|%-*s|%.*s", "abc", "abc", "abc", "abcdef", "abcdef", 5, "x", 5,
              "x", 2, "xyz");
  LIKE_PRINTF("%d %5d %-5d| %05d %+d %.3d %*d %i", 1, 2, 3, 4, 5, 6, 7, 8, -9);
  LIKE_PRINTF("%u %lu %llu %zu %x %X %#x %o %ld %lld %jd %td", 1u, 2ul, 3ull, (size_t)4, 255u, 255u, 255u, 8u,
              -5l, -6ll, (intmax_t)-7, (ptrdiff_t)-8);
  LIKE_PRINTF("%hhu %hd", (unsigned char)200, (short)-3);
  LIKE_PRINTF("%f %.2f %10.3f %-10.1f| %e %g %.3g %+.2f %08.2f %a %Lg", 1.5, 2.345, 3.14159, 4.25, 5e10, 6e-5,
              7.77777, 8.0, -9.5, 1.0, (long double)2.5);
  LIKE_PRINTF("%c%3c%-3c| 100 %% \n", 'a', 'b', 'c');
  LIKE_PRINTF("%p", (void *)&state);
  LIKE_PRINTF("%.*f %*.*f", 2, 1.239, 10, 1, 2.5);
  LIKE_PRINTF("%*d|%.*d", -6, 5, -1, 5);
}

static void only_arguments_are_escaped(void **state) {
  (void)state;
  formats("a\n\\x0ab\033[0m", "a\n%s\033[0m", "\nb");
  formats("\\x1b", "%c", '\033');
  formats("  \\x1b|\\x1b  |", "%6s|%-6s|", "\033", "\033");
  formats("   中|中   |", "%4s|%-4s|", "中", "中");
  formats("中", "%.4s", "中文"); /* a precision counts bytes, and leaves no half character */
}

static void errors_are_one_harmless_line(void **state) {
  (void)state;
  hone_error e = {0};
  char line[2048], small[12];
  hn_fail(&e, HONE_ERROR_INPUT, "node 'a\033]0;x\a\nhone: error: forged'");
  hn_error_where(&e, "\u202em.onnx");
  hone_error_format(&e, line, sizeof line);
  assert_string_equal(line, "\\u202em.onnx: node 'a\\x1b]0;x\\x07 hone: error: forged'");
  assert_int_equal(hone_error_format(&e, NULL, 0), strlen(line));
  assert_int_equal(hone_error_format(&e, small, sizeof small), strlen(line));
  assert_int_equal(strlen(small), sizeof small - 1);
  /* A text that did not fit is cut between characters. */
  memset(e.what, 'x', sizeof e.what);
  memcpy(e.what + sizeof e.what - 3, "\xe4\xb8", 3);
  e.where[0] = 0;
  hone_error_format(&e, line, sizeof line);
  assert_null(strchr(line, '\\'));
}

static void word(const char *text, const char *want) {
  char buf[64];
  assert_int_equal(hone_text_shell(text, buf, sizeof buf), strlen(want));
  assert_string_equal(buf, want);
  assert_int_equal(hone_text_shell(text, NULL, 0), strlen(want));
  /* a shell takes it for what it was */
  char command[200], got[64] = "";
  snprintf(command, sizeof command, "printf '%%s' %s", want);
  FILE *p = popen(command, "r");
  assert_non_null(p);
  got[fread(got, 1, sizeof got - 1, p)] = 0;
  assert_int_equal(pclose(p), 0);
  assert_string_equal(got, text);
}

static void words_of_a_shell_are_quoted(void **state) {
  (void)state;
  word("conv1/Relu:0", "conv1/Relu:0");
  word("", "''");
  word("a b", "'a b'");
  word("$(id);`id`\"\\", "'$(id);`id`\"\\'");
  word("it's", "'it'\\''s'");
  word("~a", "'~a'");
  word("a\nb", "'a\nb'");
  char small[4];
  assert_int_equal(hone_text_shell("a b", small, sizeof small), 5);
  assert_string_equal(small, "'a ");
  assert_int_equal(hone_text_shell(NULL, small, sizeof small), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hidden_characters_are_written_out),    cmocka_unit_test(words_of_a_shell_are_quoted),
      cmocka_unit_test(short_buffers_end_between_characters), cmocka_unit_test(formats_are_printf),
      cmocka_unit_test(only_arguments_are_escaped),           cmocka_unit_test(errors_are_one_harmless_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
