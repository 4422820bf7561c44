/* Every scenario is a constant of one of the files run_*.c and a line in scenarios.def. */
#ifndef HN_TESTS_FAULTS_SCENARIOS_H
#define HN_TESTS_FAULTS_SCENARIOS_H

#include "faults/loop.h"

#define SCENARIO(name) extern const scenario scenario_##name;
#include "faults/scenarios.def"
#undef SCENARIO

#endif
