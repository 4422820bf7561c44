/* Who watches long work: telling how far it is, and running a context so that it can be stopped. */
#ifndef HN_API_MEASURE_WATCH_H
#define HN_API_MEASURE_WATCH_H

#include <hone/measure.h>

/* Monotonic milliseconds. */
double hn_watch_ms(void);
/* False: the caller wants it to stop. */
bool hn_watch_tell(const hone_watch *watch, const char *what, uint32_t done, uint32_t total);
/* HONE_ERROR_CANCELLED into *error, and returned. */
hone_status hn_watch_stopped(hone_error *error);
/* One run of a context that can be cancelled meanwhile. max_seconds 0: no limit. */
hone_status hn_watch_run(const hone_watch *watch, hone_context *context, const hone_tensor *const *in,
                         double max_seconds, hone_error *error);
/* No context runs any more. */
void hn_watch_idle(const hone_watch *watch);

#endif
