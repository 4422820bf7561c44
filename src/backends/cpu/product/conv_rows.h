/* Rows of A that do not lie where a kernel could read them: brought together for a tile, for a block of
 * tiles, or with a border of zeros. */
#ifndef HN_CPU_PRODUCT_CONV_ROWS_H
#define HN_CPU_PRODUCT_CONV_ROWS_H

#include "backends/cpu/product/conv_tiles.h"

/* Where a thread brings rows of A together. */
typedef struct hn_conv_room {
  float *floats;
  int64_t first; /* of a copied block: the number of its first pixel */
} hn_conv_room;

static inline int64_t hn_conv_number(const hn_conv *c, const hn_conv_cursor *at, int64_t m) {
  return at->line * c->line + m;
}

/* Makes rows k0..k1 of a tile of m pixels contiguous; returns their distance. */
int64_t hn_conv_gather(const hn_conv *c, const hn_tap_run *runs, const float *x, hn_conv_place p, int64_t m,
                       int64_t k0, int64_t k1, float *scratch);

/* Rows of a block of tiles, the first one at `from`, up to tile `end`. */
void hn_conv_copy_rows(const hn_conv_args *a, int64_t group, const hn_conv_cursor *from, int64_t end,
                       hn_conv_room *to);

/* Rows of the padded input of a group that the lines of tiles [t0, t1) read. */
void hn_conv_pad_rows(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, float *to);

#endif
