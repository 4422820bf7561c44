/* Cases of products and convolutions with an epilogue behind them, as lowering makes steps of them. */
#ifndef HN_TESTS_WITH_EPILOGUE_H
#define HN_TESTS_WITH_EPILOGUE_H

#include "tactics/tactic_case.h"

enum { EPILOGUES = 8 }; /* variants; 0 is none */

typedef struct with_epilogue {
  uint32_t n_anchor_inputs, n;
  hone_epilogue list[HONE_MAX_EPILOGUE];
  double range; /* of the values that go into the list: errors are relative to those */
} with_epilogue;

/* Whether an operator's steps have epilogues; "Op", or "domain.Op". */
bool takes_epilogues(const char *op);
/* Appends the variant's operands to the inputs of a case whose reference is known. False: it has no
 * epilogues. */
bool append_epilogue(one_case *c, int variant, with_epilogue *out);
/* Applies the list to the reference's output. */
void apply_epilogue(one_case *c, const with_epilogue *e);

#endif
