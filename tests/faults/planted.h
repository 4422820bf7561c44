/* Faults that are planted to show that the harness is not blind. */
#ifndef HN_TESTS_FAULTS_PLANTED_H
#define HN_TESTS_FAULTS_PLANTED_H

#include "faults/loop.h"

/* The number of plants that were not seen, or not as what they are. */
int fault_planted(void);

#endif
