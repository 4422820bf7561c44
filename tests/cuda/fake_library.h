/* What the fake libraries share: tensors of three types, and the fake driver's streams. */
#ifndef HN_TESTS_CUDA_FAKE_LIBRARY_H
#define HN_TESTS_CUDA_FAKE_LIBRARY_H

#include "../../src/base/half.h"

#include <cuda.h>
#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* what the libraries declare, they export */

CUresult fakeCall(CUstream stream, void (*call)(const void *args), const void *args, size_t bytes);

static inline float fake_load(const void *p, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_32F) return ((const float *)p)[i];
  const uint16_t h = ((const uint16_t *)p)[i];
  return type == CUDA_R_16F ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
}

static inline void fake_store(void *p, cudaDataType_t type, int64_t i, float v) {
  if (type == CUDA_R_32F)
    ((float *)p)[i] = v;
  else
    ((uint16_t *)p)[i] = type == CUDA_R_16F ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
}

#endif
