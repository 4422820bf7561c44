/* Rows of f32 that are rounded to 8 bits, as DynamicQuantizeLinear does it, times weights that are codes of 8
 * bits, by products of bytes; and the rounded rows as f32, for processors whose products are of floats. */
#ifndef HN_CPU_RECURRENT_BYTE_ROWS_H
#define HN_CPU_RECURRENT_BYTE_ROWS_H

#include "backends/cpu/kernels/coded/coded.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/cpu/kernels/reduce/reduce.h"

enum { HN_BYTE_ROWS = 16 }; /* in a call, at most */

/* What codes of u8 stand for: (code - zero) scale. */
typedef struct hn_byte_range {
  float scale, zero;
} hn_byte_range;

/* The kernels, found once; coded: NULL where there is none. */
typedef struct hn_byte_ops {
  const struct hn_reduce_ops *reduce;
  const struct hn_quantize_ops *quantize;
  const hn_coded_int8_ops *coded;
} hn_byte_ops;
hn_byte_ops hn_byte_ops_of(hn_isa isa);

/* Of n values, of which those that are NaN do not count. */
hn_byte_range hn_byte_range_of(const hn_byte_ops *o, const float *x, int64_t n);

/* to[i] = the code of from[i] less the zero point, times `by`; not in place. codes: scratch of n bytes. */
void hn_byte_round(const hn_byte_ops *o, const hn_byte_range *r, float by, const float *from, int64_t n,
                   uint8_t *codes, float *to);

/* Floats of scratch for rows of k values, a multiple of 16. */
size_t hn_byte_rows_scratch(int64_t k);

/* Weights and, of each column of whole panels, the sum of its codes less their zero point. */
typedef struct hn_byte_weights {
  hn_coded w; /* one block of 8 bits along K, a multiple of 16, with zero points or without */
  const int32_t *sums;
} hn_byte_weights;

/* Brings the rows, each k values and of its own range, into scratch; then to[i][n] = base[i][n] + row i times
 * column n of w, for columns [n0, n1), from a multiple of 16. A base that is NULL is 0; it may be to[i]. */
void hn_byte_rows_bring(const hn_byte_ops *o, const hn_byte_weights *w, const float *const *from,
                        const hn_byte_range *range, int64_t k, uint32_t rows, float *scratch);
void hn_byte_rows_add(const hn_byte_ops *o, const hn_byte_weights *w, uint32_t rows, int64_t n0, int64_t n1,
                      const float *const *base, float *const *to, float *scratch);

#endif
