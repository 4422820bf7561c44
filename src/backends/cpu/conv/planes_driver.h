/* Convolution from few channels to few, of one to three dimensions, channels-last: lays out the input rows of
 * a block of output rows as planes, zeros around them included (the columns of each remainder of the stride
 * apart, so that neighbouring outputs read neighbouring values), and calls the family "planes" kernels. */
#ifndef HN_CPU_CONV_PLANES_DRIVER_H
#define HN_CPU_CONV_PLANES_DRIVER_H

#include "backends/cpu/conv/window.h"
#include "backends/cpu/kernels/planes/planes.h"
#include "backends/cpu/step/step.h"

enum {
  HN_PLANES_ROWS = 256, /* kernel rows times input channels, at most */
  HN_PLANES_TAPS = 64,  /* kernel width, at most */
  HN_PLANES_STRIDE = 16 /* columns from pixel to pixel, at most */
};

typedef struct hn_planes {
  int64_t batch, channels, outputs;
  hn_window window;
  int64_t in_batch, in_pixel; /* floats from image to image, pixel to pixel */
  hn_view y;
  /* set by hn_planes_plan */
  int64_t phases;              /* remainders of the stride at which taps lie */
  int64_t columns;             /* floats of a plane's row, of one remainder */
  int64_t slices, lines;       /* output slices and rows of a block */
  int64_t z_blocks, y_blocks;  /* tasks: batch * z_blocks * y_blocks */
  int64_t in_slices, in_lines; /* input slices and rows that a block reads, at most */
} hn_planes;

void hn_planes_plan(hn_planes *p, uint32_t vw, uint32_t threads, size_t l2);

/* Packed weights: [blocks of outputs][kernel rows][channels][taps][HN_PLANES_OUTPUTS], zeros past the
 * outputs. w: [outputs][channels][kernel rows * taps]. */
size_t hn_planes_packed_size(const hn_planes *p);
void hn_planes_pack(const hn_planes *p, const float *w, float *dst);

/* Floats of scratch that each thread needs. */
size_t hn_planes_scratch(const hn_planes *p);

typedef struct hn_planes_args {
  const hn_planes *p;
  const hn_planes_ops *ops;
  const float *x, *w;
  float *y;
  const hn_epilogue *epilogue; /* without a residual in its flags */
  float *scratch;              /* of all threads */
} hn_planes_args;

void hn_planes_exec(const hn_planes_args *a, hn_parallel_fn parallel, void *pool);

/* Seconds that it takes on all threads. */
double hn_planes_seconds(const hn_planes *p, const hn_planes_ops *ops, const hone_machine *machine,
                         hn_isa isa);

#endif
