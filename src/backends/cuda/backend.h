/* NVIDIA GPUs as a backend. Where hone was built without CUDA's headers, open says so. */
#ifndef HN_BACKENDS_CUDA_BACKEND_H
#define HN_BACKENDS_CUDA_BACKEND_H

#include "optimize/step/backend.h"

extern const hn_backend hn_backend_cuda;

#endif
