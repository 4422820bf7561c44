/* Hardware counters of pieces of work. */
#ifndef HN_BACKENDS_CUDA_COUNTERS_H
#define HN_BACKENDS_CUDA_COUNTERS_H

#include "backends/cuda/device.h"

hone_status hn_cuda_counters(hn_device *d, uint32_t n, hn_counted_work work, void *arg, hn_counts *out,
                             hone_error *error);

#endif
