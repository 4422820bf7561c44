/* The driver of the gemm_bf16 kernels: Conv of 1 to 3 dimensions with any kernel, stride, dilation and
 * groups, and products of a matrix with constant weights (one tap).  Activations are f32, or lie in the type
 * of the operands, on either side.
 *
 * The input is brought into bf16 parts once, into a buffer where every tap of the convolution is a matrix
 * with evenly spaced rows, so tiles are read by their stride and nothing is gathered:
 * - A *position* is an output pixel, or one of the gaps between lines, slices and images.  Lines are `q[2]`
 *   positions wide: one line's padding on the right is also the next one's on the left, and so on for the
 * other dimensions.  Results of gaps are computed and dropped.
 * - Strides: pixels are sorted into *planes* by their coordinates modulo the stride; in a plane neighbouring
 *   positions are neighbours again.  Planes that no tap reads are left out.
 * - Channels lie in steps of 32: step by step all positions, so a tile is one piece of memory.
 * - `fold`: where channels would fill steps badly.  The taps of a line are one run of K; pixels lie as in the
 * image, each part apart.
 *
 * An input of 16 bits whose pixels are the positions already (1x1, stride 1, whole steps of channels) is read
 * where it lies (direct); only a last tile that would reach beyond it is copied.
 *
 * A task either brings slabs of positions into its own scratch, that stays in L2, or (shared) all tasks read
 * one buffer that the threads have filled before.
 *
 * Three parts: the result is that of f32. Weights are kept as f32 and become parts in a task's scratch: a
 * panel while the one before it is multiplied or (blocks_outside) all of a task's before its first block.
 * Codes (coded) are widened to f32 before that, as many steps at a time as become parts.
 * Rows whose sums are not finite, which infinite operands make of their parts, are summed once more in f32.
 */
#ifndef HN_CPU_PRODUCT_BF16_DRIVER_H
#define HN_CPU_PRODUCT_BF16_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"

typedef struct hn_bf16_conv {
  /* the problem */
  int64_t parts;                    /* of a number (gemm_bf16.h) */
  int64_t batch, groups, cin, cout; /* channels of one group */
  int64_t in[3], out[3];            /* sizes */
  int64_t kernel[3], stride[3], dilation[3], pad[3];
  int64_t in_pitch, in_batch;    /* floats from pixel to pixel, image to image */
  hn_view view;                  /* of the output */
  int64_t narrow_in, narrow_out; /* the input, the output lies in the operands' type */
  int64_t joined;                /* groups of the convolution that are one here; 0: none */
  int64_t coded; /* three parts: weights are kept as codes of so many bits, scales included; 0: as f32 */
  /* the plan */
  int64_t fold;
  int64_t direct;
  int64_t q[3];       /* positions of an image */
  int64_t positions;  /* up to the last one with a result */
  int64_t reach;      /* how far beyond its own position a result's taps lie */
  uint32_t phases[3]; /* remainders of the stride that taps meet, as bits */
  int64_t n_planes;
  int64_t size;                    /* values from position to position */
  int64_t c_steps;                 /* steps of 32 channels (fold: of a run) */
  int64_t steps;                   /* of K */
  int64_t short_from, short_pairs; /* of a tile (gemm_bf16.h) */
  int64_t step_values; /* from one step of channels to the next; planes are c_steps of them (fold: planes) */
  int64_t lo;          /* from part to part */
  int64_t buffer;      /* values of a buffer */
  int64_t rows, block; /* of a row tile, of a call */
  int64_t n_blocks, n_panels;
  int64_t shared;
  int64_t slab; /* blocks of a slab */
  int64_t m_tasks, n_tasks;
  int64_t chunk; /* steps of K that are done for all panels before the next ones: a chunk of the buffer stays
                    in L2 */
  int64_t
      parted;   /* values of weights that a task holds in three parts; 0: fewer parts lie as they are read */
  int64_t wide; /* floats of codes that a task holds widened, on their way to parts */
  int64_t sums; /* blocks of results that wait for the next chunk, of one thread */
  int64_t blocks_outside; /* a block meets all panels of a task before the next block's turn */
} hn_bf16_conv;

/* False with a reason: outside what the driver does. */
bool hn_bf16_plan(hn_bf16_conv *c, const hn_bf16_ops *o, uint32_t threads, size_t l1, size_t l2,
                  const char **why);

/* Seconds on a machine of `peak` f32 FLOP/s and `cache` bytes/s, all threads together. */
double hn_bf16_seconds(const hn_bf16_conv *c, const hn_bf16_ops *o, const hone_machine *machine);

/* The table of steps: where each one's rows begin in the buffer (steps values), and where its 32 values lie
 * in the weights [cout][cin][kernel] of a group, -1 for zeros (32 * steps values). */
void hn_bf16_steps(const hn_bf16_conv *c, int32_t *step);
void hn_bf16_places(const hn_bf16_conv *c, int64_t *at);

/* As many groups as one, before the plan; and that one's weights [cout][cin][kernel], zeros where a column's
 * own group has no channel, from those of the groups as they follow each other. */
void hn_bf16_join(hn_bf16_conv *c, int64_t groups);
void hn_bf16_spread(const hn_bf16_conv *c, const float *from, float *to);

/* Values of the packed weights of one group; bytes of the workspace. */
size_t hn_bf16_weights(const hn_bf16_conv *c);
size_t hn_bf16_workspace(const hn_bf16_conv *c, uint32_t threads);

typedef struct hn_bf16_args {
  const hn_bf16_conv *conv;
  const hn_bf16_ops *ops;
  const int32_t *step;
  const void *x;
  const uint16_t *w; /* groups one after the other */
  void *y;
  const hn_epilogue *epilogue;
  uint16_t *workspace;
  uint32_t threads;
  /* Coded: steps [from, to) of the panel at column n as they would be kept in f32; w is not read. */
  void (*widen)(const void *codes, int64_t n, int64_t from, int64_t to, float *dst);
  const void *codes;
} hn_bf16_args;

void hn_bf16_exec(const hn_bf16_args *a, hn_parallel_fn parallel, void *pool);

/* Of a block of three parts whose sums are complete: rows that are not finite once more, by f32 products of
 * what the parts stand for, since an infinite operand's products with parts of the other one are not that of
 * the operands. Other rows keep their bits.  weights: those of the panel at column n as they are kept, from
 * the first step on. */
void hn_bf16_again(const hn_bf16_args *a, const hn_bf16_tile *tile, int64_t n, const float *weights,
                   float *sums);

/* The same of a tile without accumulation whose rows hold zeros beyond K; its sums are at tile->c. */
void hn_bf16_rows_again(const hn_bf16_ops *o, const hn_bf16_tile *tile);

#endif
