#include "cli/command.h"

#include "temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

char folder[64];
char tiny[160];

int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-cli"))) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", tiny, "--width", "0.1", "--size", "32");
  int code = p.code;
  if (code) fprintf(stderr, "%s", p.err);
  process_free(&p);
  return code;
}

int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

void write_text(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

bool exists(const char *name) {
  char path[256];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return stat(path, &st) == 0;
}

void assert_no_leftovers(void) {
  char command[160];
  snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*.tmp*')\"", folder);
  assert_int_equal(system(command), 0);
}

void expect_error(process p, int code, const char *words) {
  const char *err = p.err, *busy = strstr(err, "while the peaks were measured");
  if (busy && busy < strchr(err, '\n')) err = strchr(err, '\n') + 1; /* true, and said before the error */
  if (p.code != code || strncmp(err, "hone: error: ", 13) != 0 || count_lines(err) != 1 ||
      !strstr(err, words))
    fail_msg("exit %d (wanted %d), '%s' (wanted '%s')", p.code, code, p.err, words);
  assert_string_equal(p.out, "");
  process_free(&p);
}

double number(const json_t *doc, const char *a, const char *b) {
  const json_t *v = json_object_get(doc, a);
  if (b) v = json_object_get(v, b);
  if (!json_is_number(v)) fail_msg("%s.%s is not a number", a, b ? b : "");
  return json_number_value(v);
}
