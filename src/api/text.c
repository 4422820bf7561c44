/* Public text: the escapes of base. */
#include <hone/text.h>

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

size_t hone_text_escape(const char *text, char *buf, size_t size) {
  hn_str clean = {0};
  if (text) hn_text_escape(&clean, text, strlen(text));
  size_t n = clean.len;
  if (buf && size) {
    if (n >= size) n = size - 1;
    /* Not within a character. */
    while (n && n < clean.len && ((unsigned char)clean.ptr[n] & 0xc0) == 0x80) n--;
    if (n) memcpy(buf, clean.ptr, n);
    buf[n] = 0;
  }
  n = clean.len;
  hn_str_free(&clean);
  return n;
}

size_t hone_text_shell(const char *text, char *buf, size_t size) {
  return hn_text_shell(text ? text : "", buf, buf ? size : 0);
}

char *hone_text_format(const char *format, va_list arguments) {
  hn_str text = {0};
  if (!format) return NULL;
  hn_str_puts(&text, "");
  hn_text_vformat(&text, format, arguments);
  if (!text.failed) return text.ptr;
  hn_str_free(&text);
  return NULL;
}

void hone_text_free(char *text) { hn_free(text); }
