/* Talking to people and programs: errors, colours, progress, JSON. */
#include "cli/terminal/term.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/wrap.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool progress_shown;
static bool lost; /* text for which there was no memory */

/* ---- the one way to a stream: arguments may come from anybody's files, formats and cli_put are hone's own
 */

/* Lines for a terminal are kept until they are whole, and broken where they are wider than it. */
typedef struct line {
  char *text;
  size_t length, capacity;
} line;

static line *line_of(FILE *stream) {
  static line lines[2];
  static signed char terminal[2]; /* 0: not yet asked, which costs errno */
  if (stream != stdout && stream != stderr) return NULL;
  const int which = stream == stderr;
  if (!terminal[which]) terminal[which] = isatty(fileno(stream)) ? 1 : -1;
  return terminal[which] > 0 ? &lines[which] : NULL;
}

static int width_of(FILE *stream) {
  struct winsize w;
  return ioctl(fileno(stream), TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

/* What is kept, as it is: the line is not yet whole, but something else comes now. */
static void release(FILE *stream) {
  line *l = line_of(stream);
  if (!l || !l->length) return;
  char *parts = cli_wrap(l->text, width_of(stream));
  fputs(parts ? parts : l->text, stream);
  free(parts);
  l->length = 0;
}

static void release_all(void) {
  release(stdout);
  release(stderr);
  free(line_of(stdout) ? line_of(stdout)->text : NULL);
  free(line_of(stderr) ? line_of(stderr)->text : NULL);
}

static bool keep(line *l, const char *text, size_t n) {
  static bool at_exit;
  if (!at_exit) at_exit = atexit(release_all) == 0;
  if (l->length + n + 1 > l->capacity) {
    const size_t capacity = 2 * (l->length + n + 1);
    char *grown = at_exit ? realloc(l->text, capacity) : NULL;
    if (!grown) return false;
    l->text = grown, l->capacity = capacity;
  }
  memcpy(l->text + l->length, text, n);
  l->length += n;
  l->text[l->length] = 0;
  return true;
}

static void emit(FILE *stream, const char *text) {
  line *l = line_of(stream);
  if (!l || strchr(text, '\r')) { /* progress moves within its line */
    release(stream);
    fputs(text, stream);
    return;
  }
  while (*text) {
    const size_t n = strcspn(text, "\n");
    if (!keep(l, text, n)) { /* no memory: as it comes */
      release(stream);
      fwrite(text, 1, n, stream);
    }
    text += n;
    if (*text) {
      release(stream);
      fputc(*text++, stream);
    }
  }
}

void cli_put(FILE *stream, const char *own) { emit(stream, own); }

static int print(FILE *stream, const char *format, va_list ap) {
  char *text = hone_text_format(format, ap);
  const int n = text ? (int)strlen(text) : 0;
  if (text)
    emit(stream, text);
  else
    lost = true;
  hone_text_free(text);
  return n;
}

int cli_print(const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  const int n = print(stdout, format, ap);
  va_end(ap);
  return n;
}

int cli_print_to(FILE *stream, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  const int n = print(stream, format, ap);
  va_end(ap);
  return n;
}

void cli_color(FILE *stream, cli_paint paint) {
  static const char *const codes[] = {"\033[0m", "\033[31m", "\033[32m", "\033[33m", "\033[1;31m"};
  if (cli_colors(stream)) cli_put(stream, codes[paint]);
}

int cli_end_interrupted(const char *kept) {
  cli_note(CLI_INTERRUPTED "%s%s", kept ? ": " : "", kept ? kept : "");
  return CLI_EXIT_INTERRUPTED;
}

int cli_report(const hone_error *error) {
  char line[2800];
  if (error->status == HONE_ERROR_CANCELLED && cli_interrupted()) return cli_end_interrupted(NULL);
  if (!error->what[0] && error->status == HONE_ERROR_IO) return hone_status_exit_code(error->status);
  hone_error_format(error, line, sizeof line);
  cli_progress_end();
  cli_color(stderr, CLI_RED);
  cli_put(stderr, "hone: error:");
  cli_color(stderr, CLI_PLAIN);
  cli_print_to(stderr, " %s\n", line);
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
  cli_put(stderr, "hone: ");
  print(stderr, format, ap);
  cli_put(stderr, "\n");
  va_end(ap);
}

bool cli_colors(FILE *stream) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return !(no && *no) && !(term && strcmp(term, "dumb") == 0) && isatty(fileno(stream));
}

/* Asked where it matters: to load a locale takes 50 us, a thirtieth of the command's start. */
static bool locale_is_utf8(void) {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  const bool utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
  if (locale) freelocale(locale);
  return utf8;
}

bool cli_unicode(void) {
  static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  if (locale_is_utf8()) return true;
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

/* A line that is written over needs a terminal that can wipe it. */
static bool can_wipe(void) {
  const char *term = getenv("TERM");
  return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void cli_progress(const char *what, uint64_t done, uint64_t total) {
  static double last;
  if (!can_wipe()) return;
  double now = cli_now_ms();
  if (progress_shown && (done < total || !total) && now - last < 100) return;
  if (total && done > total) done = total;
  last = now;
  progress_shown = true;
  enum { MOST_CELLS = 30 };
  if (!total) {
    const int wide = width_of(stderr);
    cli_print_to(stderr, "\r\033[K%.*s ...", wide > 5 ? wide - 5 : 200, what);
    fflush(stderr);
    return;
  }
  enum { NAME = 24, BESIDE = NAME + 4 + 1 }; /* name, brackets and spaces, and a free column at the end */
  char count[48];
  const int digits =
      snprintf(count, sizeof count, "%llu/%llu", (unsigned long long)done, (unsigned long long)total);
  const int width = width_of(stderr), room = width ? width - BESIDE - digits : MOST_CELLS;
  /* A line that is broken cannot be wiped. */
  const int cells = room > MOST_CELLS ? MOST_CELLS : room;
  const int filled = cells > 0 ? (int)(done * (uint64_t)cells / total) : 0;
  if (cells < 4)
    cli_print_to(stderr, "\r\033[K%.*s %s", width > digits + 2 ? width - digits - 2 : 0, what, count);
  else
    cli_print_to(stderr, "\r\033[K%-*s [%.*s%*s] %s", NAME, what, filled, "##############################",
                 cells - filled, "", count);
  fflush(stderr);
}

void cli_progress_line(const char *text) {
  if (!can_wipe()) return;
  progress_shown = true;
  cli_print_to(stderr, "\r\033[K%s", text);
  fflush(stderr);
}

void cli_progress_wipe(void) {
  if (progress_shown && write(STDERR_FILENO, "\r\033[K", 4) < 0) progress_shown = false;
}

void cli_progress_end(void) {
  if (!progress_shown) return;
  cli_put(stderr, "\r\033[K");
  fflush(stderr);
  progress_shown = false;
}

int cli_flush(void) {
  release(stdout);
  bool failed = ferror(stdout) != 0;
  if (fflush(stdout) != 0) failed = true;
  if (lost) return cli_error(HONE_ERROR_MEMORY, "out of memory for what is to be printed");
  if (failed && errno == EPIPE)
    return hone_status_exit_code(HONE_ERROR_IO); /* the reader has had enough: head */
  return failed ? cli_error(HONE_ERROR_IO, "cannot write to standard output: %s", strerror(errno)) : 0;
}

/* Jansson escapes C0 alone; what else a terminal may obey stands in strings only, where \u says the same. */
static char *json_text(json_t *document, size_t form, const char *end) {
  char *text = document ? json_dumps(document, form | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(document);
  const size_t n = text ? strlen(text) : 0;
  char *clean = text ? malloc(6 * n + 2) : NULL, *to = clean;
  for (const char *p = text; clean && *p;) {
    char shown[16], one[8] = "";
    size_t k = 1;
    while (((unsigned char)p[k] & 0xc0) == 0x80 && k < 4) k++;
    memcpy(one, p, k);
    /* "\x7f" is no JSON; everything else that is hidden is "\uXXXX" there, too. */
    if (*p != '\n' && (*p == 0x7f || k > 1) && hone_text_escape(one, shown, sizeof shown) != k &&
        strlen(shown) <= 6)
      to += sprintf(to, *p == 0x7f ? "\\u007f" : "%s", shown);
    else
      to = (char *)memcpy(to, p, k) + k;
    p += k;
  }
  if (clean) memcpy(to, end, strlen(end) + 1);
  free(text);
  return clean;
}

char *cli_json_text(json_t *document) { return json_text(document, JSON_INDENT(2), "\n"); }

bool cli_json_line(FILE *stream, json_t *document) {
  char *text = json_text(document, JSON_COMPACT, "\n");
  if (!text) errno = ENOMEM;
  if (stream == stdout) release(stdout);
  const bool good =
      text && fputs(text, stream) >= 0 && (stream != stdout || fflush(stdout) == 0) && !ferror(stream);
  free(text);
  return good;
}

int cli_print_json(json_t *document) {
  if (!document) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  cli_progress_end();
  char *text = cli_json_text(document);
  if (!text) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  release(stdout);
  fputs(text, stdout); /* as it is: a broken string is no JSON */
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

const char *cli_s(uint64_t n) { return n == 1 ? "" : "s"; }

const char *cli_bytes(double bytes, char buf[24]) {
  const double kib = bytes / 1024, mib = kib / 1024;
  if (bytes < 1024)
    snprintf(buf, 24, "%.0f B", bytes);
  else if (mib < 1)
    snprintf(buf, 24, kib >= 10 ? "%.1f KiB" : "%.2f KiB", kib);
  else
    snprintf(buf, 24, mib >= 10 ? "%.1f MiB" : "%.2f MiB", mib);
  return buf;
}
