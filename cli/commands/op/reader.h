/* What the parts of a definition are read with: what is wrong is told once, with its place. */
#ifndef HONE_CLI_OP_READER_H
#define HONE_CLI_OP_READER_H

#include "cli/commands/op/definition.h"
#include "cli/terminal/term.h"

#include <stdarg.h>

enum { OP_PATH = 200 };

typedef struct op_reader {
  op_definition *d;
  const char *text; /* of the file */
  hone_error *error;
  hone_status status;
} op_reader;

/* path: "[0].input_desc[1].type" (place.h). Only the first one counts. */
void op_wrong(op_reader *r, const char *path, const char *expected, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
void op_wrong_at(op_reader *r, int line, int column, const char *expected, const char *what, va_list args)
    __attribute__((format(printf, 5, 0)));
/* A string member; `otherwise` where it is absent, an error where that is NULL. */
const char *op_text_of(op_reader *r, const json_t *object, const char *path, const char *name,
                       const char *otherwise);
/* A copy among the definition's strings; "" without memory. */
const char *op_keep(op_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "pattern" of the definition, when its operands and attributes have been read. */
void op_read_patterns(op_reader *r, const json_t *root, const char *path);

#endif
