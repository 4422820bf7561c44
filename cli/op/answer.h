/* What the right answer to a sample is, and how far from it an answer may be. */
#ifndef HONE_CLI_OP_ANSWER_H
#define HONE_CLI_OP_ANSWER_H

#include "cli/op/sample.h"

/* How far a result y may be from the reference r, of a type whose numbers are ulp(r) apart:
 *   ulp(r) / 2 + units sqrt(depth) unit (|r| + moved + least) + sqrt(depth) vanishing + 2 own
 * unit: 2^-24, the rounding of f32 arithmetic (f64 elements: 2^-53). vanishing: half of the smallest number
 * of that arithmetic, the rounding of what is denormal; 0 with one operation. depth: operations behind an
 * element. moved: by how much r moves when the inputs move, for a relative unit of theirs. least: the largest
 * number of the input whose numbers are smallest; where r depends on the inputs at its place alone, their
 * smallest, or 1 where all numbers there are below. own: what the reference itself is off by in the elements'
 * type, beyond a rounding. Integers and bool are exact. NaN and infinities are where the reference has them,
 * and where the numbers that r depends on are so large that a sum of them depends on its order. Where the
 * reference is NaN in the elements' type and a number in f64, what is between leaves the type's range:
 * nothing is judged. */
typedef struct op_bound {
  double units, unit, vanishing;
} op_bound;

typedef struct op_answer {
  hone_tensor own[OP_MOST];  /* in the elements' own type */
  hone_dtype as;             /* F64, of 2-byte elements else F32; NONE: the reference takes neither */
  hone_tensor wide[OP_MOST]; /* of that type */
  double *moved[OP_MOST];
  double least, most; /* most: the largest number of all inputs */
  /* Elements depend on those elements of the inputs that are at their place, and on inputs of other shapes.
   */
  bool local[OP_MOST];
  double rest_least, rest_most; /* least and most of the inputs of other shapes */
  op_bound bound;
} op_answer;

/* Free it in any case. */
hone_status op_answer_make(const op_sample *sample, op_random *r, op_answer *out, hone_error *error);
void op_answer_free(op_answer *answer);
/* Row-major elements of output i. *worst: raised to the largest error in terms of its bound. False: wrong;
 * says where. */
bool op_answer_right(const op_sample *sample, const op_answer *answer, uint32_t i, const void *got,
                     double *worst, char *why, size_t size);

#endif
