/* (1x1 convolution +) depthwise convolution (+ 1x1 convolution) in one go over channels-last tensors, so that
 * the tensors between them live in L2 only.
 *
 * A task owns a band of output rows of one image and a range of hidden channels. It walks its rows in groups
 * and its channels in panels (the width of a gemm tile): expands the rows of a panel that the group needs
 * into a ring of rows with the depthwise padding around them, runs the depthwise kernel over them, and when a
 * block of panels is done multiplies it into the output. Large maps have few weights: many groups, all panels
 * in one block. Small maps have many weights: one group, blocks of panels, every weight is read once. When
 * the channels are divided between tasks, each makes a partial sum of the whole output, and a second pass
 * adds them up.
 *
 * With bf16 parts the rows that a group expands are brought into parts first, and each panel of the depthwise
 * result as soon as it is there; channels are not divided, and all panels make one block.
 *
 * Paired (one part, where the kernels for it exist): the ring holds bf16, two channels in a word, and the
 * depthwise kernel goes from there to the operand of the last convolution. What is half as large stays in L1
 * twice as often, and sums of products never lie in memory. */
#ifndef HN_CPU_CONV_CHAIN_DRIVER_H
#define HN_CPU_CONV_CHAIN_DRIVER_H

#include <stdbool.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/kernels/depthwise_bf16/depthwise_bf16.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"

typedef struct hn_chain {
  /* the problem */
  int64_t batch, expand, project; /* is there a convolution in front, behind? */
  int64_t cin, hidden, cout;      /* cin == hidden without expand, cout == hidden without project */
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* of the depthwise convolution */
  hn_view x, y;
  /* The convolution in front is mostly 1x1; one of few channels may have any kernel and stride (a network's
   * first one). `in` is then what it gives, and `image` what it reads. */
  int64_t window;
  int64_t image[2], e_kernel[2], e_stride[2], e_pad[2];
  int64_t parts; /* the 1x1 convolutions: 0 in f32, else in bf16, with 1 or 2 (split f32) parts a number */
  int64_t f16;   /* with one part: f16 instead of bf16 */
  int64_t narrow_in, narrow_out; /* with one part: input, output lie in that type; else f32 */
  int64_t paired;                /* hn_chain_pairs */
  /* the plan, set by hn_chain_divide */
  int64_t width, panels;       /* channels of a panel; number of panels */
  int64_t bands, splits;       /* tasks: batch * bands * splits */
  int64_t group, groups;       /* output rows of a group; most groups of a task */
  int64_t block;               /* panels of a block */
  int64_t ring_rows, ring_row; /* rows of the ring; floats of one */
  int64_t ring_panel, slots;   /* floats of a panel's ring; panels that are kept */
  int64_t middle_pitch;        /* floats of a pixel of the depthwise result */
  int64_t e_row;               /* window: floats of an image row with its padding */
  int64_t e_steps, e_width;    /* paired window: steps of an image row, values of one */
  int64_t direct;              /* paired: the input's pixels are operands as they lie */
  int64_t unit;                /* parts: values of a pixel in a step of 32 channels */
  int64_t e_block, p_block;    /* parts: values of a step of the input, of the depthwise result */
  int64_t stripe;              /* scratch of a thread is a multiple of so many floats */
  int64_t w_tap;               /* depthwise weights: hidden rounded up to 16, paired to 32 */
  double cycles;               /* predicted by hn_chain_plan, of the busiest thread */
} hn_chain;

/* Whether a chain of one bf16 part may be paired: the kernels exist, and nothing but bias and activation
 * happens to inner tensors (inner_posts: operations on their rows). */
bool hn_chain_pairs(const hn_chain *c, const hn_bf16_ops *bf16, const hn_depthwise_bf16_ops *depthwise,
                    bool inner_posts);

/* Paired: where the k-th value of the window's operand comes from in a filter [cin][rows][columns], -1 for
 * zeros; at [hn_chain_window_steps * HN_BF16_STEP]. */
int64_t hn_chain_window_steps(const hn_chain *c);
void hn_chain_window_places(const hn_chain *c, int64_t *at);

/* Groups, blocks and buffers for a division into bands of rows and splits of the hidden channels (more than
 * one only with project). */
void hn_chain_divide(hn_chain *c, const hn_gemm_ops *o, int64_t bands, int64_t splits, size_t l2);

/* More channels than these are not taken in parts. */
enum { HN_CHAIN_STEPS = 128, HN_CHAIN_CHANNELS = HN_CHAIN_STEPS * HN_BF16_STEP };

/* Chooses the division with the least predicted time. */
void hn_chain_plan(hn_chain *c, const hn_gemm_ops *o, const hn_bf16_ops *bf16, uint32_t threads, size_t l2);

/* Floats of one thread's scratch, and of the partial sums of all tasks. */
size_t hn_chain_scratch(const hn_chain *c);
size_t hn_chain_partials(const hn_chain *c);

typedef struct hn_chain_args {
  const hn_chain *chain;
  const hn_gemm_ops *gemm;
  const hn_depthwise_ops *depthwise;
  const hn_bf16_ops *bf16;            /* with parts */
  const hn_depthwise_bf16_ops *pairs; /* paired */
  const void *x;
  const void *w_expand, *w_project; /* packed: hn_gemm_pack_weights; with parts hn_bf16_pack (a window's only
                                       when paired) */
  const float *w_depthwise;         /* hn_depthwise_pack */
  const float *ones;                /* splits * cout rounded up to 16, each 1 */
  void *y;
  void (*widen)(float *dst, const void *src, size_t n); /* narrow_in, narrow_out */
  void (*narrow)(void *dst, const float *src, size_t n);
  const hn_epilogue *e_expand, *e_depthwise, *e_project;
  float *scratch, *partials;
} hn_chain_args;

void hn_chain_exec(const hn_chain_args *a, uint32_t threads, hn_parallel_fn parallel, void *pool);

#endif
