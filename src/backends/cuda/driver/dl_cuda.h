/* libcuda, the driver. */
#ifndef HN_CUDA_DRIVER_DL_CUDA_H
#define HN_CUDA_DRIVER_DL_CUDA_H

#include "backends/cuda/driver/dl.h"

#include <cuda.h>

#define HN_CUDA_SYMBOLS(X)                                                                                   \
  X(cuInit)                                                                                                  \
  X(cuDriverGetVersion)                                                                                      \
  X(cuGetErrorName)                                                                                          \
  X(cuGetErrorString)                                                                                        \
  X(cuDeviceGetCount)                                                                                        \
  X(cuDeviceGet)                                                                                             \
  X(cuDeviceGetName)                                                                                         \
  X(cuDeviceGetAttribute)                                                                                    \
  X(cuDeviceTotalMem)                                                                                        \
  X(cuDevicePrimaryCtxRetain)                                                                                \
  X(cuDevicePrimaryCtxRelease)                                                                               \
  X(cuCtxSetCurrent)                                                                                         \
  X(cuCtxSynchronize)                                                                                        \
  X(cuMemGetInfo)                                                                                            \
  X(cuMemAlloc)                                                                                              \
  X(cuMemFree)                                                                                               \
  X(cuMemHostAlloc)                                                                                          \
  X(cuMemFreeHost)                                                                                           \
  X(cuMemHostRegister)                                                                                       \
  X(cuMemHostUnregister)                                                                                     \
  X(cuPointerGetAttributes)                                                                                  \
  X(cuMemcpyAsync)                                                                                           \
  X(cuMemsetD8Async)                                                                                         \
  X(cuMemsetD32Async)                                                                                        \
  X(cuModuleLoadData)                                                                                        \
  X(cuModuleUnload)                                                                                          \
  X(cuModuleGetFunction)                                                                                     \
  X(cuFuncSetAttribute)                                                                                      \
  X(cuFuncGetAttribute)                                                                                      \
  X(cuLaunchKernelEx)                                                                                        \
  X(cuStreamCreate)                                                                                          \
  X(cuStreamDestroy)                                                                                         \
  X(cuStreamSynchronize)                                                                                     \
  X(cuStreamQuery)                                                                                           \
  X(cuStreamWaitEvent)                                                                                       \
  X(cuStreamBeginCapture)                                                                                    \
  X(cuStreamEndCapture)                                                                                      \
  X(cuThreadExchangeStreamCaptureMode)                                                                       \
  X(cuEventCreate)                                                                                           \
  X(cuEventDestroy)                                                                                          \
  X(cuEventRecord)                                                                                           \
  X(cuEventRecordWithFlags)                                                                                  \
  X(cuEventSynchronize)                                                                                      \
  X(cuGraphInstantiateWithFlags)                                                                             \
  X(cuGraphUpload)                                                                                           \
  X(cuGraphLaunch)                                                                                           \
  X(cuGraphExecDestroy)                                                                                      \
  X(cuGraphDestroy)

/* Not in every driver that the rest needs. */
#define HN_CUDA_SYMBOLS_OPTIONAL(X)                                                                          \
  X(cuEventElapsedTime)                                                                                      \
  X(cuFuncGetParamInfo)                                                                                      \
  X(cuGraphAddEmptyNode)                                                                                     \
  X(cuStreamGetCaptureInfo)                                                                                  \
  X(cuStreamUpdateCaptureDependencies)                                                                       \
  X(cuTensorMapEncodeTiled)                                                                                  \
  X(cuTensorMapEncodeIm2col)

/* A driver that computes on the host exports a function of this name, which returns 1: int (void). */
#define HN_CUDA_EMULATED "hone_device_is_emulated"

typedef struct hn_dl_cuda {
  HN_CUDA_SYMBOLS(HN_DL_FIELD)
  HN_CUDA_SYMBOLS_OPTIONAL(HN_DL_FIELD)
  CUresult (*elapsed)(float *ms, CUevent from, CUevent to); /* cuEventElapsedTime, under whichever name */
  int (*emulated)(void); /* HN_CUDA_EMULATED; NULL in every driver of a real device */
} hn_dl_cuda;

hone_status hn_dl_cuda_load(hn_dl_cuda *table, char *path, size_t size, hone_error *error);

#endif
