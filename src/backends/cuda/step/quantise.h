/* What kernels that end in codes of 8 bits are given (device/quantise.cuh). */
#ifndef HN_CUDA_STEP_QUANTISE_H
#define HN_CUDA_STEP_QUANTISE_H

#include <hone/plugin.h>

#include "backends/cuda/device/quantise_args.h"
#include "base/error.h"

static inline bool hn_cuda_quantise(float scale, int32_t zero, hone_dtype codes, hn_quantise_args *out,
                                    hone_reason *why) {
  if (codes != HONE_DTYPE_U8 && codes != HONE_DTYPE_I8)
    return hn_refuse(why, "%s, not codes of 8 bits", hone_dtype_name(codes));
  if (!(scale > 0x1p-90f && scale < 0x1p90f)) return hn_refuse(why, "a scale is not positive, or far from 1");
  const float lowest = (float)((codes == HONE_DTYPE_I8 ? -128 : 0) - zero);
  *out = (hn_quantise_args){scale, 1 / scale, scale * 1024, lowest, lowest + 255, zero};
  return true;
}

#endif
