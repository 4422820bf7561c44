/* Waiting until other processes leave the processors alone. */
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/os.h"

#include <math.h>

/* So long others have to be quiet, and in so many looks: one may fall between two of their jobs. */
enum { LOOKS = 2, NAPS = 5, NAP_MS = 100 };

static bool tell(const hone_watch *w, double seconds, double most) {
  return hn_watch_tell(w, "waiting for quiet", (uint32_t)seconds, most < 4e9 ? (uint32_t)most : UINT32_MAX);
}

/* Share of the processors that others took for half a second; NaN: the system does not tell. */
static double look(hone_system_sample *before, const hone_watch *w, double seconds, double most, bool *stop) {
  hone_system_sample now;
  for (int i = 0; i < NAPS && !*stop; i++) {
    hn_sleep_ms(NAP_MS);
    *stop = !tell(w, seconds, most);
  }
  hone_system_read(&now);
  const double room = (now.time_s - before->time_s) * now.processors;
  const double others = now.busy_seconds - before->busy_seconds - (now.own_seconds - before->own_seconds);
  *before = now;
  return room > 0 ? fmin(1, fmax(0, others / room)) : (double)NAN;
}

hone_status hone_quiet_wait(double max_seconds, const hone_watch *watch, hone_quiet *out, hone_error *error) {
  hone_system_sample last;
  int quiet = 0;
  bool stop = false;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_quiet_wait needs a place for the result");
  *out = (hone_quiet){.known = true, .others = 1};
  hone_system_read(&last);
  const double start = hn_watch_ms();
  while (quiet < LOOKS && out->known && !stop && out->seconds < max_seconds) {
    out->others = look(&last, watch, out->seconds, max_seconds, &stop);
    out->seconds = (hn_watch_ms() - start) / 1e3;
    out->known = !isnan(out->others);
    quiet = out->others <= HONE_ROOFS_QUIET ? quiet + 1 : 0;
  }
  out->quiet = quiet >= LOOKS;
  return stop ? hn_watch_stopped(error) : HONE_OK;
}
