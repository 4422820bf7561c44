/* What else the tables of commands and options give: man pages, completion for shells, the page of the docs.
 */
#ifndef HONE_CLI_MANUAL_H
#define HONE_CLI_MANUAL_H

#include "cli/options/options.h"

#include <stdio.h>

/* hone-bench(1), or hone(1) where command is NULL. */
void cli_man_page(FILE *out, const cli_command *command);
/* hone.1, hone-bench.1 and so on. */
hone_status cli_man_folder(const char *folder, hone_error *error);
void cli_complete_bash(FILE *out);
void cli_complete_zsh(FILE *out);
void cli_complete_fish(FILE *out);
/* docs/reference/options.md */
void cli_options_page(void);

#endif
