/* C = A B by one step of Strassen's method (kernels/strassen/strassen.h) above the tiles of family "gemm":
 * rows of A where they lie, B packed as hn_gemm_pack_b packs it, so that the usual product reads the same
 * weights.
 *
 * Columns of the first half meet those of the second, panel by panel; rows meet within blocks; the inner
 * length is cut into pieces of which each has its halves. What is not alike in size (hn_strassen_alike), or
 * not finite, is multiplied as usual, and so are columns that the halves leave over. */
#ifndef HN_CPU_PRODUCT_STRASSEN_DRIVER_H
#define HN_CPU_PRODUCT_STRASSEN_DRIVER_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "backends/cpu/step/step.h"
#include "base/integers.h"

typedef struct hn_strassen {
  /* the problem */
  hn_isa isa;
  int64_t m, n, k;      /* k is even */
  int64_t x_row, y_row; /* floats from row to row of A and of C */
  int64_t apart;        /* rows that must not meet lie so many apart: m is a multiple of it */
  /* the plan, set by hn_strassen_plan */
  int64_t meet;   /* rows of a block */
  int64_t blocks; /* whose factors a thread has at once */
  int64_t pairs;  /* of panels that meet */
  int64_t pieces; /* of the inner length */
  int64_t ld;     /* floats from row to row of a factor of A */
  int64_t m_tasks, n_tasks;
  int64_t factors, thread_floats; /* floats of workspace: of factors, of all that a thread has */
  double cycles;                  /* predicted for the busiest thread */
} hn_strassen;

enum {
  HN_STRASSEN_LINE = 16,        /* floats of a cache line */
  HN_STRASSEN_MOST_COLUMNS = 64 /* of a panel */
};

/* Blocks of all rows. */
static inline int64_t hn_strassen_blocks(const hn_strassen *p) {
  return p->m / p->apart * hn_div_up(p->apart, p->meet);
}
/* Floats of the seven factors of a block's piece. */
static inline int64_t hn_strassen_block_floats(const hn_strassen *p) {
  return HN_STRASSEN_PRODUCTS * hn_div_up(p->meet, 2) * p->ld;
}
/* Tiles of half a block, at most. */
static inline int64_t hn_strassen_tiles(const hn_strassen *p, const hn_gemm_ops *o) {
  return hn_div_up(hn_div_up(p->meet, 2), o->mr);
}

/* False: nothing to win, the operands are too small. l1, l2: bytes of cache of one core. */
bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1, size_t l2);

size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads); /* floats */

/* Its share of the usual product's multiplications. */
double hn_strassen_products(const hn_strassen *p);

/* Cycles that it takes beside its products on the busiest thread. */
double hn_strassen_cycles(const hn_strassen *p, uint32_t threads);

/* Which pairs of columns may meet stands behind the packed b, in so many floats. */
static inline size_t hn_strassen_marks(const hn_strassen *p) { return (size_t)(p->pairs * p->pieces); }
void hn_strassen_mark(const hn_strassen *p, const float *b, float *marks);

/* b: packed, and its marks. */
void hn_strassen_exec(const hn_strassen *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                      float *workspace, hn_parallel_fn parallel, void *pool);

#endif
