/* What the writings of Gelu have in common. */
#ifndef HN_OPTIMIZE_MATCH_PATTERNS_GELU_H
#define HN_OPTIMIZE_MATCH_PATTERNS_GELU_H

#include "optimize/match/patterns/common.h"

/* 0.5 x %a in the orders in which exporters multiply; CORE makes %a of %x. */
#define GELU(CORE)                                                                                           \
  CORE "%m = Mul(%x, %a)\n%y = Mul(%m, 0.5)\nor\n" CORE "%m = Mul(%x, 0.5)\n%y = Mul(%m, %a)\nor\n" CORE     \
       "%m = Mul(%a, 0.5)\n%y = Mul(%x, %m)"

#endif
