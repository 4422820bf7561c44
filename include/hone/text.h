/* Names out of models and profiles for people. Whoever shows them passes them through here first: a name may
 * hold what drives a terminal, forges a line or turns the direction of writing. */
#ifndef HONE_TEXT_H
#define HONE_TEXT_H

#include <hone/status.h>
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes text of any bytes as UTF-8 without control characters: C0, DEL, C1, marks of direction, characters
 * that cannot be seen, and bytes that are no UTF-8 become "\x1b" or "\u202e". What holds none of them stays
 * as it is. buf is always terminated and never ends within a character; returns the length that was needed. A
 * text of NULL counts as "". */
HONE_API size_t hone_text_escape(const char *text, char *buf, size_t size);

/* Writes text as one word of a POSIX shell: as it is, or in single quotes when it holds spaces, quotes, `$`,
 * `;` or another character that a shell obeys. buf is always terminated; returns the length that was needed:
 * of a word that did not fit, nothing is pasteable. A text of NULL counts as "". */
HONE_API size_t hone_text_shell(const char *text, char *buf, size_t size);

/* vprintf into a new text (free with hone_text_free) in which the arguments of %s and %c are escaped as above
 * and the format, which must be the caller's own, is not. A width of %s counts characters, its precision
 * the bytes of the argument that are read. NULL when there is no memory, or no format. */
HONE_API char *hone_text_format(const char *format, va_list arguments);
HONE_API void hone_text_free(char *text); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
