#include "base/str.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool reserve(hn_str *s, size_t more) {
  if (s->failed || more > SIZE_MAX / 4 - s->len) return !(s->failed = true);
  if (s->len + more + 1 <= s->cap) return true;
  size_t cap = s->cap ? s->cap : 128;
  while (cap < s->len + more + 1) cap *= 2;
  char *p = hn_realloc(s->ptr, cap);
  if (!p) return !(s->failed = true);
  s->ptr = p;
  s->cap = cap;
  return true;
}

void hn_str_append(hn_str *s, const char *text, size_t len) {
  if (!reserve(s, len)) return;
  if (len) memcpy(s->ptr + s->len, text, len);
  s->len += len;
  s->ptr[s->len] = 0;
}

void hn_str_puts(hn_str *s, const char *text) { hn_str_append(s, text, strlen(text)); }
void hn_str_putc(hn_str *s, char c) { hn_str_append(s, &c, 1); }

void hn_str_printf(hn_str *s, const char *format, ...) {
  va_list ap, again;
  va_start(ap, format);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, format, ap);
  va_end(ap);
  if (n >= 0 && reserve(s, (size_t)n)) {
    vsnprintf(s->ptr + s->len, (size_t)n + 1, format, again);
    s->len += (size_t)n;
  }
  va_end(again);
}

void hn_str_clear(hn_str *s) {
  s->len = 0;
  if (s->ptr) s->ptr[0] = 0;
}

void hn_str_free(hn_str *s) {
  hn_free(s->ptr);
  *s = (hn_str){0};
}
