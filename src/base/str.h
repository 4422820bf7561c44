/* Growing text buffer. */
#ifndef HN_BASE_STR_H
#define HN_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Are they the same text? Names that are asked for in lists mostly differ in their first letter, and those
 * that do not are often one and the same. */
static inline bool hn_same_name(const char *a, const char *b) {
  return a == b || (*a == *b && (!*a || strcmp(a, b) == 0));
}

/* As much of a text as there is room for; NULL: none. The rest of the room stays as it is. */
static inline void hn_copy_text(char *to, size_t size, const char *from) {
  const size_t n = from ? strnlen(from, size - 1) : 0;
  if (n) memcpy(to, from, n);
  to[n] = 0;
}

/* A zeroed hn_str is empty and ready. ptr is NUL-terminated once something was appended. After a failed
 * allocation `failed` is set, appends do nothing and the text so far stays valid. */
typedef struct hn_str {
  char *ptr;
  size_t len, cap;
  bool failed;
} hn_str;

void hn_str_append(hn_str *s, const char *text, size_t len);
void hn_str_puts(hn_str *s, const char *text);
void hn_str_putc(hn_str *s, char c);
void hn_str_printf(hn_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hn_str_clear(hn_str *s);
void hn_str_free(hn_str *s);

#endif
