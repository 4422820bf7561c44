/* Lines for a terminal: broken between words, below the text that they go on with, never within a command's
 * quotes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/terminal/wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void expect(const char *line, int width, const char *want) {
  char *got = cli_wrap(line, width);
  if (want)
    assert_string_equal(got ? got : "(as it is)", want);
  else
    assert_null(got);
  free(got);
}

static void lines(void **state) {
  (void)state;
  expect("short", 40, NULL);
  expect("exactly this wide, and no wider at all..", 40, NULL);
  expect("a sentence that is somewhat longer than forty columns are", 40,
         "a sentence that is somewhat longer than\n  forty columns are");
  expect("  -o, --output FILE   where to write it, which may be long", 40,
         "  -o, --output FILE   where to write it,\n    which may be long");
  expect("  -o FILE   where to write it, which may be long", 40,
         "  -o FILE   where to write it, which may\n            be long");
  /* No part ends with spaces, also where they would fit. */
  expect("out/: report.html trace.json optimized.onnx   (12.3 s)", 44,
         "out/: report.html trace.json optimized.onnx\n  (12.3 s)");
  expect("0123456789 0123456789   x", 22, "0123456789 0123456789\n  x");
  /* Colours have no width and stay. */
  expect("\033[1m0123456789\033[0m 0123456789 0123456789", 32, NULL);
  expect("\033[1m0123456789\033[0m 0123456789 0123456789 x", 32,
         "\033[1m0123456789\033[0m 0123456789 0123456789\n  x");
  /* Characters of two columns may be parted anywhere, those of one at spaces. */
  expect("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
         "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad",
         20,
         "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
         "\xe4\xb8\xad\xe4\xb8\xad\n  \xe4\xb8\xad");
  /* What cannot be parted stays whole. */
  expect("0123456789012345678901234567890", 20, "0123456789012345678901234567890");
  expect("a 0123456789012345678901234567890 b", 20, "a\n  0123456789012345678901234567890\n  b");
  expect("progress \r of forty columns and somewhat more than that", 20, NULL);
}

/* A command that was broken is still that command. */
static void commands(void **state) {
  (void)state;
  expect("     $ hone optimize /some/where/model.onnx -o optimized.onnx", 40,
         "     $ hone optimize \\\n         /some/where/model.onnx -o \\\n         optimized.onnx");
  expect("$ printf '%s|' 'one and two' three four five", 30,
         "$ printf '%s|' 'one and two' \\\n    three four five");
  const char *line = "printf '%s|' 'one and two' three \"four  five\" six seven eight nine";
  for (int width = 20; width < 70; width++) {
    char prompt[200], *wrapped, text[200] = "";
    snprintf(prompt, sizeof prompt, "$ %s", line);
    wrapped = cli_wrap(prompt, width);
    FILE *shell = popen(wrapped ? wrapped + 2 : line, "r");
    assert_non_null(shell);
    assert_non_null(fgets(text, sizeof text, shell));
    assert_int_equal(pclose(shell), 0);
    assert_string_equal(text, "one and two|three|four  five|six|seven|eight|nine|");
    free(wrapped);
  }
}

/* Any line at any width: nothing but spaces is lost. */
static void nothing_is_lost(void **state) {
  (void)state;
  uint32_t random = 7;
  for (int round = 0; round < 3000; round++) {
    static const char *const words[] = {
        "a",        "bb",       "  ",       " ",  "\xe4\xb8\xad", "\033[32m",
        "\xc3\xa9", "--option", "'q uote'", "$ ", "\xff",         "long-long-long-word"};
    char line[400] = "";
    for (int k = 0; k < 16; k++) {
      random = random * 1664525u + 1013904223u;
      strcat(line, words[(random >> 16) % (sizeof words / sizeof *words)]);
      if (random >> 30) strcat(line, " ");
    }
    char *wrapped = cli_wrap(line, 20 + (int)(random >> 8) % 40);
    const char *start = line + strspn(line, " ");
    while (strncmp(start, "\033[32m", 5) == 0) start += 5 + strspn(start + 5, " ");
    const bool command = strncmp(start, "$ ", 2) == 0;
    const char *a = line, *b = wrapped ? wrapped : line;
    while (*a || *b) {
      while (*a == ' ') a++;
      while (*b == ' ' || *b == '\n' || (command && *b == '\\' && b[1] == '\n')) b++;
      if (*a != *b) fail_msg("'%s' became '%s'", line, wrapped);
      if (*a) a++, b++;
    }
    free(wrapped);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(commands),
                                     cmocka_unit_test(nothing_is_lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
