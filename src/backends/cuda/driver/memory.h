/* Memory of the device, or pinned memory of the host, in blocks that are kept when they are freed. Nothing is
 * allocated or freed while a model runs, so what counts here is that plans and contexts that come and go find
 * their memory again: the driver takes milliseconds for what a list does in no time. */
#ifndef HN_CUDA_DRIVER_MEMORY_H
#define HN_CUDA_DRIVER_MEMORY_H

#include "backends/cuda/driver/context.h"

#include <pthread.h>

typedef struct hn_cuda_block {
  void *at;
  size_t size, wanted;
} hn_cuda_block;

struct hn_cuda_heap {
  hn_device *device;
  bool pinned; /* host memory */
  pthread_mutex_t lock;
  HN_VEC(hn_cuda_block) used, spare;
  uint64_t in_use, peak, held; /* bytes: handed out, the most of that, taken from the driver */
  uint64_t calls;              /* to the driver */
};

/* NULL: out of memory. */
hn_cuda_heap *hn_cuda_heap_create(hn_device *d, bool pinned);
/* Gives everything back, also what was not freed. */
void hn_cuda_heap_destroy(hn_cuda_heap *h);
/* NULL: there is none left. */
void *hn_cuda_heap_alloc(hn_cuda_heap *h, size_t bytes);
/* Waits for work that the device was given before: it may still use the block. */
void hn_cuda_heap_free(hn_cuda_heap *h, void *p);

/* Memory of others, as hn_backend says. */
hone_status hn_cuda_pin(hn_device *d, void *p, size_t bytes, hone_error *error);
hone_status hn_cuda_unpin(hn_device *d, void *p, hone_error *error);
hone_memory_kind hn_cuda_where(hn_device *d, const void *p, size_t bytes);

/* Size of the block that serves `bytes`. */
size_t hn_cuda_size_class(size_t bytes);

#endif
