/* cuDNN, opened when first wanted. Without its headers at build time HN_HAVE_CUDNN is 0, and there is none.
 */
#ifndef HN_CUDA_DRIVER_DL_CUDNN_H
#define HN_CUDA_DRIVER_DL_CUDNN_H

#include "backends/cuda/driver/dl.h"

#ifndef HN_HAVE_CUDNN
#define HN_HAVE_CUDNN 0
#endif

#if HN_HAVE_CUDNN
#include <cudnn.h>

#define HN_CUDNN_SYMBOLS(X)                                                                                  \
  X(cudnnGetVersion)                                                                                         \
  X(cudnnGetErrorString)                                                                                     \
  X(cudnnGetLastErrorString)                                                                                 \
  X(cudnnCreate)                                                                                             \
  X(cudnnDestroy)                                                                                            \
  X(cudnnSetStream)                                                                                          \
  X(cudnnBackendCreateDescriptor)                                                                            \
  X(cudnnBackendDestroyDescriptor)                                                                           \
  X(cudnnBackendFinalize)                                                                                    \
  X(cudnnBackendSetAttribute)                                                                                \
  X(cudnnBackendGetAttribute)                                                                                \
  X(cudnnBackendExecute)

typedef struct hn_dl_cudnn {
  HN_CUDNN_SYMBOLS(HN_DL_FIELD)
} hn_dl_cudnn;

/* The table, NULL with the reason where the library, or a call in it, is missing. From any thread; opened
 * once and never closed. */
const hn_dl_cudnn *hn_dl_cudnn_get(hone_error *error);

/* Fails with cuDNN's own words for the last thing that went wrong in this thread. */
hone_status hn_cudnn_fail(const hn_dl_cudnn *api, cudnnStatus_t status, const char *what, hone_error *error);
#endif

/* "cuDNN 9.19.0" into buf; false, and an empty text, where there is none. */
bool hn_cudnn_version(char *buf, size_t size);

#endif
