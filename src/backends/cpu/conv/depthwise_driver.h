/* Depthwise convolution of one to three dimensions over channels-last tensors: cuts the output into blocks of
 * rows and slabs of channels (the input rows that neighbouring output rows share stay in L1) and calls the
 * depthwise kernels. */
#ifndef HN_CPU_CONV_DEPTHWISE_DRIVER_H
#define HN_CPU_CONV_DEPTHWISE_DRIVER_H

#include "backends/cpu/conv/window.h"
#include "backends/cpu/kernels/depthwise/depthwise.h"
#include "backends/cpu/step/step.h"

typedef struct hn_depthwise {
  int64_t batch, channels;
  hn_window window;
  int64_t in_batch, in_pixel; /* floats from image to image, pixel to pixel */
  hn_view y;
  int64_t w_tap; /* channels rounded up to 16 */
  /* set by hn_depthwise_plan */
  int64_t period;                 /* pixels that fill whole vectors, of rows that are one run; else 0 */
  int64_t slab, slabs;            /* channels of a slab */
  int64_t row_blocks, slab_tasks; /* tasks: batch * row_blocks * slab_tasks */
} hn_depthwise;

/* vw: floats in a vector of the kernel. */
void hn_depthwise_plan(hn_depthwise *d, uint32_t vw, uint32_t threads, size_t l1, size_t l2);

/* Packed weights: [kernel rows * taps][w_tap], zeros past the channels; of runs, [kernel rows * taps][period
 * * channels] behind them.  w: [channels][kernel rows * taps]. */
size_t hn_depthwise_packed_size(const hn_depthwise *d);
void hn_depthwise_pack(const hn_depthwise *d, const float *w, float *dst);

typedef struct hn_depthwise_args {
  const hn_depthwise *d;
  const hn_depthwise_ops *ops;
  const float *x, *w;
  float *y;
  const hn_epilogue *epilogue;
} hn_depthwise_args;

void hn_depthwise_exec(const hn_depthwise_args *a, hn_parallel_fn parallel, void *pool);

#endif
