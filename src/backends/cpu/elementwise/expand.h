/* Operands that are broadcast, laid out as a tile of whole rows is. */
#ifndef HN_CPU_ELEMENTWISE_EXPAND_H
#define HN_CPU_ELEMENTWISE_EXPAND_H

#include "backends/cpu/kernels/kernel.h"
#include "base/nest.h"

/* dst[rows][inner]: operand k of a nest of two dimensions or more, which lies at x, from first_row on; a row
 * is the innermost dimension. What repeats along a dimension is laid out once and copied. */
void hn_expand_rows(hn_isa isa, const hn_nest *nest, int32_t k, const float *x, int64_t first_row,
                    int64_t rows, float *dst);

#endif
