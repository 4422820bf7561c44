/* Compiled kernels on disk, and what libraries compiled: files named by what they were compiled of, that
 * notice when they are damaged. */
#ifndef HN_CUDA_DRIVER_CUBINS_H
#define HN_CUDA_DRIVER_CUBINS_H

#include "optimize/step/backend.h"

#include <stddef.h>

/* Adds a text to a key; texts that are cut differently give different keys. */
void hn_cubin_hash(uint64_t key[2], const char *text);
/* False: there is none, or it was damaged (a warning of the device's then says so). *out is hn_free'd. */
bool hn_cubin_read(hn_device *d, const char *folder, const uint64_t key[2], void **out, size_t *size);
/* Appears whole or not at all. That it could not be written is a warning, once, and nothing more is written
 * then: the next process compiles again. */
void hn_cubin_write(hn_device *d, const char *folder, const uint64_t key[2], const void *cubin, size_t size);

#endif
