/* The machine's measured peaks: once a process, and for the records of runs. */
#include "cli/options/roofs.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>
#include <string.h>

hone_peaks *cli_peaks(void) {
  static hone_peaks
      peaks; /* a busy machine's are not cached: all records of one process shall speak of the same */
  return &peaks;
}

hone_status cli_roofs(uint32_t threads, bool again, double max_seconds, hone_roofs *out, hone_error *error) {
  const hone_status status =
      hone_peaks_find(cli_peaks(), NULL, threads, again, max_seconds, cli_watch(), error);
  cli_progress_end();
  if (status == HONE_OK) *out = cli_peaks()->cpu;
  return status;
}

hone_status cli_device_roofs(const char *device, bool again, double max_seconds, hone_device_roofs *out,
                             hone_error *error) {
  const hone_status status = hone_peaks_find(cli_peaks(), device, 0, again, max_seconds, cli_watch(), error);
  cli_progress_end();
  if (status == HONE_OK) *out = cli_peaks()->device;
  return status;
}

bool cli_note_busy(const hone_roofs *r) {
  if (r->quiet || !r->windows) return false;
  cli_note(
      "others were busy in all windows in which the peaks were measured (%.0f %% of the processors in the "
      "quietest): they may be too low, and are not kept",
      100 * r->others);
  return true;
}
