/* What the tables say of an option's value, for shells. */
#ifndef HONE_CLI_MANUAL_WORDS_H
#define HONE_CLI_MANUAL_WORDS_H

#include "cli/options/options.h"

#include <stdio.h>

/* The words that it may be ("nchw nhwc"), with blanks between them; how many. "DIR|FILE.npz|random" has one.
 */
size_t cli_value_words(const cli_option *option, char *buf, size_t size);
bool cli_value_is_file(const cli_option *option);
/* The command takes a model, a file or a folder. */
bool cli_takes_files(const cli_command *command);
bool cli_takes_model(const cli_command *command);
/* Calls `each` for the options of a command and for those of every command. */
void cli_each_option(const cli_command *command, void (*each)(void *user, const cli_option *option),
                     void *user);
/* Writes text with a backslash before each character of `special`; a "'" becomes what ends and starts quotes
 * again. */
void cli_put_quoted(FILE *out, const char *text, const char *special);
/* The verb of "op new". */
const char *cli_verb_name(const cli_command *command);

#endif
