/* What a context needs on a device with memory of its own: a queue, blocks through which inputs and outputs
 * pass, and the time that this took. Inside of runtime only.
 *
 * All inputs lie in one block: they are gathered in pinned memory and cross in one copy (in pieces when they
 * are large, so that gathering and crossing overlap). */
#ifndef HN_RUNTIME_REMOTE_H
#define HN_RUNTIME_REMOTE_H

#include "optimize/step/step.h"

enum { HN_MARK_BEGIN, HN_MARK_GIVEN, HN_MARK_DONE, HN_MARK_TAKEN, HN_MARKS };

typedef struct hn_remote {
  hn_queue *queue;
  void *staged, *gathered; /* block of inputs: the device's, and where it is gathered */
  void *host;              /* host arena */
  void *returned;          /* block of outputs on the host */
  uint64_t *returned_at;   /* by output: offset there, or UINT64_MAX: it is on the host already */
  hn_event *mark[HN_MARKS];
} hn_remote;

hone_status hn_remote_open(const hn_plan *plan, hn_remote *remote, hone_error *error);
void hn_remote_close(const hn_plan *plan, hn_remote *remote);
/* Starts the copies of inputs and outputs; tensor: the context's, by slot. */
hone_status hn_remote_give(const hn_plan *plan, hn_remote *remote, const hone_tensor *const *in,
                           hone_error *error);
hone_status hn_remote_take(const hn_plan *plan, hn_remote *remote, const hone_tensor *tensor,
                           hone_error *error);
/* After sync: seconds of the last run on the device's clock. */
hone_status hn_remote_times(const hn_plan *plan, const hn_remote *remote, double *h2d, double *infer,
                            double *d2h, hone_error *error);
/* A tensor of the device as the host sees it, in the graph's type `seen`: f32 where it is stored narrow,
 * strides as they are. data is to be freed with hn_free. Waits for the queue. */
hone_status hn_remote_fetch(const hn_plan *plan, hn_remote *remote, const hone_tensor *from, hone_dtype seen,
                            hone_tensor *to, hone_error *error);
/* The way back: from was made by fetch. Waits for the queue. */
hone_status hn_remote_put(const hn_plan *plan, hn_remote *remote, const hone_tensor *from,
                          const hone_tensor *to, hone_error *error);

#endif
