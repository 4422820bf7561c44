/* What most tactics of this backend ask of a step, and the seconds they predict. */
#ifndef HN_CUDA_STEP_STEP_H
#define HN_CUDA_STEP_STEP_H

#include <hone/plugin.h>

#include "backends/cuda/driver/cuda.h"
#include "base/str.h"

/* Whether input or output i is there. */
bool hn_cuda_has(const hone_step *s, uint32_t input);
bool hn_cuda_gives(const hone_step *s, uint32_t output);

/* Refuses unless the dimensions of all the anchor's inputs and of all outputs are known. */
bool hn_cuda_known(const hone_step *s, hone_reason *why);

/* Whether mma.sync multiplies elements of that type there, f32 meaning tf32 (or its parts): f16 and codes
 * from architecture 75 on, bf16 and tf32 from 80 on. */
bool hn_cuda_tensor_cores(const hone_machine *m, hone_dtype type, hone_reason *why);
/* The same, and input 0 and output 0 are f32, f16 or bf16 and of one type. */
bool hn_cuda_stored(const hone_step *s, hone_reason *why);

/* Refuses unless input i is there and holds i32 or i64. */
bool hn_cuda_indices(const hone_step *s, uint32_t i, hone_dtype *type, hone_reason *why);

/* For hone_tactic_desc.shared of a blob that nothing but the weights' form decides on: the numbers that say
 * how it is packed, as a key that other tactics come to if they pack alike. `way` names the way of packing.
 */
size_t hn_cuda_shared_blob(const char *way, const int64_t *number, size_t n, uint64_t *key);

/* Cycles a second, by the peak of f32. */
double hn_cuda_clock(const hone_machine *m);
/* The greater of flops / rate and bytes / bandwidth, over the fraction of it that is reached, and a launch.
 */
double hn_cuda_seconds(const hone_machine *m, double flops, double rate, double bytes, double efficiency);
/* Bytes of the anchor's inputs and of the outputs, each once. */
double hn_cuda_bytes(const hone_step *s);

/* hone_tactic_desc.work of products on tensor cores that take f32: rounded to tf32 where the plan allows it,
 * else as three products of such parts. */
void hn_cuda_tf32_work(const hone_step *s, hone_work *work);

/* Appends "#define name value" lines for the storage type: HN_T (f32, f16, bf16) and HN_SIZE. */
void hn_cuda_define_type(hn_str *text, hone_dtype dtype);

/* Launches `count` threads in blocks of `threads` (grid along x). The kernel calls HN_GRID_WAIT. */
hone_status hn_cuda_launch_line(hn_cuda_queue *q, const char *text, const hn_str *prefix, const char *entry,
                                int64_t count, uint32_t threads, const void *args, size_t size,
                                hone_error *error);

/* A part of a chain as a run of its own, with the inputs that it has of the whole (NULL for what is made
 * inside). */
enum { HN_CUDA_PART_INPUTS = 32 };
typedef struct hn_cuda_part {
  hone_step_run run;
  const void *in[HN_CUDA_PART_INPUTS];
} hn_cuda_part;
void hn_cuda_part_run(const hone_step_run *whole, uint32_t k, hn_cuda_part *out);

#endif
