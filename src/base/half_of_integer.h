/* 64-bit integers as bf16, rounded to nearest even, and once. */
#ifndef HN_BASE_HALF_OF_INTEGER_H
#define HN_BASE_HALF_OF_INTEGER_H

#include "base/half.h"

/* They may have more bits than f64: those below the eleventh to last only say that it is inexact. */
static inline uint16_t hn_u64_to_bf16(uint64_t v) {
  const uint64_t rest = 0x7ff;
  return hn_f64_to_bf16((double)(v >> 53 && v & rest ? (v & ~rest) | (rest + 1) : v));
}
static inline uint16_t hn_i64_to_bf16(int64_t v) {
  return v < 0 ? hn_u64_to_bf16(0 - (uint64_t)v) | 0x8000 : hn_u64_to_bf16((uint64_t)v);
}

#endif
