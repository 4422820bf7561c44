#include "base/error.h"

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

unsigned long hone_error_format(const hone_error *e, char *buf, unsigned long size) {
  int n = snprintf(buf, size, "%s%s%s%s%s%s%s%s%s%s", e->where, e->where[0] ? ": " : "", e->what,
                   e->expected[0] ? "; expected " : "", e->expected, e->got[0] ? ", got " : "", e->got,
                   e->hint[0] ? " (" : "", e->hint, e->hint[0] ? ")" : "");
  /* One line, whatever names a hostile file brings: control characters become spaces. */
  for (unsigned long i = 0; i < size && buf[i]; i++)
    if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f) buf[i] = ' ';
  return n < 0 ? 0 : (unsigned long)n;
}

bool hn_refuse(hone_reason *why, const char *fmt, ...) {
  if (!why) return false;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why->text, sizeof why->text, fmt, ap);
  va_end(ap);
  return false;
}
