/* Kernels that follow an operator's definition on row-major tensors of any number types. The prefix defines, for the
 * inputs and outputs that are there, their element types HN_I0, HN_I1... and HN_O0..., and HN_REAL, the type of sums:
 * double for f64 and float for all others. HN_IN(k, i) is element i of input k, HN_OUT(k, i, x) stores an output. */
#ifndef HN_DIRECT_CUH
#define HN_DIRECT_CUH

#include "direct_args.h"
#include "elements.cuh"

#define HN_IN_(k, i) HN_PASTE(hn_get_, HN_I##k)(a->in[k], i)
#define HN_IN(k, i) HN_IN_(k, i)
#define HN_OUT_(k, i, x) HN_PASTE(hn_put_, HN_O##k)(a->out[k], i, (HN_PASTE(hn_value_, HN_O##k))(x))
#define HN_OUT(k, i, x) HN_OUT_(k, i, x)

/* The run fails when it has ended (hn_cuda_refusal). */
HN_FN void hn_refuse_direct(const hn_direct_args *a) { *(volatile u64 *)a->refused = a->node; }

/* A thread for each of a.count things: HN_EACH(name) { ... a->..., i ... } */
#define HN_EACH(name)                                                                                                 \
  HN_FN void name##_each(const hn_direct_args *a, u32 i);                                                              \
  HN_KERNEL(name, hn_direct_args, args) {                                                                              \
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                                               \
    HN_GRID_GO();                                                                                                      \
    HN_GRID_WAIT();                                                                                                    \
    if (i < (u32)args.count) name##_each(&args, i);                                                                    \
  }                                                                                                                    \
  HN_FN void name##_each(const hn_direct_args *a, u32 i)

/* A block of at most `threads` for each of a.count things; threads may meet:
 * HN_EACH_BLOCK_OF(name, threads) { ... a->..., i ... } */
#define HN_EACH_BLOCK_OF(name, threads)                                                                               \
  HN_FN void name##_block(const hn_direct_args *a, u32 i);                                                             \
  HN_KERNEL_BOUNDS(name, hn_direct_args, args, threads, 1) {                                                           \
    HN_GRID_GO();                                                                                                      \
    HN_GRID_WAIT();                                                                                                    \
    name##_block(&args, blockIdx.x);                                                                                   \
  }                                                                                                                    \
  HN_FN void name##_block(const hn_direct_args *a, u32 i)
#define HN_EACH_BLOCK(name) HN_EACH_BLOCK_OF(name, 256)

/* Sums over a block of a power of two of threads, up to 256, the same for all of them. */
HN_FN double hn_block_sum(double x) {
  HN_SHARED double part[256];
  const u32 t = threadIdx.x;
  HN_SYNC(); /* the sum before has been read */
  part[t] = x;
  for (u32 half = blockDim.x / 2; half; half /= 2) {
    HN_SYNC();
    if (t < half) part[t] += part[t + half];
  }
  HN_SYNC();
  return part[0];
}

#endif
