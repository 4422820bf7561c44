/* What the system did during a run. */
#ifndef HN_API_MEASURE_DISTURBANCE_H
#define HN_API_MEASURE_DISTURBANCE_H

#include <hone/history.h>
#include <sys/resource.h>

/* To the process since `since`, which is now afterwards. */
hone_disturbance hn_disturbance(struct rusage *since);

#endif
