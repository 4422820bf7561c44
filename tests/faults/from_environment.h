/* What hone_faulty notes of its calls in the file HONE_FAIL_EVENTS. */
#ifndef HN_TESTS_FAULTS_FROM_ENVIRONMENT_H
#define HN_TESTS_FAULTS_FROM_ENVIRONMENT_H

#include "faults/interpose.h"

enum { FAULT_LOG_ROOM = 1 << 20 };
typedef struct fault_log {
  uint64_t calls;
  fault_event event[FAULT_LOG_ROOM];
} fault_log;

#endif
