/* --quiet-wait: other processes come and go; figures that are taken beside them say less. */
#include "cli/options/quiet.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>

hone_status cli_quiet_wait(const cli_args *args, hone_error *error) {
  static double waited; /* by the whole command */
  hone_quiet q;
  if (args->quiet_wait <= waited) return HONE_OK;
  const hone_status status = hone_quiet_wait(args->quiet_wait - waited, cli_watch(), &q, error);
  waited += q.seconds;
  cli_progress_end();
  if (status != HONE_OK) return status;
  if (!q.known)
    cli_note("--quiet-wait: the system does not tell what other processes do: going on");
  else if (!q.quiet)
    cli_note("others still take %.0f %% of the processors after %.0f s: going on beside them", 100 * q.others,
             waited);
  else
    cli_note("waited %.1f s: others take %.0f %% of the processors", waited, 100 * q.others);
  return HONE_OK;
}
