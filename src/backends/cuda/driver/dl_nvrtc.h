/* NVRTC, the compiler of device texts. */
#ifndef HN_CUDA_DRIVER_DL_NVRTC_H
#define HN_CUDA_DRIVER_DL_NVRTC_H

#include "backends/cuda/driver/dl.h"

#include <nvrtc.h>

#define HN_NVRTC_SYMBOLS(X)                                                                                  \
  X(nvrtcVersion)                                                                                            \
  X(nvrtcGetErrorString)                                                                                     \
  X(nvrtcCreateProgram)                                                                                      \
  X(nvrtcDestroyProgram)                                                                                     \
  X(nvrtcCompileProgram)                                                                                     \
  X(nvrtcGetProgramLogSize)                                                                                  \
  X(nvrtcGetProgramLog)                                                                                      \
  X(nvrtcGetCUBINSize)                                                                                       \
  X(nvrtcGetCUBIN)                                                                                           \
  X(nvrtcGetPTXSize)                                                                                         \
  X(nvrtcGetPTX)                                                                                             \
  X(nvrtcGetNumSupportedArchs)                                                                               \
  X(nvrtcGetSupportedArchs)

typedef struct hn_dl_nvrtc {
  HN_NVRTC_SYMBOLS(HN_DL_FIELD)
} hn_dl_nvrtc;

hone_status hn_dl_nvrtc_load(hn_dl_nvrtc *table, char *path, size_t size, hone_error *error);

#endif
