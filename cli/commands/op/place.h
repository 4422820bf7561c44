/* Where in a JSON text a value stands. */
#ifndef HONE_CLI_OP_PLACE_H
#define HONE_CLI_OP_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* Line and column (from 1) of what `path` names: "[0].input_desc[1].type". The text is JSON. False: there is
 * no such value; then the place of the last one on the way. */
bool op_place(const char *text, const char *path, int *line, int *column);
/* The same for character `index` (from 0) of the text that `path` names. */
bool op_place_within(const char *text, const char *path, size_t index, int *line, int *column);

#endif
