/* A case's chain of two convolutions as lowering makes a step of it. */
#ifndef HN_TESTS_CHAIN_CASE_H
#define HN_TESTS_CHAIN_CASE_H

#include "tactics/tactic_case.h"

/* Inputs of the whole: x, weights and bias of each convolution, and what is added to the result (or nothing).
 */
enum { CHAIN_X, CHAIN_FIRST, CHAIN_LAST = 3, CHAIN_ADDED = 5 };

typedef struct chain_case {
  hone_step step[2];
  hone_step_part part[2];
  hone_step_tensor in[2][4], out[2];
} chain_case;

/* Gives the whole its two parts; `middle` describes what lies between them, as the device would store it. No
 * effect on other steps. */
void chain_parts(const one_case *c, hone_step *whole, const hone_tensor_desc *middle, chain_case *out);

#endif
