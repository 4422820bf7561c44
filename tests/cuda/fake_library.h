/* What the fake libraries share: tensors of three types, and the fake driver's streams. */
#ifndef HN_TESTS_CUDA_FAKE_LIBRARY_H
#define HN_TESTS_CUDA_FAKE_LIBRARY_H

#include "../../src/base/half.h"

#include <cuda.h>
#include <library_types.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* what the libraries declare, they export */

/* Whether a kernel launched now to begin early would do so behind another one that may still run: never
 * before Hopper. */
int fakeBeginsEarly(CUstream stream);
CUresult fakeCall(CUstream stream, void (*call)(const void *args), const void *args, size_t bytes);

/* e4m3: the smallest numbers are multiples of 2^-9. */
static inline float fake_e4m3(uint8_t code) {
  const int power = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7f) == 0x7f) return NAN;
  const float size = power ? ldexpf((float)(8 + mantissa), power - 10) : ldexpf((float)mantissa, -9);
  return code & 0x80 ? -size : size;
}

static inline float fake_load(const void *p, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_32F) return ((const float *)p)[i];
  if (type == CUDA_R_8F_E4M3) return fake_e4m3(((const uint8_t *)p)[i]);
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
