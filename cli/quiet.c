/* --quiet-wait: other processes come and go; figures that are taken beside them say less. */
#include "cli/cli.h"

#include <math.h>
#include <time.h>

/* So long others have to be quiet, and in so many looks: one may fall between two of their jobs. */
enum { LOOKS = 2, NAPS = 5, NAP_MS = 100 };

/* Share of the processors that others took for half a second; NaN: the system does not tell. */
static double look(hone_system_sample *before) {
  hone_system_sample now;
  for (int i = 0; i < NAPS && !cli_interrupted(); i++)
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
  hone_system_read(&now);
  const double room = (now.time_s - before->time_s) * now.processors;
  const double others = now.busy_seconds - before->busy_seconds - (now.own_seconds - before->own_seconds);
  *before = now;
  return room > 0 ? fmin(1, fmax(0, others / room)) : (double)NAN;
}

hone_status cli_quiet_wait(const cli_args *args, hone_error *error) {
  static double waited; /* by the whole command */
  hone_system_sample last;
  double others = 1;
  int quiet = 0;
  if (args->quiet_wait <= waited) return HONE_OK;
  hone_system_read(&last);
  while (quiet < LOOKS && waited < args->quiet_wait) {
    const double start = cli_now_ms();
    others = look(&last);
    waited += (cli_now_ms() - start) / 1e3;
    cli_progress("waiting for quiet", (uint64_t)waited, (uint64_t)args->quiet_wait);
    if (cli_interrupted()) {
      *error = (hone_error){.status = HONE_ERROR_CANCELLED};
      break;
    }
    if (isnan(others)) break;
    quiet = others <= HONE_ROOFS_QUIET ? quiet + 1 : 0;
  }
  cli_progress_end();
  if (error->status == HONE_ERROR_CANCELLED) return HONE_ERROR_CANCELLED;
  if (isnan(others))
    cli_note("--quiet-wait: the system does not tell what other processes do: going on");
  else if (quiet < LOOKS)
    cli_note("others still take %.0f %% of the processors after %.0f s: going on beside them", 100 * others,
             waited);
  else
    cli_note("waited %.1f s: others take %.0f %% of the processors", waited, 100 * others);
  return HONE_OK;
}
