/* --quiet-wait. */
#ifndef HONE_CLI_QUIET_H
#define HONE_CLI_QUIET_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* --quiet-wait: waits until others take less than a tenth of the processors, at most so many seconds in the
 * whole command, and says what it saw. HONE_ERROR_CANCELLED: Ctrl-C. */
hone_status cli_quiet_wait(const cli_args *args, hone_error *error);

#endif
