#include "base/dims.h"
#include "optimize/step/sparsity.h"

#include "optimize/step/anchor.h"

#include <string.h>

/* Groups after which weights are given up on of which few are sparse, and of which less than half are: every
 * start counts those of all products. */
enum { FEW = 512, ENOUGH = 4096 };

/* The weights as groups: `rows` independent ones, each with `along` numbers along K and `beside` numbers
 * between neighbours, which are rows of their own. */
typedef struct grid {
  int64_t rows, along, beside;
} grid;

static bool grid_of(const hone_step *s, const hone_tensor_desc *d, grid *g) {
  const hone_product product = hn_anchor_of_step(s).product;
  if (product == HONE_PRODUCT_CONV && d->rank >= 3) {
    *g = (grid){d->dim[0], d->dim[1], hn_dims(d, 2, d->rank)};
  } else if ((product == HONE_PRODUCT_MATMUL || product == HONE_PRODUCT_GEMM) && d->rank >= 2) {
    const bool transposed = s->node && hone_node_int(s->node, "transB", 0) != 0;
    const int64_t rows = d->dim[d->rank - 2], columns = d->dim[d->rank - 1];
    *g = transposed ? (grid){rows, columns, 1} : (grid){1, rows, columns};
    g->rows *= hn_dims(d, 0, d->rank - 2);
  } else
    return false;
  return g->along >= 4 && g->rows > 0 && g->beside > 0;
}

/* Of either sign. Bytes, since constants may lie at any address. */
static inline uint32_t is_zero(const unsigned char *p, size_t size) {
  uint32_t u = 0;
  uint16_t h;
  if (size == sizeof u) {
    memcpy(&u, p, sizeof u);
    return !(u << 1);
  }
  memcpy(&h, p, sizeof h);
  return !(h & 0x7fff);
}

/* How many of the first `n` groups have two zeros or more. */
static inline uint64_t sparse_of(const unsigned char *w, size_t size, const grid *g, uint64_t n) {
  uint64_t groups = 0, sparse = 0;
  const size_t next = (size_t)g->beside * size; /* to the next one along K */
  for (int64_t r = 0; r < g->rows; r++)
    for (int64_t k = 0; k + 4 <= g->along; k += 4)
      for (int64_t c = 0; c < g->beside; c++) {
        if (groups++ == n) return sparse;
        const unsigned char *p = w + (size_t)((r * g->along + k) * g->beside + c) * size;
        sparse += is_zero(p, size) + is_zero(p + next, size) + is_zero(p + 2 * next, size) +
                      is_zero(p + 3 * next, size) >=
                  2;
      }
  return sparse;
}

static uint64_t count_sparse(const unsigned char *w, size_t size, const grid *g, uint64_t n) {
  return size == 4 ? sparse_of(w, 4, g, n) : sparse_of(w, 2, g, n);
}

double hn_sparse_groups(const hone_step *s) {
  grid g;
  if (s->n_inputs < 2 || !s->input[1].constant) return -1;
  const hone_tensor_desc *d = &s->input[1].desc;
  const size_t size = hone_dtype_size(d->dtype);
  if (!hone_dtype_is_float(d->dtype) || (size != 2 && size != 4) || !hone_desc_known(d) ||
      d->layout != HONE_LAYOUT_ROW_MAJOR || !grid_of(s, d, &g))
    return -1;
  const unsigned char *w = s->input[1].constant;
  const uint64_t groups = (uint64_t)(g.rows * (g.along / 4) * g.beside);
  static const uint64_t of[] = {FEW, ENOUGH}, least[] = {FEW / 4, ENOUGH / 2};
  for (int i = 0; i < 2 && of[i] < groups; i++) {
    const uint64_t first = count_sparse(w, size, &g, of[i]);
    if (first < least[i]) return 100 * (double)first / (double)of[i];
  }
  const uint64_t sparse = count_sparse(w, size, &g, groups);
  return 100 * (double)sparse / (double)groups;
}
