/* Convolution with groups, of one or two dimensions, over channels-last tensors: the input's values are
 * broadcast to the vectors of output channels of their group, its slabs. The part of an input row that a slab
 * reads is laid out with the border's zeros beside it, so that kernels know none. A task takes a block of
 * slabs row by row: pixels are far apart, and one slab's part of each is a line or two, slow to come one by
 * one. Beside grouped_driver.h, which lays out a vector for each value, the rows are a vector's lanes
 * shorter, and groups that fill a vector waste nothing; a slab's groups must not have more input channels
 * than lanes. */
#ifndef HN_CPU_CONV_GROUPED_DIRECT_H
#define HN_CPU_CONV_GROUPED_DIRECT_H

#include "backends/cpu/conv/grouped_shape.h"
#include "backends/cpu/kernels/grouped/grouped.h"
#include "backends/cpu/kernels/post/epilogue.h"

enum {
  HN_DIRECT_ROWS = 32, /* kernel rows, at most */
  HN_DIRECT_RING = 64  /* input rows from a kernel's first to its last, at most */
};

typedef struct hn_grouped_direct {
  hn_grouped_shape of;
  /* set by hn_grouped_direct_plan */
  int64_t lanes, side;          /* of a vector; groups that share one */
  int64_t slabs, block;         /* vectors of output channels, and how many a task takes together */
  int64_t row_blocks;           /* tasks: batch * row_blocks * blocks of slabs */
  int64_t tile, tiles, columns; /* output columns at a time, and the input columns that they read */
  int64_t ring, planes;         /* input rows that are laid out, each in so many planes of a vector a pixel */
  int64_t plane, row;           /* values of one */
} hn_grouped_direct;

void hn_grouped_direct_plan(hn_grouped_direct *d, uint32_t lanes, uint32_t threads, size_t l1, size_t l2);

/* Packed weights: [slabs][kernel rows][taps][cin][lanes]; w: [groups * cout][cin][kernel rows * taps]. */
size_t hn_grouped_direct_packed_size(const hn_grouped_direct *d);
void hn_grouped_direct_pack(const hn_grouped_direct *d, const float *w, float *dst);

/* Bytes of scratch that each thread needs, a multiple of 64. */
size_t hn_grouped_direct_scratch(const hn_grouped_direct *d);

typedef struct hn_grouped_direct_args {
  const hn_grouped_direct *d;
  const hn_grouped_ops *ops;
  const float *x, *w;
  float *y;
  const hn_epilogue *epilogue;
  void *scratch; /* of all threads */
} hn_grouped_direct_args;

void hn_grouped_direct_exec(const hn_grouped_direct_args *a, hn_parallel_fn parallel, void *pool);

/* Seconds that it takes on all threads. */
double hn_grouped_direct_seconds(const hn_grouped_direct *d, const hone_machine *machine, hn_isa isa);

#endif
