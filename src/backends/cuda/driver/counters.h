/* Hardware counters of pieces of work. */
#ifndef HN_CUDA_DRIVER_COUNTERS_H
#define HN_CUDA_DRIVER_COUNTERS_H

#include "backends/cuda/driver/context.h"

hone_status hn_cuda_counters(hn_device *d, uint32_t n, hn_counted_work work, void *arg, hn_counts *out,
                             hone_error *error);

#endif
