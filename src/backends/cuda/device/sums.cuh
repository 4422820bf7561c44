/* What products add up in: f32, or i32 where they are those of codes (HN_CODE in the prefix). */
#ifndef HN_SUMS_CUH
#define HN_SUMS_CUH

#include "prelude.cuh"

#ifdef HN_CODE
typedef i32 hn_sum;
HN_FN hn_sum hn_sum_of(u32 bits) { return (i32)bits; }
HN_FN u32 hn_sum_bits(hn_sum x) { return (u32)x; }
#else
typedef float hn_sum;
HN_FN hn_sum hn_sum_of(u32 bits) { return hn_from_bits(bits); }
HN_FN u32 hn_sum_bits(hn_sum x) { return hn_bits(x); }
#endif

#endif
