/* hone quantize --max-drop: mixed precision under two budgets. */
#ifndef HONE_CLI_MIXED_H
#define HONE_CLI_MIXED_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Whether a budget is asked for; half of an option is an error. */
hone_status cli_mixed_asked(const cli_args *args, bool *asked, hone_error *error);
/* Searches, writes the result where there is one, and says what was found. The exit code: 1 where there is
 * none. */
int cli_mixed(const cli_args *args, hone_model *model, const hone_quantize_options *quantize);

#endif
