/* Scenarios of measuring peaks. What comes out is a matter of the machine and of the time: the answer is what
 * does not change. */
#include "faults/scenarios.h"

#include "base/str.h"
#include "improve/roof_cache.h"

#include <hone/improve.h>
#include <stdio.h>
#include <stdlib.h>

static hone_status roofs(const char *folder, const char *out_folder, fault_answer *answer,
                         hone_error *error) {
  (void)folder, (void)out_folder;
  hone_roofs r = {0};
  hone_status status =
      hone_roofs_measure(2, &(hone_roofs_options){.again = true, .max_seconds = 1e-3}, &r, error);
  if (status == HONE_OK) answer_line(answer, "%u threads, %d", r.threads, r.f32_gflops > 0);
  return status;
}
const scenario scenario_roofs = {"roofs", NULL, roofs, true};

/* Without memory or a disk there is no cache, which is no error: what is read is whole or nothing. */
static hone_status roofs_cache(const char *folder, const char *out_folder, fault_answer *answer,
                               hone_error *error) {
  (void)folder, (void)out_folder, (void)error;
  hn_str lines = {0}, read = {0};
  double f32 = 70, dram = 20;
  hn_str_puts(&lines, "f32 70\ndram 20\n");
  hn_roof_cache_write("faults", &lines);
  hn_str_free(&lines);
  if (hn_roof_cache_read("faults", &read)) {
    if (!hn_roof_cache_number(&read, "f32", &f32)) f32 = 0;
    if (!hn_roof_cache_number(&read, "dram", &dram)) dram = 0;
  }
  hn_str_free(&read);
  answer_line(answer, "%g %g", f32, dram);
  return HONE_OK;
}
const scenario scenario_roofs_cache = {"roofs_cache", NULL, roofs_cache, false};
