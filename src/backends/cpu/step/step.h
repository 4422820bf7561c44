/* From hone_step to what the drivers want: views of tensors, the epilogue, refusals with a reason.  Shared by
 * the tactics that stand on the gemm and depthwise drivers. */
#ifndef HN_CPU_STEP_STEP_H
#define HN_CPU_STEP_STEP_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "base/error.h"
#include "optimize/step/pixels.h"

/* How drivers share their tasks: hone_step_run.parallel. */
typedef void (*hn_parallel_fn)(void *pool, int64_t tasks,
                               void (*fn)(void *arg, int64_t task, uint32_t thread), void *arg);

/* Whether input i of the step is there. */
static inline bool hn_step_has(const hone_step *s, uint32_t i) {
  return i < s->n_inputs && s->input[i].desc.dtype != HONE_DTYPE_NONE;
}

/* Whether output i of the step is wanted. */
static inline bool hn_step_gives(const hone_step *s, uint32_t i) {
  return i < s->n_outputs && s->output[i].desc.dtype != HONE_DTYPE_NONE;
}
/* Row-major, without gaps, of a known shape. */
static inline bool hn_step_plain(const hone_tensor_desc *d) {
  return hone_desc_known(d) && d->layout == HONE_LAYOUT_ROW_MAJOR;
}
static inline bool hn_step_plain_f32(const hone_tensor_desc *d) {
  return d->dtype == HONE_DTYPE_F32 && hn_step_plain(d);
}

/* Checks that every input and output of the anchor is f32, or of the narrow type, with known dimensions. */
bool hn_step_is_float(const hone_step *s, hone_dtype narrow, hone_reason *why);
static inline bool hn_step_is_f32(const hone_step *s, hone_reason *why) {
  return hn_step_is_float(s, HONE_DTYPE_F32, why);
}

/* Checks the step's epilogue; `matrix` says that rows of the output are those of a row-major matrix. */
bool hn_epilogue_accepts(const hone_step *s, hn_isa isa, bool matrix, hone_reason *why);
/* The same where the tensors of one ADD or MUL may be of a type of 16 bits. */
bool hn_epilogue_takes(const hone_step *s, hn_isa isa, bool matrix, hone_dtype narrow, hone_reason *why);

/* The anchor's input 2 among a run's inputs, NULL where the step has none. */
static inline const float *hn_step_bias(const hone_step *s, const void *const *in) {
  return s->n_anchor_inputs > 2 && hn_step_has(s, 2) ? in[2] : NULL;
}

/* Builds the epilogue for one run.  bias: the anchor's own (NULL: none).  in: the run's inputs. */
void hn_epilogue_bind(const hone_step *s, hn_isa isa, bool matrix, const float *bias, const void *const *in,
                      hn_epilogue *out);

/* The same with every operation in the list of row operations: for kernels that do none of it themselves. */
void hn_epilogue_bind_rows(const hone_step *s, hn_isa isa, bool matrix, const float *bias,
                           const void *const *in, hn_epilogue *out);

/* Moves the tensors of an epilogue by an offset of the output's elements (one image, one matrix of a batch).
 */
void hn_epilogue_shift(hn_epilogue *e, int64_t floats);

/* Pieces of cost models.  Cycles of a core: its clock follows from the machine's peak, two vectors of
 * multiply-adds a cycle.  Cycles to read `bytes` of weights once, of a layer that has `layer_bytes`: they
 * come from L3 (HN_STREAM_BYTES_PER_CYCLE) or, the more the larger they are against L3, from memory.  Two
 * things that go on at once overlap, but not quite. */
#define HN_STREAM_BYTES_PER_CYCLE 9.3
double hn_core_hertz(const hn_gemm_ops *o, const hone_machine *machine);
double hn_weights_cycles(double bytes, double layer_bytes, const hn_gemm_ops *o, const hone_machine *machine);
double hn_overlapped_cycles(double a, double b);

/* Seconds that the epilogue takes beyond what the products' kernels do in registers, on all threads: fused, a
 * Gelu still computes its polynomial for every element; only the walk through memory is saved. far: a tensor
 * that is added was written some steps ago and is read from beyond the cores' own caches. */
double hn_epilogue_seconds(const hone_step *s, const hone_machine *m, bool far);

/* Seconds that it takes longer to read `bytes` which all threads wrote, each in another division than the one
 * in which they are read now: what other cores hold comes at a third of the own caches' rate. */
double hn_handed_over_seconds(const hone_machine *m, double bytes);

/* Seconds that `flops` and `bytes` take on all threads at a fraction of the peak, and a fork-join. */
double hn_step_seconds(const hone_machine *m, double flops, double bytes, double efficiency);

/* hone_tactic_desc.work of products on bf16 units, of numbers in so many parts: one product, three or six. */
static inline void hn_bf16_work(double macs, uint32_t parts, hone_work *work) {
  work->arithmetic = HONE_ARITHMETIC_BF16;
  work->split = parts > 1;
  work->flops += 2 * (double)(hn_bf16_products(parts) - 1) * macs;
}

#endif
