/* A text that grows: C that is generated, files that are filled in. It goes into a file, never to a terminal.
 */
#ifndef HONE_CLI_OP_TEXT_H
#define HONE_CLI_OP_TEXT_H

#include <hone/hone.h>

typedef struct op_text {
  char *ptr; /* NUL-terminated once something was put; free() it */
  size_t len, cap;
  bool failed; /* no memory: what was put since is lost */
} op_text;

void op_put(op_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void op_put_char(op_text *t, char c);
/* Writes the text as a file, whole or not at all, and frees it. */
hone_status op_text_save(op_text *t, const char *path, hone_error *error);

#endif
