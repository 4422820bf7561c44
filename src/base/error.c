#include "base/error.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int exit_code;
} statuses[] = {
    [HONE_OK] = {"ok", 0},
    [HONE_ERROR_USAGE] = {"usage", 2},
    [HONE_ERROR_INPUT] = {"bad input", 3},
    [HONE_ERROR_UNSUPPORTED] = {"unsupported", 3},
    [HONE_ERROR_MISSING] = {"missing", 4},
    [HONE_ERROR_IO] = {"input/output", 6},
    [HONE_ERROR_MEMORY] = {"out of memory", 6},
    [HONE_ERROR_BUDGET] = {"budget spent", 6},
    [HONE_ERROR_CANCELLED] = {"cancelled", 130},
    [HONE_ERROR_DEVICE] = {"device fault", 6},
    [HONE_ERROR_INTERNAL] = {"internal error", 6},
};

const char *hone_version(void) { return HONE_VERSION_STRING; }

const char *hone_status_name(hone_status status) {
  return (unsigned)status < sizeof statuses / sizeof *statuses ? statuses[status].name : "unknown status";
}

int hone_status_exit_code(hone_status status) {
  return (unsigned)status < sizeof statuses / sizeof *statuses ? statuses[status].exit_code : 6;
}

hone_status hn_fail(hone_error *error, hone_status status, const char *what, ...) {
  if (error) {
    memset(error, 0, sizeof *error);
    error->status = status;
    va_list ap;
    va_start(ap, what);
    vsnprintf(error->what, sizeof error->what, what, ap);
    va_end(ap);
  }
  return status;
}

hone_status hn_fail_memory(hone_error *error, unsigned long long bytes, const char *purpose) {
  return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate %llu bytes for %s", bytes, purpose);
}

hone_status hn_settle(hone_status status, uint64_t lost, hone_error *error) {
  if (hn_mem_lost() == lost || status == HONE_ERROR_MEMORY || status == HONE_ERROR_CANCELLED) return status;
  char where[sizeof error->where] = "";
  if (error && status != HONE_OK) memcpy(where, error->where, sizeof where);
  hn_fail(error, HONE_ERROR_MEMORY, "out of memory");
  hn_error_hint(error, "close other programs, or use a smaller batch or shape");
  if (error) memcpy(error->where, where, sizeof where);
  return HONE_ERROR_MEMORY;
}

void hn_error_where(hone_error *error, const char *format, ...) {
  if (!error) return;
  char old[sizeof error->where];
  memcpy(old, error->where, sizeof old);
  va_list ap;
  va_start(ap, format);
  vsnprintf(error->where, sizeof error->where, format, ap);
  va_end(ap);
  size_t n = strlen(error->where);
  size_t room = sizeof error->where - n;
  if (old[0] && room > 3) {
    size_t m = strnlen(old, room - 3);
    memcpy(error->where + n, ": ", 2);
    memcpy(error->where + n + 2, old, m);
    error->where[n + 2 + m] = 0;
  }
}

#define DEFINE_PART(part)                                                                                    \
  void hn_error_##part(hone_error *error, const char *format, ...) {                                         \
    if (!error) return;                                                                                      \
    va_list ap;                                                                                              \
    va_start(ap, format);                                                                                    \
    vsnprintf(error->part, sizeof error->part, format, ap);                                                  \
    va_end(ap);                                                                                              \
  }
DEFINE_PART(expected)
DEFINE_PART(got)
DEFINE_PART(hint)

/* A line that is put together without asking for memory, which may be what there is none of. */
typedef struct line {
  char *buf;
  unsigned long size, n; /* n: the length that is needed */
} line;

static void put(line *l, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (l->n++ + 1 < l->size) l->buf[l->n - 1] = text[i];
}

/* Own words, one part, own words; nothing where the part is empty. Whatever names a hostile file brings, it
 * stays one line: what divides words becomes a space, other control characters are written out. */
static void part(line *l, const char *before, const char *text, size_t size, const char *after) {
  char piece[12];
  size_t length;
  const size_t n = strnlen(text, size), end = n + 1 < size ? n : hn_text_whole(text, n);
  if (!n) return;
  put(l, before, strlen(before));
  for (size_t at = 0; at < end;) {
    const bool gap = strchr("\t\n\v\f\r", text[at]) != NULL;
    at += hn_text_step(text + at, end - at, piece, &length);
    put(l, gap ? " " : piece, gap ? 1 : length);
  }
  put(l, after, strlen(after));
}

unsigned long hone_error_format(const hone_error *e, char *buf, unsigned long size) {
  line l = {buf, buf ? size : 0, 0};
  if (e) {
    part(&l, "", e->where, sizeof e->where, ": ");
    part(&l, "", e->what, sizeof e->what, "");
    part(&l, "; expected ", e->expected, sizeof e->expected, "");
    part(&l, ", got ", e->got, sizeof e->got, "");
    part(&l, " (", e->hint, sizeof e->hint, ")");
  }
  if (l.size) buf[l.n < size ? l.n : hn_text_whole(buf, size - 1)] = 0;
  return l.n;
}

/* Names in it were cut after so many bytes: halves of characters go. */
static void keep_whole(char *text) {
  char *to = text;
  for (const char *at = text; *at;) {
    const size_t n = hn_text_character(at);
    memmove(to, at, n);
    to += n;
    at += n ? n : 1;
  }
  *to = 0;
}

bool hn_refuse(hone_reason *why, const char *fmt, ...) {
  if (!why) return false;
  const size_t plain = strcspn(fmt, "%");
  if (!fmt[plain]) { /* most reasons are words alone, and tactics refuse steps by the thousand */
    const size_t n = plain < sizeof why->text ? plain : sizeof why->text - 1;
    memcpy(why->text, fmt, n);
    why->text[n] = 0;
    return false;
  }
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why->text, sizeof why->text, fmt, ap);
  va_end(ap);
  keep_whole(why->text);
  return false;
}
