/* Names in a column of a table: as wide as they are, or cut in the middle, because they tend to differ at
 * both ends. */
#ifndef HONE_CLI_NAMES_H
#define HONE_CLI_NAMES_H

#include <stddef.h>

enum { CLI_NAME_ROOM = 1024 };

/* Grows *width to that of a name, in characters. */
void cli_name_widen(int *width, const char *name);
/* The width of the column whose longest name has `longest` characters: all of it where standard output is no
 * terminal, else as much as fits beside `others` columns, 28 at least. */
int cli_name_width(int longest, int others);
/* The name in exactly `width` characters: with blanks behind it, or "/model/l...q_proj/MatMul". */
const char *cli_name_cell(const char *name, int width, char buf[CLI_NAME_ROOM]);
/* The same without blanks. */
const char *cli_name_cut(const char *name, int width, char buf[CLI_NAME_ROOM]);

#endif
