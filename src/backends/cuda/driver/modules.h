/* Kernels by name: compiled by NVRTC when first wanted, kept in memory and on disk. */
#ifndef HN_CUDA_DRIVER_MODULES_H
#define HN_CUDA_DRIVER_MODULES_H

#include "backends/cuda/driver/context.h"

#include <pthread.h>

enum { HN_CUDA_MOST_ARGS = 4096 };

typedef struct hn_cuda_module hn_cuda_module;

struct hn_cuda_modules {
  hn_device *device;
  pthread_mutex_t lock;
  pthread_cond_t built;
  HN_VEC(hn_cuda_module *) all;
  char folder[1024];                 /* of cubins; "": none are kept */
  _Atomic uint64_t compiled, loaded; /* by NVRTC; from the folder */
};

/* NULL: out of memory. */
hn_cuda_modules *hn_cuda_modules_create(hn_device *d);
void hn_cuda_modules_destroy(hn_cuda_modules *m);

/* The kernel's function, ready for `shared` bytes of dynamic shared memory. Two threads that want the same
 * text compile it once. args: bytes of its argument, checked where the driver can tell. */
hone_status hn_cuda_module_function(hn_cuda_modules *m, const hn_cuda_kernel *k, uint32_t shared, size_t args,
                                    CUfunction *out, hone_error *error);

/* An embedded file: name with ending, NUL-terminated text. */
typedef struct hn_cuda_file {
  const char *name, *text;
} hn_cuda_file;
extern const hn_cuda_file hn_cuda_files[];
extern const size_t hn_cuda_file_count;

#endif
