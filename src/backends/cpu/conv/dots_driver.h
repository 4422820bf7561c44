/* Convolution to few channels over channels-last tensors: walks pieces of output rows, down the image so that
 * the rows which neighbours share stay in L1, and calls the family "dots" kernels. */
#ifndef HN_CPU_CONV_DOTS_DRIVER_H
#define HN_CPU_CONV_DOTS_DRIVER_H

#include "backends/cpu/conv/window.h"
#include "backends/cpu/kernels/dots/dots.h"
#include "backends/cpu/step/step.h"

typedef struct hn_dots {
  int64_t batch, channels, outputs;
  hn_window window;
  int64_t in_batch, in_pixel; /* floats from image to image, pixel to pixel */
  hn_view y;
  /* set by hn_dots_plan */
  int64_t piece, pieces; /* output columns at a time */
  int64_t row_blocks;    /* tasks: batch * row_blocks * pieces */
} hn_dots;

void hn_dots_plan(hn_dots *d, uint32_t threads, size_t l1);

/* Packed weights: [kernel rows][outputs][taps * channels, filled up to a line]; w: [outputs][channels][kernel
 * rows * taps]. */
size_t hn_dots_packed_size(const hn_dots *d);
void hn_dots_pack(const hn_dots *d, const float *w, float *dst);

typedef struct hn_dots_args {
  const hn_dots *d;
  const hn_dots_ops *ops;
  const float *x, *w;
  float *y;
  const hn_epilogue *epilogue; /* without a residual in its flags */
} hn_dots_args;

void hn_dots_exec(const hn_dots_args *a, hn_parallel_fn parallel, void *pool);

/* Seconds that it takes on all threads. */
double hn_dots_seconds(const hn_dots *d, const hn_dots_ops *ops, const hone_machine *machine, hn_isa isa);

#endif
