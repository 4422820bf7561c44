/* Shapes to try an operator with. What it takes is not known: schemes of dimensions that belong together are
 * drawn, and the operator's inference says which are good. */
#ifndef HONE_CLI_OP_SHAPES_H
#define HONE_CLI_OP_SHAPES_H

#include "cli/op/random.h"

#include <hone/tensor.h>
#include <stdbool.h>

#define OP_MOST 12 /* inputs, and outputs, of an operator under test */

typedef struct op_shape {
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
} op_shape;

uint32_t op_schemes(void);
/* Shapes of n inputs by scheme number `scheme`: "A B;B" is a matrix and a vector as long as its rows. Sizes
 * are 0, 1, odd, prime, at the edges of vectors, or large. */
void op_shapes_draw(op_random *r, uint32_t scheme, uint32_t n, op_shape *out);
/* Typical sizes instead: some hundred kB, or some MB, past the caches. */
void op_shapes_typical(uint32_t scheme, uint32_t n, bool large, op_shape *out);
/* Scheme number `scheme` of a list in which the most usual stand first. */
uint32_t op_scheme_usual(uint32_t i);
/* Shapes like the given ones: dimensions that are equal there stay equal, others of them stay. */
void op_shapes_vary(op_random *r, const op_shape *given, uint32_t n, op_shape *out);

#endif
