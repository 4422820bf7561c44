/* What tactics of plugins need on a CUDA device: kernels as text, compiled by NVRTC on the machine that runs
 * them, and launched on the step's stream. No toolkit is needed, neither to compile a plugin nor to load it.
 *
 * `run` of a tactic for device "cuda" is called once while a plan is made, with made-up addresses: every
 * kernel is compiled, none launched; then for a context's first run, and once more while its launches are
 * captured; what was captured is what runs from then on. So it must launch the same for the same step, must
 * not wait, allocate or read device memory. in, out, blob and workspace of hone_step_run are device
 * addresses, 256-byte aligned (parts of other tensors: as their elements); step->input[i].constant, and what
 * prepack writes, are host memory: hone uploads both.
 *
 * Activations are f32, f16 or bf16, as the plan stores them. Channels-last tensors have a channel pitch of a
 * multiple of 16 bytes; elements from the channels up to the pitch are zeros, and whoever writes the tensor
 * writes them. */
#ifndef HONE_CUDA_H
#define HONE_CUDA_H

#include <hone/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_cuda_kernel {
  uint32_t struct_size, abi;
  const char *head;  /* put before the text; NULL: nothing */
  const char *text;  /* CUDA C; begin it with #line 1 "file.cu" and compiler messages name your file. #include
                        "hone.cuh" has f16 and bf16 conversions, 16-byte accesses, and the words that also
                        compile for  the GPU that hone's tests imitate (HN_KERNEL, HN_FN, HN_SHARED...) */
  const char *entry; /* an extern "C" __global__ function that takes one struct by value */
  uint32_t grid[3];
  uint32_t threads; /* of a block, along x */
  uint32_t shared;  /* dynamic shared memory of a block in bytes */
  uint32_t reserved;
  /* 1: it may be launched while the kernel in front of it still runs, which saves a microsecond between small
   * ones. Every thread then executes HN_GRID_WAIT() before it reads or writes what another kernel touches;
   * constants of the plan may be read before. HN_GRID_GO() lets the next one begin so. */
  uint64_t overlap;
} hone_cuda_kernel;

/* Launches the kernel on the step's stream with `args`, a struct of `size` bytes (at most 4096) that is
 * copied. When the text does not compile, the error has the compiler's first message with file and line.
 * HONE_ERROR_MISSING: this build of hone has no CUDA. */
HONE_API hone_status hone_cuda_launch(const hone_step_run *run, const hone_cuda_kernel *kernel,
                                      const void *args, size_t size, hone_error *error);

/* For launches of your own: the step's CUstream; NULL while a plan is made (launch nothing then). */
HONE_API void *hone_cuda_stream(const hone_step_run *run);

#ifdef __cplusplus
}
#endif
#endif
