/* Clocks, temperature and power of the GPU. */
#ifndef HN_CUDA_DRIVER_SENSORS_H
#define HN_CUDA_DRIVER_SENSORS_H

#include "backends/cuda/driver/context.h"

hone_status hn_cuda_sensors(hn_device *d, hn_sensor *out, size_t most, size_t *n, hone_error *error);

#endif
