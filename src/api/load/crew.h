/* The threads of a test: each takes samples from the course, runs them and says when they were done. The
 * caller looks after them. */
#ifndef HN_API_LOAD_CREW_H
#define HN_API_LOAD_CREW_H

#include "api/load/course.h"

typedef struct hn_crew {
  void *arg;
  /* Runs what was taken, by thread `worker` of course->in_flight, one call of each at a time.
   * HONE_ERROR_CANCELLED stops the test without an error. */
  hone_status (*run)(void *arg, uint32_t worker, const hn_taken *taken, hone_error *error);
  void (*cancel)(void *arg); /* ends all runs that are under way; NULL: they end by themselves */
  const hone_watch *watch;   /* its progress is told, and asked whether to go on */
} hn_crew;

/* Runs the whole course. What was answered counts also after a stop (course->interrupted). */
hone_status hn_crew_run(const hn_crew *crew, hn_course *course, hone_error *error);

#endif
