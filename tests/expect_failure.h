/* The verdict of a tool that was given a fault on purpose (HONE_FAULT) and --expect-failure. */
#ifndef HN_TESTS_EXPECT_FAILURE_H
#define HN_TESTS_EXPECT_FAILURE_H

#include "backends/cpu/kernels/features.h"
#include "base/fault.h"
#include "skipped.h"

#include <stdio.h>
#include <stdlib.h>

/* Exit code: 0 when the fault was noticed, 1 when it was not, SKIPPED when its code never ran. Faults in
 * kernels that this processor (or HONE_CPU) does not have cannot be noticed: that is a SKIP with its reason,
 * which a processor with all instructions never prints. */
static inline int expected_failure(int failures) {
  if (failures > 0) return 0;
  if (!hn_fault_reached() && hn_cpu()->isa < HN_ISA_COUNT - 1) {
    const char *name = getenv("HONE_FAULT");
    printf("SKIP: the code of fault %s needs instructions beyond %s\n", name ? name : "?",
           hn_isa_name(hn_cpu()->isa));
    return SKIPPED;
  }
  printf("FAIL nothing failed, but something should\n");
  return 1;
}

#endif
