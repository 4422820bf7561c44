/* A chain of convolutions (chain_driver.h) and its division into tasks, groups and blocks. */
#ifndef HN_CPU_CONV_CHAIN_PLAN_H
#define HN_CPU_CONV_CHAIN_PLAN_H

#include <stdbool.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/kernels/depthwise_bf16/depthwise_bf16.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/strip/strip.h"
#include "base/integers.h"

enum { HN_CHAIN_ROWS = 64 }; /* kernel rows at most, and threads */

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
  /* The 1x1 convolutions: 0 in f32, else in bf16, with 1, 2 or 3 parts a number. Of three, which give what
   * f32 gives, either may stay f32 (e_whole, p_whole). */
  int64_t parts, e_whole, p_whole;
  int64_t f16;                   /* with one part: f16 instead of bf16 */
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
  int64_t e_parts, p_parts;    /* of the convolution in front, behind; 0: it is f32's */
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

/* What the plan and the run reckon with alike. */

/* Hidden rows that output rows [y0, y1) read. */
static inline void hn_chain_rows_under(const hn_chain *c, int64_t y0, int64_t y1, int64_t *lo, int64_t *hi) {
  *lo = hn_max(0, y0 * c->stride[0] - c->pad[0]);
  *hi = hn_min(c->in[0], (y1 - 1) * c->stride[0] - c->pad[0] + (c->kernel[0] - 1) * c->dilation[0] + 1);
}

/* Values that a hidden one is the sum of. */
static inline int64_t hn_chain_e_values(const hn_chain *c) {
  return c->window ? c->e_kernel[0] * c->e_kernel[1] * c->cin : c->cin;
}

static inline int64_t hn_chain_steps_of(int64_t channels) { return hn_div_up(channels, HN_BF16_STEP); }

/* Values of the weights of `columns` columns and so many steps in parts. Those of three lie as tiles read
 * them: made on the way, they cost more than the third of them that is saved. */
static inline size_t hn_chain_weights(int64_t columns, int64_t steps, int64_t parts) {
  return hn_bf16_parted((size_t)columns, (size_t)steps, (uint32_t)parts);
}

/* Packs the weights of a 1x1 convolution [columns][k] so. */
void hn_chain_pack_parts(const hn_bf16_ops *o, int64_t parts, const float *w, int64_t columns, int64_t k,
                         uint16_t *to);

/* Floats of the buffers for blocks of results (two of three parts, so that vectors take one on while tiles
 * make the other), the parts of the input, and those of the depthwise result. */
enum { HN_CHAIN_SUMS = HN_BF16_ROWS * HN_BF16_PANEL };
static inline int64_t hn_chain_sum_floats(const hn_chain *c) {
  return c->parts == 3 ? 2 * HN_CHAIN_SUMS : c->parts ? HN_CHAIN_SUMS : 0;
}
static inline int64_t hn_chain_e_floats(const hn_chain *c) {
  return c->e_parts ? hn_chain_steps_of(c->cin) * c->e_block / 2 : 0;
}
static inline int64_t hn_chain_ring_floats(const hn_chain *c) {
  return c->slots * c->ring_panel / (c->paired ? 2 : 1);
}
/* Whether it needs to know where the pixels that a group expands lie: paired, or in f32. */
static inline bool hn_chain_has_places(const hn_chain *c) {
  return c->expand && !c->window && (c->paired || !c->e_parts);
}
/* Image rows under a window; such places. */
static inline int64_t hn_chain_row_floats(const hn_chain *c) {
  const int64_t places = hn_chain_has_places(c) ? c->ring_rows * c->in[1] : 0;
  return hn_fill_up(c->e_kernel[0] * c->e_row + places, 16);
}
static inline int64_t hn_chain_p_floats(const hn_chain *c) {
  return c->p_parts ? hn_chain_steps_of(c->hidden) * c->p_block / 2 : 0;
}

#endif
