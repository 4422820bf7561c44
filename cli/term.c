/* Talking to people and programs: errors, colours, progress, JSON. */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool progress_shown;

int cli_report(const hone_error *error) {
  char line[1400];
  hone_error_format(error, line, sizeof line);
  cli_progress_end();
  bool red = cli_colors(stderr);
  fprintf(stderr, "%shone: error:%s %s\n", red ? "\033[31m" : "", red ? "\033[0m" : "", line);
  return hone_status_exit_code(error->status);
}

int cli_error(hone_status status, const char *format, ...) {
  hone_error e = {.status = status};
  va_list ap;
  va_start(ap, format);
  vsnprintf(e.what, sizeof e.what, format, ap);
  va_end(ap);
  return cli_report(&e);
}

void cli_note(const char *format, ...) {
  cli_progress_end();
  va_list ap;
  va_start(ap, format);
  fputs("hone: ", stderr);
  vfprintf(stderr, format, ap);
  fputc('\n', stderr);
  va_end(ap);
}

bool cli_colors(FILE *stream) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return !(no && *no) && !(term && strcmp(term, "dumb") == 0) && isatty(fileno(stream));
}

bool cli_unicode(void) {
  static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return true;
  /* A locale that is asked for but not installed, as in most containers: its name still says what the
   * terminal shows. */
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = getenv(variables[i]), *set = value ? strchr(value, '.') : NULL;
    if (value && *value)
      return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
  }
  return false;
}

int cli_columns(void) {
  struct winsize w;
  return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col
                                                                                              : 100;
}

void cli_progress(const char *what, uint64_t done, uint64_t total) {
  static double last;
  if (!isatty(STDERR_FILENO)) return;
  double now = cli_now_ms();
  if (progress_shown && done < total && now - last < 100) return;
  last = now;
  progress_shown = true;
  enum { WIDTH = 30 };
  int filled = (int)(done * WIDTH / total);
  if (!total) {
    fprintf(stderr, "\r\033[K%s ...", what);
    fflush(stderr);
    return;
  }
  fprintf(stderr, "\r\033[K%-24s [%.*s%*s] %llu/%llu", what, filled, "##############################",
          WIDTH - filled, "", (unsigned long long)done, (unsigned long long)total);
  fflush(stderr);
}

void cli_progress_wipe(void) {
  if (progress_shown && write(STDERR_FILENO, "\r\033[K", 4) < 0) progress_shown = false;
}

void cli_progress_end(void) {
  if (!progress_shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress_shown = false;
}

int cli_flush(void) {
  bool failed = ferror(stdout) != 0;
  if (fflush(stdout) != 0) failed = true;
  if (failed && errno == EPIPE)
    return hone_status_exit_code(HONE_ERROR_IO); /* the reader has had enough: head */
  return failed ? cli_error(HONE_ERROR_IO, "cannot write to standard output: %s", strerror(errno)) : 0;
}

int cli_print_json(json_t *document) {
  if (!document) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  cli_progress_end();
  char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  json_decref(document);
  if (!text) return cli_error(HONE_ERROR_INTERNAL, "this cannot be said in JSON");
  puts(text);
  free(text);
  return cli_flush();
}

json_t *cli_real(double v) { return isfinite(v) ? json_real(v) : json_null(); }

const char *cli_si(double v, char buf[16]) {
  static const char prefix[] = " kMGTP";
  int i = 0;
  while (fabs(v) >= 1000 && i < 5) v /= 1000, i++;
  int digits = fabs(v) >= 100 || (i == 0 && v == floor(v)) ? 0 : fabs(v) >= 10 ? 1 : 2;
  snprintf(buf, 16, "%.*f %.*s", digits, v, i ? 1 : 0, prefix + i);
  return buf;
}

const char *cli_mib(double bytes, char buf[24]) {
  snprintf(buf, 24, bytes >= 1048576 * 10 ? "%.1f MiB" : "%.2f MiB", bytes / 1048576);
  return buf;
}
