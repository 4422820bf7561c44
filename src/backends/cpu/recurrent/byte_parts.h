/* Rows of f32 times weights that are codes of 8 bits, by products of bytes: each row is three rows of 8-bit
 * numbers, of what the one before leaves. A value is off by 2^-24 of the row's largest at most. */
#ifndef HN_CPU_RECURRENT_BYTE_PARTS_H
#define HN_CPU_RECURRENT_BYTE_PARTS_H

#include "backends/cpu/kernels/coded/coded.h"

enum { HN_BYTE_PARTS_ROWS = 16 }; /* in a call, at most */

/* Floats of scratch for rows of k values, a multiple of 16. */
size_t hn_byte_parts_scratch(int64_t k);

/* Brings the rows, each k values, into scratch; then to[i][n] += row i times column n of w, for columns
 * [n0, n1), from a multiple of 16. w is one block of 8 bits along K, a multiple of 16, with zero points or
 * without. */
void hn_byte_parts_bring(const hn_coded *w, hn_isa isa, const float *const *from, int64_t k, uint32_t rows,
                         float *scratch);
void hn_byte_parts_add(const hn_coded *w, hn_isa isa, uint32_t rows, int64_t n0, int64_t n1, float *const *to,
                       float *scratch);

#endif
