/* --input of hone pipeline: the files of a folder, of a list, of standard input, or one. */
#ifndef HONE_CLI_ITEMS_H
#define HONE_CLI_ITEMS_H

#include <hone/hone.h>
#include <stdio.h>

typedef struct cli_items {
  char **path; /* of a folder, sorted; or the only file */
  size_t n, at;
  FILE *list; /* standard input */
  char *text; /* of a list */
  size_t size;
  char *folder; /* that paths of the list are relative to; "" : the current one */
  char *line, *joined;
  size_t room;
} cli_items;

/* DIR: its pictures and arrays (by their endings, not of folders in it), in the order of their names. A
 * picture or array: that. Any other file: a list of paths, one a line, relative to its folder. "-": such a
 * list on standard input, relative to the current folder. */
hone_status cli_items_open(cli_items *items, const char *source, hone_error *error);
/* The next path, good until the next call; NULL: there is none. */
const char *cli_items_next(cli_items *items);
void cli_items_close(cli_items *items);

#endif
