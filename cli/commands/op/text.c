#include "cli/commands/op/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool room(op_text *t, size_t more) {
  if (t->failed) return false;
  if (t->len + more < t->cap) return true;
  const size_t cap = (t->len + more + 1) * 2;
  char *p = realloc(t->ptr, cap);
  if (!p) {
    t->failed = true;
    return false;
  }
  t->ptr = p;
  t->cap = cap;
  return true;
}

void op_put(op_text *t, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, args);
  if (n >= 0 && room(t, (size_t)n + 1)) {
    (void)vsnprintf(t->ptr + t->len, (size_t)n + 1, format, again);
    t->len += (size_t)n;
  }
  va_end(again);
  va_end(args);
}

void op_put_char(op_text *t, char c) {
  if (!room(t, 2)) return;
  t->ptr[t->len++] = c;
  t->ptr[t->len] = 0;
}

hone_status op_text_save(op_text *t, const char *path, hone_error *error) {
  hone_writer *w = NULL;
  hone_status status = t->failed ? HONE_ERROR_MEMORY : hone_writer_open(path, &w, error);
  if (t->failed && error) *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
  if (status == HONE_OK) status = hone_writer_sink(w, t->ptr ? t->ptr : "", t->len, error);
  if (status == HONE_OK)
    status = hone_writer_commit(w, error);
  else
    hone_writer_abandon(w);
  free(t->ptr);
  *t = (op_text){0};
  return status;
}
