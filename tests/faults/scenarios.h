/* Every scenario is a constant of one of the files run_*.c and a line here. */
#ifndef HN_TESTS_FAULTS_SCENARIOS_H
#define HN_TESTS_FAULTS_SCENARIOS_H

#include "faults/loop.h"

#define SCENARIOS(X)                                                                                         \
  X(load)                                                                                                    \
  X(load_memory)                                                                                             \
  X(optimize)                                                                                                \
  X(plan_convolutions)                                                                                       \
  X(plan_transformer)                                                                                        \
  X(plan_recurrent)                                                                                          \
  X(plan_control)                                                                                            \
  X(plan_quantised)                                                                                          \
  X(plan_plain)                                                                                              \
  X(save_plans)                                                                                              \
  X(open_plans)                                                                                              \
  X(verify)                                                                                                  \
  X(precision)                                                                                               \
  X(tune)                                                                                                    \
  X(zoo)                                                                                                     \
  X(record)                                                                                                  \
  X(facts)                                                                                                   \
  X(reports)                                                                                                 \
  X(import)                                                                                                  \
  X(history)                                                                                                 \
  X(statistics)                                                                                              \
  X(data)

#define X(name) extern const scenario scenario_##name;
SCENARIOS(X)
#undef X

#endif
