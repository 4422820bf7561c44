/* Text of any bytes for people: names come out of files that anybody may have written, and what shows them (a
 * terminal, a spreadsheet, a page of a CI) obeys some bytes. Everything that is shown goes through here. */
#ifndef HN_BASE_TEXT_H
#define HN_BASE_TEXT_H

#include "base/str.h"

#include <stdarg.h>

/* The number that a hexadecimal digit means, -1: c is none. */
static inline int hn_text_hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* Bytes of the UTF-8 character at p, which ends with a NUL somewhere; 0: none begins here. */
size_t hn_text_character(const char *p);
/* True for what is not shown as it is: C0, DEL, C1, marks that turn the direction of writing or cannot be
 * seen, and bytes that are no UTF-8 (n is hn_text_character's). */
bool hn_text_is_hidden(const char *p, size_t n);
/* Appends `n` bytes of text; what is hidden becomes "\x1b" or "\u202e". Doing it twice changes nothing. */
void hn_text_escape(hn_str *o, const char *text, size_t n);
/* One character of it into `to`, *length bytes (at most 10); returns how many of the text's it took. For who
 * has no memory to ask for. */
size_t hn_text_step(const char *text, size_t size, char to[12], size_t *length);
/* The text as one word of a POSIX shell, quoted where it has to be; returns the length that was needed, as
 * snprintf does. */
size_t hn_text_shell(const char *text, char *buf, size_t size);
/* The same into buf, or `instead` where it does not fit: half a word is none. */
const char *hn_text_shell_short(const char *text, const char *instead, char *buf, size_t size);
/* n, less the half of a character at the end of n bytes that were cut off somewhere. */
size_t hn_text_whole(const char *text, size_t n);
/* printf whose %s and %c arguments are escaped; the format is trusted, with its newlines and all. A width
 * of %s counts characters, its precision the bytes that are looked at, without the half of a character. */
void hn_text_vformat(hn_str *o, const char *format, va_list ap);

#endif
