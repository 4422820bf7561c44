/* Opening a GPU and closing it, and what is known of it without. */
#ifndef HN_CUDA_DRIVER_DEVICE_H
#define HN_CUDA_DRIVER_DEVICE_H

#include "optimize/step/backend.h"

hone_status hn_cuda_open(uint32_t index, uint32_t threads, const char *isa, hn_device **out,
                         hone_error *error);
void hn_cuda_close(hn_device *d);
hone_status hn_cuda_about(uint32_t index, hone_device_info *out, hone_error *error);

#endif
