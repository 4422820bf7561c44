/* Which options of hone quantize go together. */
#ifndef HONE_CLI_QUANTIZING_H
#define HONE_CLI_QUANTIZING_H

#include "cli/options/options.h"

/* HONE_ERROR_USAGE for an option that means nothing beside the others, by name: it is not ignored. options:
 * the command's own. *mixed: a budget is asked for (--max-drop). */
hone_status cli_quantizing_check(const cli_args *args, const cli_option *options, bool *mixed,
                                 hone_error *error);

#endif
