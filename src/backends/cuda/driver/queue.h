/* Streams, launches, copies, captured graphs and events. */
#ifndef HN_CUDA_DRIVER_QUEUE_H
#define HN_CUDA_DRIVER_QUEUE_H

#include "backends/cuda/driver/cuda.h"
#include "optimize/step/backend.h"

hone_status hn_cuda_queue_open(hn_device *d, hn_queue **out, hone_error *error);
void hn_cuda_queue_close(hn_device *d, hn_queue *q);
/* The selected lane with its stream; q NULL: the device's own queue. */
hone_status hn_cuda_lane(hn_device *d, hn_queue *q, hn_cuda_queue **out, hone_error *error);

hone_status hn_cuda_copy(hn_device *d, hn_queue *q, void *to, const void *from, size_t bytes,
                         hone_error *error);
/* The same; a few bytes that kernels reach on both sides by a kernel, where nothing is against it. */
hone_status hn_cuda_cross(hn_device *d, hn_queue *q, void *to, const void *from, size_t bytes,
                          hone_error *error);
hn_launched hn_cuda_launched(const hn_queue *q);
hone_status hn_cuda_sync(hn_device *d, hn_queue *q, hone_error *error);
const hone_node *hn_cuda_refused(hn_queue *q);
hone_status hn_cuda_capture_begin(hn_device *d, hn_queue *q, hone_error *error);
hone_status hn_cuda_capture_end(hn_device *d, hn_queue *q, hn_segment **out, hone_error *error);
hone_status hn_cuda_segment_launch(hn_device *d, hn_queue *q, hn_segment *s, hone_error *error);
void hn_cuda_segment_free(hn_device *d, hn_segment *s);
void hn_cuda_select(hn_device *d, hn_queue *q, uint32_t lane);
hone_status hn_cuda_follow(hn_device *d, hn_queue *q, uint32_t lane, uint32_t other, hone_error *error);
hone_status hn_cuda_event_open(hn_device *d, hn_event **out, hone_error *error);
void hn_cuda_event_close(hn_device *d, hn_event *e);
hone_status hn_cuda_event_record(hn_device *d, hn_queue *q, hn_event *e, hone_error *error);
hone_status hn_cuda_event_wait(hn_device *d, hn_event *e, hone_error *error);
hone_status hn_cuda_event_seconds(hn_device *d, hn_event *from, hn_event *to, double *seconds,
                                  hone_error *error);

#endif
