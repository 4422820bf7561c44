/* The slowest of many runs, as readers see them. */
#include "cli/reports/steady.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdarg.h>

enum { SHOWN = 5 };

static int put_part(char *buf, size_t size, int n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int put_part(char *buf, size_t size, int n, const char *format, ...) {
  if (n < 0 || (size_t)n >= size) return n;
  va_list ap;
  va_start(ap, format);
  const int k = vsnprintf(buf + n, size - (size_t)n, format, ap);
  va_end(ap);
  return k < 0 ? n : n + k;
}

/* Where and why, in a line. */
static void describe(const hone_slow_run *r, char *buf, size_t size) {
  int n = 0;
  buf[0] = 0;
  if (r->step)
    n = put_part(buf, size, n, "step '%s' took %.3f ms instead of %.3f", r->step, r->part_ms,
                 r->part_usual_ms);
  else if (r->pause_before)
    n = put_part(buf, size, n, "a pause of %.3f ms before '%s'", r->part_ms, r->pause_before);
  const hone_slow_cause cause = hone_slow_run_cause(r);
  const char *and = n ? "; " : "";
  switch (cause) {
  case HONE_SLOW_DISK:
    put_part(buf, size, n, "%s%u page%s read from disk", and, r->major_faults,
             r->major_faults == 1 ? " was" : "s were");
    break;
  case HONE_SLOW_SWITCHED:
    put_part(buf, size, n, "%sthe system gave the processor to somebody else %u time%s", and,
             r->involuntary_switches, r->involuntary_switches == 1 ? "" : "s");
    break;
  case HONE_SLOW_MAPPED:
    put_part(buf, size, n, "%s%u page%s mapped", and, r->minor_faults,
             r->minor_faults == 1 ? " was" : "s were");
    break;
  case HONE_SLOW_CLOCK:
    put_part(buf, size, n, "%sthe clock was at %.0f MHz, usually %.0f", and, r->clock_mhz,
             r->usual_clock_mhz);
    break;
  case HONE_SLOW_NEIGHBOURS:
    put_part(buf, size, n, "%sothers took %.0f %% of the processors around it", and, r->others_pct);
    break;
  case HONE_SLOW_UNSEEN:
    put_part(buf, size, n, "%s",
             n ? "; no counter explains it" : "spread over the whole run; no counter explains it");
    break;
  }
}

void slow_text(const hone_steady *w) {
  char line[512];
  for (size_t i = 0; i < w->n_slow && i < SHOWN; i++) {
    const hone_slow_run *r = &w->slow[i].run;
    describe(r, line, sizeof line);
    cli_print("  %-12sat %.2f s: %.3f ms, %.1f times the median: %s\n", i ? "" : "slowest", r->time_s,
              r->wall_ms, r->wall_ms / r->usual_ms, line);
  }
  if (w->n_slow > SHOWN)
    cli_print("  %-12s%zu%s more of over %.1f times the median\n", "", w->n_slow - SHOWN,
              w->n_slow == HONE_MOST_SLOW_RUNS ? " or" : "", HONE_SLOW_FACTOR);
}

json_t *slow_json(const hone_steady *w) {
  json_t *list = json_array();
  char line[512];
  for (size_t i = 0; i < w->n_slow; i++) {
    const hone_slow_run *r = &w->slow[i].run;
    describe(r, line, sizeof line);
    json_array_append_new(
        list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:s, s:o}", "time_s",
                        cli_real(r->time_s), "wall_ms", cli_real(r->wall_ms), "usual_ms",
                        cli_real(r->usual_ms), "step", cli_text(r->step), "pause_before",
                        cli_text(r->pause_before), "part_ms", cli_real(r->part_ms), "part_usual_ms",
                        cli_real(r->part_usual_ms), "involuntary_switches", (int)r->involuntary_switches,
                        "minor_faults", (int)r->minor_faults, "major_faults", (int)r->major_faults,
                        "clock_mhz", cli_real(r->clock_mhz), "others_pct", cli_real(r->others_pct), "cause",
                        hone_slow_cause_name(hone_slow_run_cause(r)), "explanation", cli_text(line)));
  }
  return list;
}
