/* test_faults [--scenario NAME] [--stacks|--every] [--list] [--call N [--stays|--partly]]
 * test_faults --planted
 *
 * Every call to the system that may fail (memory, files, threads) fails once, in all that hone's public
 * functions do: then there is an error that says so, or the same result as without; nothing leaks, no file is
 * half written or left behind, nothing crashes, hangs or ends the process. By default one call of each place
 * in the sources; --stacks: of each way to get there; --every: each.
 * --planted: leaks, crashes, half files and the like are planted, and each has to be found. */
#include "faults/interpose.h"
#include "faults/planted.h"
#include "faults/scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const scenario *const all[] = {
#define SCENARIO(name) &scenario_##name,
#include "faults/scenarios.def"
#undef SCENARIO
};

int main(int argc, char **argv) {
  loop_options o = {0};
  const char *only = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--scenario") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (strcmp(argv[i], "--call") == 0 && i + 1 < argc)
      o.only = strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--planted") == 0)
      return fault_planted() != 0;
    else if (strcmp(argv[i], "--stacks") == 0)
      o.which = LOOP_STACKS;
    else if (strcmp(argv[i], "--every") == 0)
      o.which = LOOP_EVERY;
    else if (strcmp(argv[i], "--stays") == 0)
      o.mode = FAULT_STAYS;
    else if (strcmp(argv[i], "--partly") == 0)
      o.mode = FAULT_PARTLY;
    else if (strcmp(argv[i], "--list") == 0)
      o.list = true;
    else
      return fprintf(stderr, "test_faults: '%s'?\n", argv[i]), 2;
  }
  fault_spare_jansson();
  int wrong = 0, done = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (only && strcmp(only, all[i]->name) != 0) continue;
    wrong += fault_loop(all[i], &o);
    done++;
  }
  if (!done) printf("no scenario %s\n", only);
  return wrong || !done;
}
