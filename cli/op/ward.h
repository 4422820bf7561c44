/* Cases run in a child process with a time limit: what crashes or hangs there is a failure with a name. */
#ifndef HONE_CLI_OP_WARD_H
#define HONE_CLI_OP_WARD_H

#include "cli/op/trial.h"

/* Cases first to last - 1. max_seconds: of one case. Errors: HONE_ERROR_MEMORY (no memory or no process),
 * HONE_ERROR_CANCELLED (Ctrl-C). */
hone_status op_ward_run(const op_job *job, uint32_t first, uint32_t last, double max_seconds, op_row *row,
                        hone_error *error);
/* Is there this device? A process of its own asks: CUDA does not live through fork(). */
hone_status op_ward_device(const char *device, hone_error *error);

#endif
