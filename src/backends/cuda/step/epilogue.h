/* The epilogue of any tactic, as generated device text.
 *
 * hn_cuda_epilogue writes, for the step's list (the anchor's own bias first, when the tactic names it):
 *
 *   #include "epilogue.cuh"
 *   HN_FN float hn_epilogue1(float x, int channel, i64 at, const hn_epilogue_args *e);
 *   HN_FN void  hn_epilogue2(float x[2], int channel, i64 at, const hn_epilogue_args *e);
 *   HN_FN void  hn_epilogue4(float x[4], int channel, i64 at, const hn_epilogue_args *e);
 *   HN_FN void  hn_epilogue8(float x[8], int channel, i64 at, const hn_epilogue_args *e);
 *
 * The text belongs into hn_cuda_kernel.prefix, behind the tactic's own #defines (HN_T must come before it);
 * an epilogue without entries is as good as none, so that tactics need not tell. In a kernel:
 *   - x holds f32 results of consecutive channels, the first being `channel`, and gets what is to be stored:
 *     whole list applied in order, elements from args->channels on set to zero (channel padding);
 *   - `at` is the offset of x[0] in elements in the output tensor, pitch included: operands of ADD and MUL
 *     have the output's strides, and each its own dtype (f32, f16, bf16);
 *   - channel and at are multiples of the width. f32 tensors have a pitch of a multiple of 4 only, so that
 *     width 8 wants `pitch % 8 == 0`; row-major matrices want rows of a multiple of the width;
 *   - call it only for elements that exist (padding channels of an existing pixel do exist).
 * Loads are as wide as the elements allow (16 bytes for 8 f16 or 4 f32); where an operand turns out to lie at
 * an odd address they fall back to single ones. Bias and scale vectors have args->channels elements and are
 * not read beyond.
 *
 * On the host, in run():   my_args.epilogue is an hn_epilogue_args; hn_cuda_epilogue_bind(run, bias, &it). */
#ifndef HN_CUDA_STEP_EPILOGUE_H
#define HN_CUDA_STEP_EPILOGUE_H

#include <hone/plugin.h>

#include "backends/cuda/device/epilogue_args.h"
#include "base/str.h"

enum { HN_CUDA_NO_BIAS = -1 };

/* Whether the list can be generated: operands of a floating type and the right size and strides. Refuses
 * QUANTIZE. CAST is nothing to do: tactics store in the dtype of the output's descriptor. */
bool hn_cuda_epilogue_accepts(const hone_step *s, hone_reason *why);

/* Appends the text. `bias`: the anchor's input that is its own bias (Conv's 2; a left-out one is skipped), or
 * HN_CUDA_NO_BIAS. */
hone_status hn_cuda_epilogue(const hone_step *s, int bias, hn_str *text, hone_error *error);

/* Also, for kernels whose results lie in registers as tensor cores leave them, the list in two parts:
 *
 *   #define HN_EPILOGUE_VECTORS n        how many vectors there are (the anchor's bias first)
 *   HN_FN void hn_epilogue_fragment_vectors(float (*u)[4], int channel, const hn_epilogue_args *e);
 *   HN_FN void hn_epilogue_fragment(float x[8], float (*u)[4], const float *staged, int channel, i64 at,
 *                                   i64 down, int rows, const hn_epilogue_args *e);
 *
 * x[k] is channel + (k / 4) 8 + k % 2 of the pixel at `at` or (k & 2) of the one `down` elements further;
 * `rows` says how many of the two exist. u: the vectors at those four channels, for as many calls as like.
 * staged: the eight elements of entry `staged` of the list (ADD or MUL; negative: none), which the kernel got
 * ahead of time. */
hone_status hn_cuda_epilogue_fragments(const hone_step *s, int bias, int staged, hn_str *text,
                                       hone_error *error);

/* The same two functions as hn_inner_fragment... and HN_INNER_VECTORS, for a kernel with two lists; behind
 * the text of hn_cuda_epilogue_fragments. */
hone_status hn_cuda_epilogue_inner(const hone_step *s, int bias, hn_str *text, hone_error *error);

/* The list as hn_inner4(float x[4], int channel, i64 at, const hn_epilogue_args *e), on four consecutive
 * channels, behind the text of the functions above. It reads no tensors. padding: channels of the four may
 * not exist, and come back as zeros. */
hone_status hn_cuda_epilogue_inner4(const hone_step *s, int bias, bool padding, hn_str *text,
                                    hone_error *error);

/* The same as hn_inner1(float *x, ...), for one channel. */
hone_status hn_cuda_epilogue_inner1(const hone_step *s, int bias, hn_str *text, hone_error *error);

/* Bytes of each vector that the list reads, by its place among hn_epilogue_args.in; 0 for what is none. */
void hn_cuda_epilogue_sizes(const hone_step *s, int bias, int32_t bytes[HN_EPILOGUE_INPUTS]);

/* How many vectors the list reads, the anchor's bias among them: HN_EPILOGUE_VECTORS. */
uint32_t hn_cuda_epilogue_vectors(const hone_step *s, int bias);
/* How many tensors the list reads, beside vectors. */
uint32_t hn_cuda_epilogue_tensors(const hone_step *s);
/* Whether the list reads vectors alone: that of a result which is in no memory cannot read tensors. */
bool hn_cuda_epilogue_inside(const hone_step *s, hone_reason *why);
/* The list's first tensor of the output's type, which a kernel may bring by boxes as it writes the output; -1
 * for none. */
int hn_cuda_epilogue_staged(const hone_step *s);

/* Fills the arguments with a run's addresses; `bias` as the text was written with. */
void hn_cuda_epilogue_bind(const hone_step_run *run, int bias, hn_epilogue_args *out);

/* Channels as epilogues count them: the last dimension of matrix products, dimension 1 of everything else. */
int64_t hn_cuda_epilogue_channels(const hone_step *s);

/* Bytes that the list reads: what a cost function adds to those of the anchor. */
double hn_cuda_epilogue_bytes(const hone_step *s);
/* Instructions that the list's functions take for a value, beyond what every list takes. */
double hn_cuda_epilogue_instructions(const hone_step *s);

#endif
