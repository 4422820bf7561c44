/* Quotients by numbers that are the same for all threads, without the division. */
#ifndef HN_DIVIDE_CUH
#define HN_DIVIDE_CUH

#include "prelude.cuh"
#include "divisor.h"

/* v < 2^31 */
HN_FN u32 hn_quotient(u32 v, const hn_divisor *d) { return ((u32)(((u64)v * d->factor) >> 32) + v) >> d->shift; }

#endif
