/* NVIDIA's libraries that tactics use, if they are on this machine: which, their handles, and the open device
 * that a question about a step is meant for. */
#ifndef HN_CUDA_DRIVER_LIBRARIES_H
#define HN_CUDA_DRIVER_LIBRARIES_H

#include "backends/cuda/driver/cuda.h"

/* HONE_LIB_*: those that were found. Opens them. */
uint32_t hn_cuda_libraries(void);
/* " | cuDNN 9.14.0 | cuBLASLt 13.1.0" into buf: what measurements depend on. Returns buf. */
char *hn_cuda_libraries_text(char *buf, size_t size);

/* A device is announced when it is open, and taken back before it closes. */
hone_status hn_cuda_announce(hn_cuda_queue *dry, const hone_machine *machine, hone_error *error);
void hn_cuda_withdraw(const hn_cuda_queue *dry);
/* The dry queue of an open device that `machine` (a copy, perhaps) describes, and the device made current on
 * this thread; NULL with the reason when there is none. For accepts, which has no queue: what a library takes
 * depends on the library and on the device. The device may be another engine's, which another thread closes:
 * it stays open until the queue, and all that was found by it, is left. */
hn_cuda_queue *hn_cuda_queue_for(const hone_machine *machine, hone_reason *why);
void hn_cuda_queue_leave(const hn_cuda_queue *dry);

/* A handle of cuDNN on the queue's stream, for one thread until it is put back. Only dry queues make new
 * ones: a handle allocates, which must not happen within a capture. */
hone_status hn_cuda_cudnn_take(hn_cuda_queue *q, void **handle, hone_error *error);
void hn_cuda_cudnn_put(hn_cuda_queue *q, void *handle);
/* The device's handle of cuBLASLt, which all threads share. */
hone_status hn_cuda_cublaslt(hn_cuda_queue *q, void **handle, hone_error *error);

#endif
