/* Runs a course on a clock of its own: threads that are busy for as long as a function says. */
#ifndef HONE_TESTS_LOAD_SIMULATE_H
#define HONE_TESTS_LOAD_SIMULATE_H

#include "api/load/course.h"

/* ns that a run takes; run counts them. */
typedef uint64_t service_fn(void *arg, uint64_t run, uint32_t worker, const hn_taken *taken);

/* stop_at ns: the course is interrupted then; 0: never. */
void simulate(hn_course *course, service_fn *service, void *arg, uint64_t stop_at);
/* A whole test. */
hone_load_result simulated(const hone_load_settings *settings, uint32_t in_flight, uint32_t rows,
                           service_fn *service, void *arg);

#endif
