/* What a convolution or product is to conv_driver.h, and how it is divided: tiles, blocks of K and of
 * columns, tasks, how the input is read; and what that is expected to take. All of it is decided by
 * hn_conv_plan, once. */
#ifndef HN_CPU_PRODUCT_CONV_PLAN_H
#define HN_CPU_PRODUCT_CONV_PLAN_H

#include <hone/plugin.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/strip/strip.h"
#include "backends/cpu/step/step.h"
#include "base/integers.h"

/* `taps` neighbouring input pixels of one input row, at these offsets from (grid position * stride). */
typedef struct hn_tap_run {
  int32_t dz, dy, dx;
  uint32_t taps;
} hn_tap_run;

/* How a tile comes to the rows of A, each a pixel's taps. */
typedef enum hn_conv_read {
  HN_CONV_IN_PLACE, /* input pixels are the rows, as they lie */
  HN_CONV_COPIED, /* they are, but their distance aliases in L1: a tile's are copied for each block of weights
                   */
  HN_CONV_COPIED_ONCE, /* rows of one tap each, for the same reason: a block of tiles', once for all weights
                        */
  HN_CONV_PADDED,      /* a task makes a small input with its border of zeros, and walks that */
  HN_CONV_WALKED, /* where no tap lies outside, or lines of them that are left out, the kernel walks the input
                     itself, line of taps by line; other pixels are gathered */
  HN_CONV_GATHERED /* a tile's taps are brought together */
} hn_conv_read;

typedef struct hn_conv {
  /* the problem */
  int64_t batch, groups;
  int64_t cin, cout;          /* of one group */
  int64_t in[3];              /* input depth, height, width */
  int64_t grid[3];            /* output positions computed here */
  int64_t stride[3];          /* input pixels from one grid position to the next */
  int64_t in_pitch, in_batch; /* floats from pixel to pixel, image to image */
  int64_t in_k;        /* floats from channel to channel: 1, or the pitch of a transposed A (one tap only) */
  hn_view out;         /* where grid position (n, z, y, x) goes */
  int64_t n_runs, k;   /* k = cin * all taps */
  int64_t shifted;     /* some tap does not lie at offset 0 */
  int64_t run_step;    /* floats from one line of taps' first value to the next one's; 0: not constant */
  int64_t single_taps; /* each run is a single tap */
  int64_t
      tap_step; /* there, and where runs lie in several slices: floats from one to the next in a line of... */
  int64_t line_taps; /* ...so many; else 0, and a run is a line */
  int64_t pad[2],
      window[2]; /* above and left; rows and columns from the first tap to the last. 0: not known */
  int64_t deep;  /* output slices read the same input slices */
  double idle; /* share of all pairs of a line of the grid and a run of taps that lie above, below, before or
                  behind the image */
  /* the plan, set by hn_conv_plan */
  hn_conv_read read;
  int32_t matrix;         /* input pixels are the rows of one matrix, A */
  int64_t brought;        /* floats of a thread for HN_CONV_COPIED_ONCE or HN_CONV_PADDED */
  int64_t padded_size[2]; /* HN_CONV_PADDED: its height and width */
  int64_t skips;          /* tiles leave out what all of their pixels find outside of the image */
  int64_t line, lines; /* tiles are cut from `lines` lines of `line` pixels with constant output distance */
  int64_t down;        /* of the lines above one another all come first, so that what they share is near */
  int64_t tiles_per_line, tiles;
  int64_t kc;               /* length of a K block */
  int64_t m_tasks, n_tasks; /* tasks: groups * m_tasks * n_tasks */
  int64_t n_panels;
  int64_t resident;    /* all weights of a task stay in L2 */
  int64_t block_tiles; /* tiles that meet one block of weights before the next block's turn */
  int64_t block_columns,
      first_columns; /* columns of such a block at most, and of the first; it has kc rows */
} hn_conv;

/* How lines of taps lie: deep, single_taps, tap_step, line_taps, run_step. Takes cin, in and in_pitch. */
void hn_conv_set_lines(hn_conv *c, const int64_t kernel[3], const int64_t dilation[3], bool single_taps);

/* Chooses tiles, K blocks and the division into tasks.  l1, l2: bytes of cache of one core. */
void hn_conv_plan(hn_conv *c, const hn_gemm_ops *o, uint32_t threads, size_t l1, size_t l2);

/* The time that the planned convolution is expected to take: the cost model of the tactics that stand on it.
 */
double hn_conv_seconds(const hn_conv *c, const hn_gemm_ops *o, const hone_machine *machine);
/* The same where only this share of the products is made. */
double hn_conv_seconds_at(const hn_conv *c, const hn_gemm_ops *o, const hone_machine *machine, double share);

/* Distance between the rows of the scratch tile: an odd number of cache lines, so that rows spread over the
 * L1 sets. */
static inline int64_t hn_conv_tile_ld(const hn_conv *c) { return (c->kc + 15) / 16 * 16 + 16; }

/* The same of a block of rows that is copied. */
static inline int64_t hn_conv_copied_ld(const hn_conv *c) { return hn_fill_up(c->k, 16) + 16; }

/* Scratch floats of one thread. */
size_t hn_conv_scratch(const hn_conv *c, const hn_gemm_ops *o);

/* Packed weights: groups one after the other, each hn_gemm_packed_size(o, cout, k) floats. */
typedef struct hn_conv_args {
  const hn_conv *conv;
  const hn_gemm_ops *ops;
  const hn_tap_run *runs; /* [n_runs] */
  const float *x, *w;
  int64_t w_column; /* the column whose panel w starts with (one group only); 0: all weights are there */
  float *y;
  const hn_epilogue *epilogue;
  float *scratch;            /* threads * hn_conv_scratch */
  const hn_strip_ops *strip; /* of the same panels: takes rows that lie evenly; NULL: tiles take all */
} hn_conv_args;

#endif
