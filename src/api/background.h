/* A thread that does one job after another: the runs that were submitted to a context. */
#ifndef HN_API_BACKGROUND_H
#define HN_API_BACKGROUND_H

#include <hone/session.h>

typedef struct hn_background hn_background;

typedef struct hn_job {
  hone_context *context;
  hone_status (*run)(hone_context *context, hone_error *error);
  hone_done done; /* told afterwards, on the same thread; NULL */
  void *arg;
} hn_job;

hone_status hn_background_start(hn_background **out, hone_error *error);
/* The job is done next. At most one waits: who gives another one knows that the last has begun. False: the
 * thread is being ended. */
bool hn_background_give(hn_background *background, const hn_job *job);
/* Until nothing is under way, and what the last job came to. A job that the thread has not begun, and that
 * tells nobody, is done here where the wait has no end. HONE_ERROR_USAGE on the thread itself. */
hone_status hn_background_wait(hn_background *background, double max_seconds, hone_error *error);
/* Lets what is under way finish, and takes no more. */
void hn_background_refuse(hn_background *background);
void hn_background_end(hn_background *background); /* waits for it; NULL is fine */

#endif
