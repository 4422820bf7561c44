/* Conv, Gemm and MatMul of f32 with constant B on conv_wgmma.cu (arch 90): numbers become tf32 in the
 * multiprocessor, and where no more than f32's error is allowed two numbers of tf32, whose three products
 * count. A tactic is a tile that all warpgroups share. */
#ifndef HN_CUDA_PRODUCT_WGMMA_PARTS_H
#define HN_CUDA_PRODUCT_WGMMA_PARTS_H

#include "backends/cuda/wgmma/wgmma.h"

typedef hn_wgmma_tile hn_wgmma_parts_config;

HN_FAMILY_COUNTED(hn_wgmma_parts);
HN_FAMILY_SHARED(hn_wgmma_parts);

/* The tiles, named by rows x columns. */
#define HN_WGMMA_PARTS_128x64 1, 64, false, false, 2
#define HN_WGMMA_PARTS_128x128 1, 128, false, false, 2
#define HN_WGMMA_PARTS_192x128 HN_WGMMA_192x128
#define HN_WGMMA_PARTS_256x128 HN_WGMMA_256x128

#define hn_cuda_wgmma_parts_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_COUNTED_SHARED(cuda, NAME, ANCHOR, 1, hn_wgmma_parts, __VA_ARGS__)

#endif
