/* Winograd's convolution F(m x m, 3 x 3) of stride 1 or 2 over a channels-last activation: for a block of
 * tiles, transform the input, multiply each frequency with its packed weights (gemm kernels), transform back
 * with the epilogue. A block's frequencies stay in L2; weights are streamed once a block.  Products of bf16
 * (m = 2, and both forms of stride 2) take V and the weights in bf16, and may read and write bf16.
 *
 * Groups: each has products of its own; the transforms take the channels of several as they lie.
 *
 * Three dimensions: transforms are of slices, and the taps of depth are so many more channels of the
 * products. Tiles above one another are a column: a slice is transformed once for all of its output slices.
 *
 * Mathematics, error bound, Inf and NaN: kernels/winograd/winograd.h.  All blocking is decided by
 * hn_winograd_plan, once; hn_winograd_exec allocates nothing. */
#ifndef HN_CPU_CONV_WINOGRAD_DRIVER_H
#define HN_CPU_CONV_WINOGRAD_DRIVER_H

#include <stdint.h>

#include "backends/cpu/product/conv_driver.h"
#include "base/integers.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/winograd/winograd.h"

/* The third dimension; of a plane all are 1, and the padding is 0. */
typedef struct hn_winograd_depth {
  int64_t in, out, kernel, stride, dilation, pad; /* of one tap: every output slice has one of the input */
} hn_winograd_depth;

typedef struct hn_winograd {
  /* the problem: a 3x3 kernel, or one of any depth; products of bf16 take one group */
  int64_t m, stride; /* output pixels of a tile in each direction; of a form (hn_winograd_form_of) */
  int64_t batch, groups, cin, cout; /* cin, cout: of a group */
  int64_t in[2], out[2], pad[2];    /* height, width; pad: at the begin */
  hn_winograd_depth depth;
  int64_t in_batch, in_slice, in_row, in_pixel;
  hn_view y;
  int64_t bf16_rows; /* products of bf16, of one tap of depth: most rows of a tile of their kernel;
                        0: of f32 */
  double bf16_rate;  /* their multiply-adds per one of f32 in the same time */
  int64_t narrow_in, narrow_out; /* products of bf16: the input, the output lie in bf16 */
  /* the plan, set by hn_winograd_plan */
  int64_t slices, read; /* output slices of a column of tiles (1 where there is one tap of depth), and from
                           the first to the last slice that they read */
  int64_t tiles_z, tiles_y, tiles_x, tiles; /* columns: tiles_z above one another, and all */
  int64_t n_panels;                         /* of nr output channels, or the rest of a group */
  int64_t m_tasks, n_tasks;                 /* tasks: ranges of columns x ranges of panels */
  int64_t block_tiles;                      /* columns transformed together: their V and M stay in L2 */
  int64_t block_panels;                     /* panels of M that are ready before they are transformed back */
  int64_t v_pitch;                          /* elements from tile to tile in V */
  double seconds;                           /* predicted by the cost model */
} hn_winograd;

/* Chooses the division into tasks and the blocks by the cost model. */
void hn_winograd_plan(hn_winograd *p, const hn_gemm_ops *o, const hone_machine *machine);

/* Elements of the packed weights (f32, or bf16), floats of one thread's scratch. */
size_t hn_winograd_packed_size(const hn_winograd *p, const hn_gemm_ops *o);
size_t hn_winograd_scratch(const hn_winograd *p, const hn_gemm_ops *o);

/* Transforms and packs the weights [groups * cout][cin][depth][3][3] of one panel.  Packed: panel by panel,
 * in it frequency by frequency, of it tap by tap of depth and piece by piece a matrix of cin rows, as
 * hn_gemm_pack_b lays it out. */
void hn_winograd_pack_panel(const hn_winograd *p, const hn_gemm_ops *o, const float *w, int64_t panel,
                            float *dst);

/* The same for products of bf16: panel by panel, in it frequency by frequency as hn_bf16_pack lays it out. To
 * pack, it needs a panel in f32 (hn_winograd_panel floats) and HN_BF16_STEP places for each step of a piece.
 */
size_t hn_winograd_panel(const hn_winograd *p);
int64_t hn_winograd_steps(const hn_winograd *p);
void hn_winograd_pack_bf16(const hn_winograd *p, const hn_bf16_ops *o, const float *w, int64_t panel,
                           float *wide, int64_t *at, uint16_t *dst);

/* Where each step of a frequency begins in a row of V: so many for the one with most pieces; the others take
 * the first of them. */
int64_t hn_winograd_row_steps(const hn_winograd *p);
void hn_winograd_fill_steps(const hn_winograd *p, int32_t *step);

/* Of one plane of tiles, through all of the depth: slices that are transformed, and pairs of an output slice
 * and a tap that finds an input slice. */
typedef struct hn_winograd_reach {
  int64_t slices, taps;
} hn_winograd_reach;
hn_winograd_reach hn_winograd_reach_of(const hn_winograd *p);

typedef struct hn_winograd_args {
  const hn_winograd *plan;
  const hn_gemm_ops *gemm;
  const hn_winograd_ops *ops;
  const hn_bf16_ops *bf16; /* products of bf16, and what hn_winograd_fill_steps wrote for them */
  const int32_t *step;
  const void *x, *w;
  void *y;
  const hn_epilogue *epilogue;
  float *scratch; /* threads * hn_winograd_scratch */
} hn_winograd_args;

void hn_winograd_exec(const hn_winograd_args *a, hn_parallel_fn parallel, void *pool);

/* How weights and frequencies lie, for the files that pack and that run. */

static inline const hn_winograd_form *hn_winograd_plan_form(const hn_winograd *p) {
  return hn_winograd_form_of(p->m, p->stride);
}

/* Matrices of V and of the weights. */
static inline int64_t hn_winograd_pieces(const hn_winograd *p) {
  return hn_winograd_plan_form(p)->pieces * hn_winograd_plan_form(p)->pieces;
}

/* A frequency: its pieces are `rows` rows of `columns` in the grid of all. In V and in packed weights, where
 * they lie by frequencies, there are n of them, and those `before`. */
typedef struct hn_winograd_frequency {
  int64_t row, column, rows, columns;
  int64_t n, before;
} hn_winograd_frequency;

static inline hn_winograd_frequency hn_winograd_frequency_of(const hn_winograd_form *f, int64_t index) {
  const int32_t *const i = f->first + index / f->points, *const j = f->first + index % f->points;
  const int64_t rows = i[1] - i[0], columns = j[1] - j[0];
  return (hn_winograd_frequency){i[0], j[0], rows, columns, rows * columns, i[0] * f->pieces + rows * j[0]};
}

/* Columns of a panel. */
static inline int64_t hn_winograd_columns(const hn_winograd *p, const hn_gemm_ops *o) {
  return p->bf16_rows ? HN_BF16_PANEL : o->nr;
}

/* A panel has columns of one group only. Panels of a group; the first output channel of a panel. */
static inline int64_t hn_winograd_group_panels(const hn_winograd *p, const hn_gemm_ops *o) {
  return hn_div_up(p->cout, hn_winograd_columns(p, o));
}
static inline int64_t hn_winograd_column_of(const hn_winograd *p, const hn_gemm_ops *o, int64_t panel) {
  const int64_t n = hn_winograd_group_panels(p, o);
  return panel / n * p->cout + panel % n * hn_winograd_columns(p, o);
}

/* Values of bf16 before a panel, and of one of its pieces. */
size_t hn_winograd_bf16_before(const hn_winograd *p, int64_t panel);
size_t hn_winograd_bf16_piece(const hn_winograd *p, int64_t panel);

#endif
