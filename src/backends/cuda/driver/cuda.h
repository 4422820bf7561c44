/* What CUDA tactics stand on: kernels by name, launches on the step's queue, and a place for what libraries
 * prepare. Nothing here needs the toolkit's headers; dl_*.h do.
 *
 * A tactic's `run` finds its queue in run->pool (hn_cuda_queue_of). It is called
 *   - once at plan time on a dry queue, from any of several threads and with made-up addresses: every kernel
 *     is compiled and every library plan is built, nothing is launched;
 *   - for a context's first run, and once more while the launches are captured into a CUDA graph; the graph
 * is what runs from then on. So run may be as slow as it likes, but must be deterministic, must not
 *     synchronise, allocate device memory or read device memory, and what it launches must depend on nothing
 *     but its arguments.
 * in[], out[], blob and workspace are device addresses (256-byte aligned, views at least element-aligned);
 * step->input[i].constant and what prepack writes are host memory: hone uploads both.
 *
 * Tensors that tactics see on this device:
 *   - activations are f32, f16 or bf16 (the plan's storage type) or the model's own type where it is not f32;
 *   - channels-last tensors have a channel pitch of a multiple of 16 bytes. Elements from C up to the pitch
 * are zeros: whoever writes the tensor writes them, so whoever reads it may read whole vectors;
 *   - constants are f32 (or the model's own type) and dense; tactics pack what they want in another form. */
#ifndef HN_CUDA_DRIVER_CUDA_H
#define HN_CUDA_DRIVER_CUDA_H

#include <hone/plugin.h>

typedef struct hn_cuda_queue hn_cuda_queue; /* a stream with its device */

static inline hn_cuda_queue *hn_cuda_queue_of(const hone_step_run *run) { return run->pool; }

/* A kernel. Its device text is compiled by NVRTC for the device's architecture when it is first wanted, and
 * kept by (prefix, text, architecture, NVRTC version) in memory and on disk. All kernels take one struct. */
typedef struct hn_cuda_kernel {
  const char *text;   /* stem of a .cu file of any family, or of device/: "pool" */
  const char *prefix; /* device text put before it: #defines, generated functions; NULL: nothing */
  const char *entry;  /* the function's name (HN_KERNEL) */
} hn_cuda_kernel;

typedef struct hn_cuda_shape {
  uint32_t grid[3];
  uint32_t threads; /* of a block */
  uint32_t shared;  /* dynamic shared memory of a block in bytes, up to machine->shared_bytes */
  uint32_t cluster; /* blocks of a cluster, along x; 0: no clusters (they need arch 90) */
  /* The kernel calls HN_GRID_WAIT before it reads what other kernels write and before it writes anything:
   * then it may be launched while the kernel before it still runs (arch 90; elsewhere ignored), and what it
   * does up to there (indices, barriers, weights) costs nothing. */
  bool overlap;
} hn_cuda_shape;

/* Launches kernel `k` with `args`, a struct of `size` bytes that is copied (at most 4096; alignment up to 64
 * is kept, as tensor maps want). Fails with the compiler's message when the text does not compile. */
hone_status hn_cuda_launch(hn_cuda_queue *q, const hn_cuda_kernel *k, const hn_cuda_shape *shape,
                           const void *args, size_t size, hone_error *error);
/* What is launched next begins when all before it has ended, also where it was launched to begin early:
 * kernels of a library may be, and read before they wait for what was written (cuDNN 9.14's generated
 * convolutions on an H200). spare: four bytes of the device's that nobody needs. */
hone_status hn_cuda_in_order(hn_cuda_queue *q, void *spare, hone_error *error);
/* Sets bytes of device memory to zero, in order. */
hone_status hn_cuda_zero(hn_cuda_queue *q, void *at, size_t bytes, hone_error *error);

/* Where a kernel says that it met what it cannot do (an index outside of what it indexes, a length that a
 * cache has no room for): it writes the address of the step's node there, in the host's memory, and goes on
 * with something harmless. The run fails when it has ended. NULL: of a dry queue. */
uint64_t *hn_cuda_refusal(const hn_cuda_queue *q);

bool hn_cuda_dry(const hn_cuda_queue *q);     /* plan time: prepare, launch nothing */
void *hn_cuda_stream(const hn_cuda_queue *q); /* CUstream, for libraries */
const hone_machine *hn_cuda_machine(const hn_cuda_queue *q);

/* Things made once per device and kept until it is closed (library handles and plans), by key. find returns
 * NULL when there is none; keep takes the object, and when another thread was faster frees it and returns
 * that thread's. Both may be called from several threads. */
void *hn_cuda_find(hn_cuda_queue *q, const char *key);
void *hn_cuda_keep(hn_cuda_queue *q, const char *key, void *object, void (*destroy)(void *object));

/* Text of a device file by its stem, NULL: there is none (generated/cuda_texts.c). */
const char *hn_cuda_text(const char *stem);

#endif
