/* The machine's peaks. */
#ifndef HONE_CLI_ROOFS_H
#define HONE_CLI_ROOFS_H

#include <hone/hone.h>

/* Those of this process, for records. */
hone_peaks *cli_peaks(void);
/* Measured once a process, or read from the cache; `again` measures in any case. max_seconds 0: as long as it
 * usually takes. Ctrl-C ends it: HONE_ERROR_CANCELLED. */
hone_status cli_roofs(uint32_t threads, bool again, double max_seconds, hone_roofs *out, hone_error *error);
hone_status cli_device_roofs(const char *device, bool again, double max_seconds, hone_device_roofs *out,
                             hone_error *error);
/* Says so when the machine was busy while its peaks were measured, and returns whether it was. */
bool cli_note_busy(const hone_roofs *roofs);

#endif
