/* C = A x B by Strassen's way in Winograd's form: seven products of quarters instead of eight, for a constant
 * B whose sums of quarters are packed once.
 *
 * A row of A's upper half is added to one of its lower half, and so are columns of B: what is rounded in one
 * moves the other. Rows that differ much in size, or that hold infinities, NaN or numbers near the largest,
 * would spoil each other, so each run looks at A first and goes the usual way where it finds such; B is
 * looked at when it is packed. With rows of one size the error is some times that of the usual way, and like
 * that one small against the rows' and columns' lengths multiplied. */
#ifndef HN_CPU_PRODUCT_STRASSEN_DRIVER_H
#define HN_CPU_PRODUCT_STRASSEN_DRIVER_H

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "backends/cpu/step/step.h"

typedef struct hn_strassen {
  hn_isa isa;
  int64_t m, n, k, a_row;
  int64_t plain; /* B's columns differ too much: the usual way at all times */
  /* filled by hn_strassen_plan: */
  int64_t rows, blocks;          /* C comes in blocks of rows, whose halves meet: sums of A stay in L2 */
  int64_t upper, half_k, half_n; /* rows of a block's upper half; k and columns of a quarter */
  int64_t ld;                    /* distance of rows of A's sums */
  int64_t kc, k_blocks, tile_rows, tiles;
  int64_t panels, group, groups; /* of a quarter's columns: panels; so many at a time, so often */
  int64_t sums_floats, thread_floats;
} hn_strassen;

/* False: the sizes cannot be halved evenly enough. */
bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1, size_t l2);

/* Floats of packed B, and of the workspace. */
size_t hn_strassen_packed(const hn_strassen *p);
size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads);

/* Element (k, n) of B is b[k * row + n * col]. False: no memory. Sets p->plain. */
bool hn_strassen_pack(hn_strassen *p, const float *b, int64_t row, int64_t col, float alpha, float *dst);

void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool);

#endif
