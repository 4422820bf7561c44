/* hone quantize --max-drop: mixed precision under two budgets. */
#ifndef HONE_CLI_MIXED_H
#define HONE_CLI_MIXED_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Searches, writes the result where there is one, and says what was found. The exit code: 1 where there is
 * none. */
int cli_mixed(const cli_args *args, hone_model *model, const hone_quantize_options *quantize);
#endif
