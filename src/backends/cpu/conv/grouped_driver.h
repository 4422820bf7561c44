/* Convolution of few channels a group, of one or two dimensions, over channels-last tensors. Sixteen output
 * channels lie in a vector, those of several groups: what they read, input channel i of each one's group, is
 * laid out as a row of vectors first. The groups' channels are then so many more kernel rows of a depthwise
 * convolution, whose kernels fill their vectors whatever a group's size is. */
#ifndef HN_CPU_CONV_GROUPED_DRIVER_H
#define HN_CPU_CONV_GROUPED_DRIVER_H

#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/conv/grouped_shape.h"
#include "backends/cpu/kernels/pick/pick.h"

enum {
  HN_GROUPED_SLAB = 16,  /* output channels that are computed together */
  HN_GROUPED_ROWS = 160, /* kernel rows times input channels of a group, at most */
  HN_GROUPED_RING = 32   /* input rows from a kernel's first to its last, at most */
};

typedef struct hn_grouped {
  hn_grouped_shape of;
  /* set by hn_grouped_plan */
  int64_t slabs, row_blocks;    /* tasks: batch * row_blocks * slabs */
  int64_t tile, tiles, columns; /* output columns at a time, and the input columns that they read */
  int64_t ring, row;            /* input rows that are laid out; floats of one, of one input channel */
} hn_grouped;

void hn_grouped_plan(hn_grouped *g, uint32_t threads, size_t l1);

/* Packed weights: [slabs][kernel rows][cin][taps][slab]; w: [groups * cout][cin][kernel rows * taps]. */
size_t hn_grouped_packed_size(const hn_grouped *g);
void hn_grouped_pack(const hn_grouped *g, const float *w, float *dst);

/* Bytes of scratch that each thread needs, a multiple of 64. */
size_t hn_grouped_scratch(const hn_grouped *g);

typedef struct hn_grouped_args {
  const hn_grouped *g;
  const hn_depthwise_ops *ops;
  const struct hn_pick_ops *pick;
  const float *x, *w;
  float *y;
  const hn_epilogue *epilogue;
  void *scratch; /* of all threads */
} hn_grouped_args;

void hn_grouped_exec(const hn_grouped_args *a, hn_parallel_fn parallel, void *pool);

/* Seconds that it takes on all threads. */
double hn_grouped_seconds(const hn_grouped *g, const hn_depthwise_ops *ops, const hone_machine *machine,
                          hn_isa isa);

#endif
