/* Custom operators of --op-path, HONE_OP_PATH and the user's folder. */
#ifndef HONE_CLI_PLUGINS_H
#define HONE_CLI_PLUGINS_H

#include "cli/options/options.h"

/* Loads them before a command runs; those that are refused are told on standard error, and the rest goes on.
 * Returns an exit code: what the command line or HONE_OP_PATH names must be there. A folder of --op-path must
 * hold a built operator, unless it may be empty. */
int cli_load_plugins(const cli_args *args, bool may_be_empty);

/* An argument that is the folder of an operator (NAME/NAME.json) stands for the operator, and the folder for
 * --op-path: what was just built is what `hone op test NAME` is about. The argument is cut to the name.
 * Returns an exit code. */
int cli_plugin_folders(cli_args *args);

#endif
