/* Where a GPU's pools take their memory: the driver, for that of the device and for pinned memory of the
 * host. Nothing is allocated or freed while a model runs, so what counts here is that plans and contexts that
 * come and go find their memory again: the driver takes milliseconds for what a list does in no time. */
#ifndef HN_CUDA_DRIVER_MEMORY_H
#define HN_CUDA_DRIVER_MEMORY_H

#include "backends/cuda/driver/context.h"

/* The device's pools, after its functions are loaded; a block that is freed waits for work that the device
 * was given before. False when out of memory; what was made is in the device. */
bool hn_cuda_memory_open(hn_device *d);

/* Memory of others, as hn_backend says. */
hone_status hn_cuda_pin(hn_device *d, void *p, size_t bytes, hone_error *error);
hone_status hn_cuda_unpin(hn_device *d, void *p, hone_error *error);
hone_memory_kind hn_cuda_where(hn_device *d, const void *p, size_t bytes);
/* May kernels of this device have the bytes at this very address? Pinned memory can have another one for
 * them. Both ends are looked at. */
bool hn_cuda_reaches(hn_device *d, const void *p, size_t bytes);

#endif
